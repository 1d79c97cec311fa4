"""A patch made from contents turns the pinned tree into the submitted one, with plain git apply."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.formats.digest import Entry, folder_entries
from sandbox.runtime.repo.patch import make_patch
from sandbox.runtime.repo.pins import Pinned
from sandbox.runtime.store import Store, remove_tree
from tests.support.gits import commit, git, pin

NAMES = [
    "a", "b.py", "dir/a", "dir/deep/b", "with space", 'quo"te', "new\nline", "tab\t", "ä", "-dash",
    os.fsdecode(b"\xff\xfe"), "back\\slash", "*?[x]", "trailing ", "dir/.gitignore", "'",
]  # fmt: skip
contents = st.one_of(
    st.sampled_from([b"", b"a\n", b"a\nb\nc\n", b"no newline", b"dos\r\nlines\r\n", b"\r", bytes(9),
                     b"a\n" * 50, b"a\n" * 49 + b"b\n", b"\xff\xfe", b" trailing \n\t\n",
                     b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n", b"diff --git a/x b/x\n", b"*.py\n"]),
    st.binary(max_size=40),
)  # fmt: skip
targets = st.sampled_from([b"a", b"../up", b"/etc/passwd", b"\xff", b"none such"])
things = st.one_of(
    st.tuples(st.sampled_from(["file", "exec"]), contents), st.tuples(st.just("link"), targets)
)
trees = st.dictionaries(st.sampled_from(NAMES), things, max_size=12)


def entries(tree: dict[str, tuple[Any, bytes]]) -> list[Entry]:
    return [Entry(name, kind, data) for name, (kind, data) in sorted(tree.items())]


def write(folder: Path, found: list[Entry]) -> None:
    for e in found:
        path = folder / e.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if e.kind == "link":
            path.symlink_to(os.fsdecode(e.data))
        else:
            path.write_bytes(e.data)
            path.chmod(0o755 if e.kind == "exec" else 0o644)


def there(folder: Path) -> list[Entry]:
    return sorted(e for e in folder_entries(folder) if not e.path.startswith(".git/"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


def worktree(folder: Path, before: list[Entry]) -> Pinned:
    remove_tree(folder)
    folder.mkdir()
    git(folder, "init", "--quiet")
    write(folder, before)
    return Pinned(folder / ".git", pin(folder, "x", commit(folder)))


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=trees, after=trees)
def test_the_patch_turns_one_tree_into_the_other(tmp_path, store, before, after):
    repo = worktree(tmp_path / "w", entries(before))
    patch = make_patch(store, repo, entries(before), entries(after))
    assert (patch == b"") == (before == after)
    if patch:
        git(tmp_path / "w", "apply", "--whitespace=nowarn", "-", feed=patch)
    assert there(tmp_path / "w") == entries(after)


def test_the_same_change_is_the_same_patch(tmp_path: Path, store: Store):
    before, after = [Entry("a", "file", b"1\n")], [Entry("b", "exec", b"2\n")]
    repo = worktree(tmp_path / "w", before)
    patches = {make_patch(store, repo, before, after) for _ in range(2)}
    assert len(patches) == 1


def test_a_file_can_become_a_folder_and_back(tmp_path: Path, store: Store):
    one, other = [Entry("a", "file", b"x\n")], [Entry("a/b", "exec", b"x\n")]
    for before, after in ((one, other), (other, one)):
        repo = worktree(tmp_path / "w", before)
        patch = make_patch(store, repo, before, after)
        git(tmp_path / "w", "apply", "-", feed=patch)
        assert there(tmp_path / "w") == after


def test_files_outside_of_what_is_compared_are_left_alone(tmp_path: Path, store: Store):
    kept, mine = Entry("other", "file", b"1\n"), Entry("src/a", "file", b"1\n")
    repo = worktree(tmp_path / "w", [kept, mine])
    patch = make_patch(store, repo, [mine], [])
    git(tmp_path / "w", "apply", "-", feed=patch)
    assert there(tmp_path / "w") == [kept]


def test_a_large_binary_file_survives(tmp_path: Path, store: Store):
    before = [Entry("a", "file", bytes(300_000))]
    after = [Entry("a", "file", os.urandom(300_000))]
    repo = worktree(tmp_path / "w", before)
    git(tmp_path / "w", "apply", "-", feed=make_patch(store, repo, before, after))
    assert there(tmp_path / "w") == after


def test_nothing_is_left_behind_in_the_pinned_repository(tmp_path: Path, store: Store):
    before, after = [Entry("a", "file", b"1\n")], [Entry("a", "file", b"2\n")]
    repo = worktree(tmp_path / "w", before)
    listed = sorted(repo.folder.rglob("*"))
    make_patch(store, repo, before, after)
    assert sorted(repo.folder.rglob("*")) == listed
    assert list((store.root / "tmp").iterdir()) == []


def test_modes_other_than_executable_are_no_part_of_a_patch(tmp_path: Path, store: Store):
    repo = worktree(tmp_path / "w", [Entry("a", "file", b"1\n")])
    patch = make_patch(store, repo, [Entry("a", "file", b"1\n")], [Entry("a", "exec", b"1\n")])
    git(tmp_path / "w", "apply", "-", feed=patch)
    assert (tmp_path / "w" / "a").stat().st_mode & stat.S_IXUSR
