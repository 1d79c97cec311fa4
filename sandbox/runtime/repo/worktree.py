"""What a box gets of a repository: a working tree, and the history up to the pin."""

import json
import os
import shutil
import tarfile
from pathlib import Path

from sandbox.formats import jsonfile
from sandbox.formats.digest import digest_of, folder_entries, tree_digest
from sandbox.runtime.repo.gitcmd import BRANCH, init, run_git
from sandbox.runtime.repo.pins import Pinned, committed
from sandbox.runtime.spec import Seed
from sandbox.runtime.store import Store, remove_tree, sha256_file

_CONFIG = {
    "core.bare": "false",
    # Files keep their content and time on the way into a box, but not their inode: without
    # these, the first `git status` in it would read every file again.
    "core.checkStat": "minimal",
    "core.trustctime": "false",
    "user.name": "agent",
    "user.email": "agent@localhost",
    "gc.auto": "0",
    "color.ui": "false",
}
_LEFTOVERS = ("logs", "ORIG_HEAD", "FETCH_HEAD", "branches", "hooks", "info")


def seed(store: Store, repo: Pinned, workdir: str) -> Seed:
    """The repository at `workdir`, as a tar and unpacked; made once, checked on every use."""
    key = digest_of(["worktree", 2, repo.pin.commit, workdir]).removeprefix("sha256:")
    folder = store.root / "trees" / key
    found = Seed(tar=folder / "seed.tar", folder=folder / "seed")
    with store.lock(f"tree-{key}"):
        if not _sound(folder):
            remove_tree(folder)
            with store.scratch() as scratch:
                _build(repo, workdir, scratch / "fresh")
                folder.parent.mkdir(parents=True, exist_ok=True)
                (scratch / "fresh").rename(folder)
    return found


def _sound(folder: Path) -> bool:
    """Is what was made still what was made? It is derived: what is damaged is made again."""
    try:
        noted = jsonfile.decode((folder / "digests.json").read_text(encoding="utf-8"), "")
    except OSError:
        return False
    return bool(noted) and bool(noted == _digests(folder))


def _digests(folder: Path) -> dict[str, str]:
    try:
        files = tree_digest(folder_entries(folder / "seed"))
        return {"folder": files, "tar": sha256_file(folder / "seed.tar")}
    except OSError:
        return {}


def _build(repo: Pinned, workdir: str, fresh: Path) -> None:
    root = fresh / "seed"
    seconds = committed(repo)
    build_worktree(repo, root / workdir.lstrip("/"), seconds)
    set_times(root, seconds)
    with tarfile.open(fresh / "seed.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for child in sorted(root.iterdir()):
            tar.add(child, child.name, filter=_as_root)
    jsonfile.write(fresh / "digests.json", json.dumps(_digests(fresh)))


def build_worktree(repo: Pinned, folder: Path, seconds: int) -> None:
    """A working tree with a .git that holds the history up to the pin, and nothing else.

    seconds: the files' time, since the epoch.
    """
    dot_git = folder / ".git"
    init(dot_git, bare=False)
    for key, value in _CONFIG.items():
        run_git(dot_git, "config", key, value)
    pack = run_git(
        repo.folder, "pack-objects", "--revs", "--stdout", "--quiet", "--threads=1",
        feed=f"{repo.pin.commit}\n".encode(),
    )  # fmt: skip
    run_git(dot_git, "index-pack", "--stdin", feed=pack)
    run_git(dot_git, "update-ref", f"refs/heads/{BRANCH}", repo.pin.commit)
    run_git(dot_git, "read-tree", repo.pin.commit, worktree=folder)
    run_git(dot_git, "checkout-index", "--all", "--quiet", worktree=folder)
    set_times(folder, seconds)
    run_git(dot_git, "update-index", "-q", "--refresh", worktree=folder)
    for left in _LEFTOVERS:
        path = dot_git / left
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def set_times(folder: Path, seconds: int) -> None:
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files, "."):
            os.utime(Path(top) / name, (seconds, seconds), follow_symlinks=False)


def _as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
