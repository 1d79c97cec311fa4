"""Patches from file contents: no working tree, no index, nothing of the agent's git."""

from collections.abc import Iterable

from sandbox.formats.digest import Entry
from sandbox.runtime.repo.gitcmd import commit_stream, init, run_git
from sandbox.runtime.repo.pins import Pinned
from sandbox.runtime.store import Store


def make_patch(
    store: Store, repo: Pinned, before: Iterable[Entry], after: Iterable[Entry]
) -> bytes:
    """A patch that turns the files `before`, of the pinned tree, into `after`."""
    old = {e.path: e for e in before}
    new = {e.path: e for e in after}
    changes = [e for path, e in sorted(new.items()) if old.get(path) != e]
    gone = sorted(set(old) - set(new))
    if not changes and not gone:
        return b""
    with store.scratch() as scratch:
        folder = scratch / "patch.git"
        init(folder)
        alternates = folder / "objects" / "info" / "alternates"
        alternates.write_text(f"{repo.folder / 'objects'}\n", encoding="utf-8")
        stream = commit_stream("submission", repo.pin.commit, gone, changes)
        run_git(folder, "fast-import", "--quiet", "--done", feed=stream)
        return run_git(
            folder, "diff", "--binary", "--full-index", "--no-renames", "--no-color",
            "--no-ext-diff", "--no-textconv", repo.pin.commit, "refs/heads/submission",
        )  # fmt: skip
