"""Two verdicts on one submission: where they differ. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.model.record import Rollout, VerdictRecord
from sandbox.model.task import TaskId

_ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    task: TaskId
    attempt: int
    what: str
    """reward, resolved, flags, reason, submission, or a check's id."""
    theirs: str
    """As it was told."""
    ours: str
    """As it was found now."""


def differences(theirs: Rollout, ours: Rollout) -> Iterator[Difference]:
    """Of two rollouts with a verdict. What is told of a verdict in words only is none."""
    if theirs.verdict is None or ours.verdict is None:
        return
    for what, before, after in _unequal(theirs.verdict, ours.verdict):
        yield Difference(task=ours.task, attempt=ours.attempt, what=what, theirs=before, ours=after)


def _unequal(theirs: VerdictRecord, ours: VerdictRecord) -> Iterator[tuple[str, str, str]]:
    pairs = (
        ("reward", f"{theirs.reward:.6f}", f"{ours.reward:.6f}"),
        ("resolved", _yes(theirs.resolved), _yes(ours.resolved)),
        ("flags", ", ".join(theirs.flags) or "none", ", ".join(ours.flags) or "none"),
    )
    yield from (pair for pair in pairs if pair[1] != pair[2])
    if theirs.flags and ours.flags:
        # Which of its tests a forgery was caught at is up to coins, and theirs were others.
        return
    for check in sorted(theirs.checks.keys() | ours.checks.keys()):
        before, after = (v.checks.get(check, _ABSENT) for v in (theirs, ours))
        if before != after:
            yield check, before, after


def _yes(is_so: bool) -> str:  # noqa: FBT001
    return "yes" if is_so else "no"
