"""What an agent left behind, as a patch of the declared paths and nothing else.

The agent's processes are dead by now. Its files are read as a stream, in memory; its git, its
configuration and its tools take no part.
"""

import tarfile
from pathlib import PurePosixPath

from sandbox.formats.digest import Entry
from sandbox.model.record import Submission
from sandbox.model.task import TaskSpec
from sandbox.runtime.base import Box
from sandbox.runtime.repo.patch import make_patch
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Supplies
from sandbox.runtime.tarball import TooLarge, read

_MAX_FILES = 100_000


def collect(box: Box, task: TaskSpec, supplies: Supplies, store: Store) -> Submission:
    """Stops the box, then reads it. What cannot be a submission is rejected, not a fault."""
    box.stop()
    limit = task.limits.submission_mib << 20
    base = [e for e in supplies.base if task.submission.covers(e.path)]
    before = {e.path: e for e in base}
    allowed = limit + sum(len(e.data) for e in base)
    try:
        after = [
            e
            for path in task.submission.paths
            for e in _files(box, task.workdir, path, allowed)
            if task.submission.covers(e.path)
        ]
    except TooLarge:
        return _rejected(task, f"the declared paths hold more than {allowed >> 20} MiB")
    except tarfile.TarError as e:
        return _rejected(task, f"the declared paths cannot be read: {e}")
    changed = sum(len(e.data) for e in after if before.get(e.path) != e)
    if changed > limit:
        return _rejected(task, f"{changed >> 20} MiB changed, {task.limits.submission_mib} allowed")
    if inner := next((e.path for e in after if _in_repository(e.path)), None):
        return _rejected(task, f"{inner} is in a git repository of its own")
    return Submission(task=task.id, patch=make_patch(store, supplies.repo, base, after))


def _files(box: Box, workdir: str, path: str, max_bytes: int) -> list[Entry]:
    try:
        stream = box.get(f"{workdir}/{path}")
    except FileNotFoundError:
        return []
    parent = str(PurePosixPath(path).parent)
    prefix = "" if parent == "." else f"{parent}/"
    return [
        Entry(prefix + e.path, e.kind, e.data)
        for e in read(stream, max_bytes=max_bytes, max_files=_MAX_FILES)
    ]


def _in_repository(path: str) -> bool:
    """No patch can hold it; and newer gits than ours would make a fault of it."""
    return any(part.lower() == ".git" for part in path.split("/"))


def _rejected(task: TaskSpec, why: str) -> Submission:
    return Submission(task=task.id, patch=b"", rejected=why)
