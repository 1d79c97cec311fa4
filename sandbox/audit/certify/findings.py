"""What the runs of one task say together: what varied, with what, and what is not sound. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sandbox.audit.certify.compare import Change, compare
from sandbox.audit.certify.names import family, suspicion
from sandbox.audit.certify.shifts import Shift, is_repeat
from sandbox.grading.judge import judge
from sandbox.model.task import TaskId, TaskSpec
from sandbox.model.verdict import Evidence, Verdict

ORACLE, NOP = "oracle", "nop"
_FEW = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Once, a check ended in another way."""

    submission: str
    shift: str
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Varied:
    check: str
    sightings: tuple[Sighting, ...]
    suspicion: str = ""
    """What in its name may be why."""

    @property
    def why(self) -> str:
        """In a line, the same each time the same shifts move it."""
        shifts = list(dict.fromkeys(s.shift for s in self.sightings))
        if any(is_repeat(s) for s in shifts):
            said = "varies from run to run"
        else:
            more = f" and {len(shifts) - _FEW} more" if len(shifts) > _FEW else ""
            said = f"varies with {', '.join(shifts[:_FEW])}{more}"
        return f"{said}: {self.suspicion}" if self.suspicion else said


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one submission came to, in the first run."""

    submission: str
    patch_sha256: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """About one task."""

    task: TaskId
    told: tuple[Told, ...] = ()
    varied: tuple[Varied, ...] = ()
    """Checks that did not stay the same."""
    beside: tuple[Varied, ...] = ()
    """Tests that are no checks and did not stay the same, by family: no verdict hangs on them."""
    problems: tuple[str, ...] = ()
    """What no check is to blame for, and no certificate can be given with."""
    void: tuple[str, ...] = ()
    """What of ours failed: nothing was found out."""

    @property
    def still(self) -> bool:
        return not (self.varied or self.problems or self.void)


Runs = Mapping[str, Mapping[str, Evidence]]
"""Submission → shift → what was seen. The first shift is the one that all are held against."""


def examine(
    task: TaskSpec, shifts: Sequence[Shift], runs: Runs, patches: Mapping[str, str]
) -> Finding:
    """patches: submission → sha256 of its patch."""
    if void := tuple(_partial(runs)):
        return Finding(task=task.id, void=void)
    problems: list[str] = []
    sightings: dict[str, list[Sighting]] = {}
    first = shifts[0].name
    for submission, seen in runs.items():
        for shift in shifts[1:]:
            found = compare(seen[first], seen[shift.name])
            if found.run:
                problems.append(f"{submission} with {shift.name}: {found.run}")
                continue
            for change in found.changes:
                sighting = Sighting(submission=submission, shift=shift.name, change=change)
                sightings.setdefault(change.check, []).append(sighting)
    told = tuple(
        Told(
            submission=name,
            patch_sha256=patches[name],
            verdict=judge(task.verifier, seen[first]),
        )
        for name, seen in runs.items()
    )
    instants = (task.clock.at, *(s.conditions.at for s in shifts if s.conditions.at))
    checks = {c.id for c in task.verifier.checks}
    return Finding(
        task=task.id,
        told=told,
        varied=tuple(
            Varied(check=c, sightings=tuple(found), suspicion=_suspicion(c, found, instants))
            for c, found in sorted(sightings.items())
            if c in checks
        ),
        beside=tuple(_families(sightings, checks, instants)),
        problems=(*_unsound(told), *problems),
    )


def _partial(runs: Runs) -> Iterator[str]:
    """A clock that some programs do not see says nothing of what they would have done."""
    for submission, seen in runs.items():
        for shift, evidence in seen.items():
            clock = evidence.clock
            if clock is None or clock.coverage != "full":
                why = f": {clock.warning}" if clock and clock.warning else ""
                yield f"{submission} with {shift}: the clock of some programs was not held{why}"


def _suspicion(check: str, found: Sequence[Sighting], instants: Sequence[str]) -> str:
    """A name is suspect only when it is what did not stay."""
    return suspicion(check, instants) if any(s.change.renamed for s in found) else ""


def _families(
    sightings: Mapping[str, Sequence[Sighting]], checks: set[str], instants: Sequence[str]
) -> Iterator[Varied]:
    families: dict[str, list[str]] = {}
    for name, found in sorted(sightings.items()):
        if name not in checks:
            renamed = any(s.change.renamed for s in found)
            families.setdefault(family(name) if renamed else name, []).append(name)
    for name, members in families.items():
        found = [s for m in members for s in sightings[m]]
        why = next(filter(None, (_suspicion(m, found, instants) for m in members)), "")
        yield Varied(check=name, sightings=tuple(found), suspicion=why)


def _unsound(told: Sequence[Told]) -> Iterator[str]:
    """A verdict that is always wrong stands still, too."""
    for one in told:
        if one.submission == ORACLE and not one.verdict.resolved:
            yield f"the reference solution does not resolve it: {one.verdict.reason}"
        if one.submission == NOP and one.verdict.resolved:
            yield "doing nothing resolves it"
