"""Another's results, and the submissions they are about: what is to be graded again, with boxes."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import UserError
from sandbox.formats.records import SubmissionLine, read_results, read_submissions, submission_line
from sandbox.model.record import Rollout
from sandbox.model.task import TaskId, TaskSpec
from sandbox.model.verdict import Ran
from sandbox.rollout.compare import Difference, differences
from sandbox.rollout.folder import PATCH
from sandbox.rollout.outdir import RESULTS, SUBMISSIONS, Key, require_run, rollout_folder

_PATCH_BYTES = 256 << 20
_EMPTY = hashlib.sha256(b"").hexdigest()
_NOT_TAKEN = "nothing to grade again: what was left behind could be no submission, and gave 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a run says, as far as it can be looked into."""

    rollouts: tuple[Rollout, ...]
    """The last word about each that has a verdict, and whose submission is at hand."""
    lines: tuple[SubmissionLine, ...]
    """Their submissions, in the same order."""
    tasks: Mapping[TaskId, TaskSpec]
    lacking: tuple[Difference, ...] = ()
    """Whose submission is not there, or is another one than was judged."""
    notes: tuple[str, ...] = ()


def read_claims(run: Path, load: Callable[[TaskId], TaskSpec]) -> Claims:
    """Raises UserError where the results are about another task than the one that is here."""
    require_run(run)
    latest = {(r.task, r.attempt): r for r in read_results(run / RESULTS)}
    told = [r for r in latest.values() if r.verdict]
    if not told:
        raise UserError(f"there is no verdict in {run / RESULTS}", hint="what would be compared?")
    tasks = {name: load(name) for name in dict.fromkeys(r.task for r in told)}
    for r in told:
        if r.task_digest != (mine := tasks[r.task].digest):
            raise UserError(
                f"{run / RESULTS}: `{r.task}` attempt {r.attempt} is about task {r.task_digest}; "
                f"here it is {mine}",
                hint="verdicts on another task cannot be compared: use the tasks they were made with",
            )
    void = len(latest) - len(told)
    notes = [f"{void} void: there is nothing to compare"] if void else []
    given = _submissions(run / SUBMISSIONS)
    rollouts, lines, lacking = [], [], []
    for r in told:
        if _not_taken(r):
            notes.append(f"{r.task} try {r.attempt}: {_NOT_TAKEN}")
            continue
        patch = _recorded(run, r, given)
        if patch is None:
            lacking.append(_lacks(r, "there is none"))
            continue
        if (found := hashlib.sha256(patch).hexdigest()) != r.patch_sha256:
            lacking.append(_lacks(r, found))
        rollouts.append(r)
        lines.append(submission_line(r.task, patch, agent=r.agent, attempt=r.attempt))
    return Claims(
        rollouts=tuple(rollouts),
        lines=tuple(lines),
        tasks=tasks,
        lacking=tuple(lacking),
        notes=tuple(notes),
    )


def compared(claims: Claims, ours: Sequence[Rollout]) -> Iterator[Difference]:
    """Whatever is not as it was told. What is void here says nothing."""
    yield from claims.lacking
    by_key = {(r.task, r.attempt): r for r in ours}
    for theirs in claims.rollouts:
        if mine := by_key.get((theirs.task, theirs.attempt)):
            yield from differences(theirs, mine)


def _not_taken(r: Rollout) -> bool:
    """Refused while it was collected: there is no patch of it. A claim of more than 0 is looked into."""
    if r.verdict is None or r.verdict.reward != 0 or r.patch_sha256 != _EMPTY:
        return False
    return r.verdict.reason.startswith(f"{Ran.REJECTED}:")


def _lacks(r: Rollout, found: str) -> Difference:
    return Difference(
        task=r.task, attempt=r.attempt, what="submission", theirs=r.patch_sha256, ours=found
    )


def _submissions(path: Path) -> dict[Key, bytes]:
    if not path.exists() or not path.stat().st_size:
        return {}
    return {(TaskId(line.task), line.attempt): line.data for line in read_submissions(path)}


def _recorded(run: Path, r: Rollout, given: Mapping[Key, bytes]) -> bytes | None:
    path = rollout_folder(run, r.task, r.attempt).path / PATCH
    found = plain_file(path)
    return given.get((r.task, r.attempt)) if found is None else found


def plain_file(path: Path) -> bytes | None:
    """A run that somebody else made may have anything there: no link is followed, nothing waits."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as f:
        status = os.fstat(f.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _PATCH_BYTES:
            raise UserError(f"{path} is no submission", hint="neither a file, nor of a usual size")
        return f.read(_PATCH_BYTES)
