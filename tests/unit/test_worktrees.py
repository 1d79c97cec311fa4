"""What a box gets of a repository: its past, and nothing of its future."""

import stat
import tarfile
from pathlib import Path

import pytest

from sandbox.errors import RepoFault
from sandbox.formats.repofile import GitSource, RepoSource
from sandbox.runtime.repo.pins import Repos, read_files
from sandbox.runtime.repo.worktree import seed
from sandbox.runtime.store import Store
from tests.support.gits import commit, git, objects, pin, reachable, text
from tests.support.repos import folder_source, pinned, repos


@pytest.fixture
def upstream(tmp_path: Path) -> tuple[Path, str]:
    """A repository with a past and a future, tags, branches, notes; the commit in the middle."""
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=trunk")
    (folder / "a").write_text("1\n")
    commit(folder, "first")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / "a").write_text("2\n")
    middle = commit(folder, "second")
    git(folder, "tag", "-a", "v2", "-m", "the middle")
    git(folder, "checkout", "--quiet", "-b", "side")
    (folder / "secret").write_text("the solution, on a branch\n")
    commit(folder, "aside")
    git(folder, "checkout", "--quiet", "trunk")
    (folder / "a").write_text("3: the solution\n")
    commit(folder, "third")
    git(folder, "tag", "v3")
    git(folder, "notes", "add", "-m", "a note", middle)
    (folder / "a").write_text("stashed solution\n")
    git(folder, "stash")
    return folder, middle


def git_source(commit: str) -> RepoSource:
    return RepoSource(commit=commit, tree="", git=GitSource(url="../upstream"))


def test_a_box_gets_exactly_what_the_pin_reaches(store: Store, home: Path, upstream):
    folder, middle = upstream
    source, found = git_source(middle), pin(folder, "it", middle)
    kept = Repos(store, home, {"it": pinned(source, found)}).ensure(found)
    assert objects(kept.folder) == reachable(folder / ".git", middle)

    inside = seed(store, kept, "/work/it").folder / "work" / "it"
    dot_git = inside / ".git"
    assert objects(dot_git) == reachable(folder / ".git", middle)
    assert text(inside, "for-each-ref", "--format=%(refname) %(objectname)") == (
        f"refs/heads/main {middle}"
    )
    assert text(inside, "rev-parse", "HEAD") == middle
    assert text(inside, "remote") == ""
    assert text(inside, "stash", "list") == ""
    for left in (
        "logs",
        "FETCH_HEAD",
        "ORIG_HEAD",
        "hooks",
        "packed-refs",
        "objects/info/alternates",
    ):
        assert not (dot_git / left).exists(), left
    settings = (dot_git / "config").read_text()
    assert "upstream" not in settings
    assert str(store.root) not in settings
    assert text(inside, "status", "--porcelain") == ""
    assert (inside / "a").read_text() == "2\n"
    assert (inside / "run").stat().st_mode & stat.S_IXUSR
    assert git(inside, "fsck", "--unreachable", "--no-reflogs") == b""


def contents(tar: Path) -> dict[str, bytes]:
    """All but the index, which holds the inode numbers of the machine it was made on."""
    with tarfile.open(tar) as found:
        files = {m.name: found.extractfile(m) for m in found if m.isfile()}
        return {n: f.read() for n, f in files.items() if f and not n.endswith(".git/index")}


def test_a_seed_is_the_same_on_every_machine(store: Store, home: Path, upstream):
    folder, middle = upstream
    found = pin(folder, "it", middle)
    sources = {"it": pinned(git_source(middle), found)}
    first = seed(store, Repos(store, home, sources).ensure(found), "/w")
    other = Store(store.root.with_name("other"))
    again = seed(other, Repos(other, home, sources).ensure(found), "/w")
    assert contents(first.tar) == contents(again.tar)
    with tarfile.open(first.tar) as tar:
        assert {(m.uid, m.gid, m.uname, int(m.mtime)) for m in tar} == {(0, 0, "", 1000000000)}


def test_a_changed_seed_is_made_again(store: Store, home: Path):
    made, found = repos(store, home, folder_source())
    first = seed(store, made.ensure(found), "/w")
    before = contents(first.tar)
    (first.folder / "w" / "src" / "a.py").write_text("tampered")
    assert contents(seed(store, made.ensure(found), "/w").tar) == before
    assert (first.folder / "w" / "src" / "a.py").read_bytes() == b"a = 1\r\n"
    first.tar.write_bytes(b"tampered")
    assert contents(seed(store, made.ensure(found), "/w").tar) == before


def test_files_are_read_from_the_tree_by_path(store: Store, home: Path):
    made, found = repos(store, home, folder_source())
    repo = made.ensure(found)
    assert [e.path for e in read_files(repo, ["src"])] == ["src/a.py", "src/run"]
    assert [e.path for e in read_files(repo, ["src/a.py", "link"])] == ["link", "src/a.py"]
    with pytest.raises(RepoFault, match="`it` has no `sr`"):
        read_files(repo, ["sr"])
    assert read_files(repo, ["sr"], missing_ok=True) == []
