"""The store's folders, and what is in them when they have to go."""

import os
from pathlib import Path

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
