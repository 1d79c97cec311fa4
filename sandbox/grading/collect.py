"""What an agent left behind, as a patch of the declared paths and nothing else.

The agent's processes are dead by now. Its files are read as a stream, in memory; its git, its
configuration and its tools take no part.
"""

import tarfile
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from sandbox.formats.digest import Entry
from sandbox.model.record import Submission
from sandbox.model.task import SubmissionSpec, TaskSpec
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
    base = [e for e in supplies.base if is_declared(e.path, task.submission)]
    before = {e.path: e for e in base}
    allowed = limit + sum(len(e.data) for e in base)
    try:
        after = [
            e
            for path in task.submission.paths
            for e in _files(box, task.workdir, path, allowed)
            if is_declared(e.path, task.submission)
        ]
    except TooLarge:
        return _rejected(task, f"the declared paths hold more than {allowed >> 20} MiB")
    except tarfile.TarError as e:
        return _rejected(task, f"the declared paths cannot be read: {e}")
    changed = sum(len(e.data) for e in after if before.get(e.path) != e)
    if changed > limit:
        return _rejected(task, f"{changed >> 20} MiB changed, {task.limits.submission_mib} allowed")
    return Submission(task=task.id, patch=make_patch(store, supplies.repo, base, after))


def is_declared(path: str, spec: SubmissionSpec) -> bool:
    """Is this path, relative to the working directory, part of a submission?"""
    inside = any(path == top or path.startswith(f"{top}/") for top in spec.paths)
    return inside and not any(_matches(path, pattern) for pattern in spec.exclude)


def _matches(path: str, pattern: str) -> bool:
    """As in .gitignore: a pattern without a slash is for names, `**/` also means here."""
    if "/" not in pattern:
        return fnmatchcase(PurePosixPath(path).name, pattern)
    return fnmatchcase(path, pattern) or (
        pattern.startswith("**/") and fnmatchcase(path, pattern[3:])
    )


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


def _rejected(task: TaskSpec, why: str) -> Submission:
    return Submission(task=task.id, patch=b"", rejected=why)
