"""The store's folders, and what is in them when they have to go."""

import os
import subprocess
from pathlib import Path

import pytest

from sandbox.runtime.store import Store, remove_tree


def deep(folder: Path, levels: int) -> Path:
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    return folder


def test_a_folder_deeper_than_a_stack_and_a_path_is_removed(tmp_path: Path):
    top = deep(tmp_path / "top", 4000)
    remove_tree(top)
    assert not top.exists()


def test_a_deep_scratch_folder_goes_with_its_owner(tmp_path: Path):
    store = Store(tmp_path)
    with store.scratch() as folder:
        deep(folder / "deep", 2500)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_folder_in_which_somebody_still_writes_is_removed_once_they_are_done(tmp_path: Path):
    folder = tmp_path / "busy"
    folder.mkdir()
    script = 'i=0; while [ $i -lt 4000 ]; do i=$((i+1)); echo > "$0/$i" || exit 0; done'
    with subprocess.Popen(["sh", "-c", script, str(folder)], stderr=subprocess.DEVNULL):
        while not list(folder.iterdir()):
            pass
        remove_tree(folder)
    assert not folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_scratch_folder_that_cannot_be_removed_is_found_again(tmp_path: Path):
    store = Store(tmp_path)
    busy: list[Path] = []

    def use() -> None:
        with store.scratch() as folder:
            subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
            busy.append(folder)

    try:
        with pytest.raises(OSError, match="busy"):
            use()
    finally:
        subprocess.run(["umount", *busy], check=True)
    assert store.reap() == [str(folder) for folder in busy]
    assert list((tmp_path / "tmp").iterdir()) == []
