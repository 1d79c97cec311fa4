"""Why a reward is what it is, as values: see report.explain for the words. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sandbox.grading.judge import judge_as_asked
from sandbox.grading.plainly import disagreements
from sandbox.grading.unlike import unlike
from sandbox.model.layers import Layers, Plain, Unit
from sandbox.model.record import FaultRecord, Rollout, VerdictRecord
from sandbox.model.task import TaskSpec, VerifierSpec
from sandbox.model.verdict import (
    CheckReport,
    CheckResult,
    Evidence,
    Outcome,
    Pair,
    Ran,
    Seen,
    Verdict,
)

_MISSING = CheckReport(outcome=Outcome.MISSING)
_NEVER = "not run: a plain run is made where there is a reward to confirm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What one box showed of one check."""

    box: str
    form: str
    """`as it is`, or `as a canary`."""
    outcome: str
    message: str = ""
    pair: int = 1
    """Of boxes; of a further one only what was otherwise there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One check: what was seen of it, and what that is worth."""

    id: str
    gate: bool
    weight: float
    outcome: str
    credited: bool
    note: str
    """Why it does not count although it passed; or why it counts although it did not."""
    sights: tuple[Sight, ...]
    canary: str
    """Why it has none; empty when it has one, or none is used."""
    plain: tuple[str, ...] = ()
    """What the run without the test runner showed otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the run in one box ended."""

    box: str
    ran: str
    detail: str
    reports: int
    seconds: float
    log_lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Everything there is to say of one reward."""

    rollout: Rollout
    reward: float | None
    resolved: bool
    reason: str
    flags: tuple[str, ...] = ()
    boxes: tuple[Ended, ...] = ()
    further: int = 0
    """How many further pairs of boxes there were, because the reward rested on few units."""
    plain: str = ""
    """Why there was no plain run, though the task has one."""
    plain_says: tuple[str, ...] = ()
    """What the plain run showed otherwise."""
    outside: tuple[str, ...] = ()
    checks: tuple[Told, ...] = ()
    sum: tuple[str, ...] = ()
    """The arithmetic of the reward, a step a line."""
    fault: FaultRecord | None = None
    doubts: tuple[str, ...] = ()
    """What does not fit together: the task has changed, or the results say something else."""


def void(record: Rollout) -> Story:
    """There is no reward, and why."""
    said = f"{record.fault.code}: {record.fault.message}" if record.fault else "it has no verdict"
    return Story(rollout=record, reward=None, resolved=False, reason=said, fault=record.fault)


def story(task: TaskSpec, evidence: Evidence, layers: Layers, record: Rollout) -> Story:
    """layers: of the task as it is."""
    verdict = judge_as_asked(task.verifier, evidence, layers)
    told = tuple(_check(task.verifier, c, evidence, layers) for c in verdict.checks)
    # Of an answer that is right in part, what failed here failed there: each check has its own line.
    plain = evidence.plain if all(c.passed for c in verdict.checks) else None
    says = tuple(disagreements(task.verifier, plain, layers)) if plain else ()
    wanted = bool(layers.plain or layers.withheld) and evidence.asked == "all"
    return Story(
        rollout=record,
        reward=verdict.reward,
        resolved=verdict.resolved,
        reason=verdict.reason,
        flags=verdict.flags,
        boxes=tuple(_boxes(evidence)),
        further=len(evidence.further),
        plain=_NEVER if wanted and evidence.plain is None else "",
        plain_says=says,
        outside=evidence.outside,
        checks=told,
        sum=tuple(_sum(verdict)),
        doubts=tuple(_doubts(task, evidence, record, verdict)),
    )


def _boxes(evidence: Evidence) -> Iterator[Ended]:
    boxes: list[tuple[str, Seen | None]] = [
        ("first" if evidence.second else "only", evidence),
        ("second", evidence.second),
    ]
    for number, pair in enumerate(evidence.further, 2):
        boxes += [
            (f"first of pair {number}", pair.first),
            (f"second of pair {number}", pair.second),
        ]
    for name, seen in [*boxes, ("plain", evidence.plain)]:
        if seen:
            yield Ended(
                box=name,
                ran=seen.ran.value.replace("_", " "),
                detail=seen.detail,
                reports=len(seen.report),
                seconds=round(seen.seconds, 3),
                log_lines=len(seen.log.splitlines()),
            )


def _check(verifier: VerifierSpec, result: CheckResult, evidence: Evidence, layers: Layers) -> Told:
    spec = result.spec
    note = result.note
    if result.passed and result.outcome is not Outcome.PASSED:
        note = f"the task accepts {result.outcome} here"
    canaries = layers.canaries
    lacks = canaries.uncovered.get(spec.id, "") if canaries else ""
    if canaries and not lacks and spec.id not in canaries.canary_of():
        lacks = "none was found"
    return Told(
        id=spec.id,
        gate=spec.gate,
        weight=spec.weight,
        outcome=result.outcome.value,
        credited=result.passed,
        note=note,
        sights=tuple(_sights(spec.id, evidence, layers)),
        canary=lacks,
        plain=tuple(_plainly(verifier, spec.id, evidence, layers)),
    )


def _sights(check: str, evidence: Evidence, layers: Layers) -> Iterator[Sight]:
    if evidence.ran is Ran.REJECTED:
        return
    unit = _unit_of(check, layers)
    boxes: list[tuple[str, Seen]] = [("first" if evidence.second else "only", evidence)]
    if evidence.second:
        boxes.append(("second", evidence.second))
    usual = list(_in_pair(check, unit, boxes, evidence))
    yield from usual
    ended = {(s.form, s.outcome) for s in usual}
    for number, pair in enumerate(evidence.further, 2):
        boxes = [("first", pair.first), ("second", pair.second)]
        again = list(_in_pair(check, unit, boxes, pair))
        if pair.covers(check) and {(s.form, s.outcome) for s in again} != ended:
            yield from (replace(s, box=f"{s.box} of pair {number}", pair=number) for s in again)


def _in_pair(
    check: str, unit: Unit | None, boxes: list[tuple[str, Seen]], coins: Evidence | Pair
) -> Iterator[Sight]:
    for box, seen in boxes:
        if unit is None or (unit.name in coins.swapped) != (box != "second"):
            yield _sight(box, "as it is", seen.report, check)
        elif check in unit.checks:
            told = unit.canary(coins.drawn).checks
            yield _sight(box, "as a canary", seen.report, told.get(check, ""))


def _sight(box: str, form: str, report: Mapping[str, CheckReport], name: str) -> Sight:
    told = report.get(name, _MISSING)
    return Sight(box=box, form=form, outcome=told.outcome.value, message=told.message)


def _unit_of(check: str, layers: Layers) -> Unit | None:
    units = layers.canaries.units if layers.canaries else ()
    return next((u for u in units if check in u.checks or check in u.others), None)


def _plainly(
    verifier: VerifierSpec, check: str, evidence: Evidence, layers: Layers
) -> Iterator[str]:
    if evidence.plain is None:
        return
    plain, withheld = (_of(part, check) for part in (layers.plain, layers.withheld))
    yield from disagreements(verifier, evidence.plain, Layers(plain=plain, withheld=withheld))


def _of(part: Plain | None, check: str) -> Plain | None:
    """What is there of this check only."""
    if part is None or check not in part.checks:
        return None
    keys = part.checks[check]
    sites = tuple(s for s in part.sites if s.key in keys)
    return replace(part, checks={check: keys}, sites=sites)


def _sum(verdict: Verdict) -> Iterator[str]:
    if verdict.resolved:
        yield f"every one of {len(verdict.checks)} checks passed, and nothing speaks against it: 1"
        return
    if verdict.flags:
        yield f"{verdict.flags[0]}: 0, whatever passed"
        return
    gates = [c for c in verdict.checks if c.spec.gate]
    shut = [c for c in gates if not c.passed]
    if shut:
        yield f"{len(shut)} of {len(gates)} gates did not pass: 0, whatever else did"
        return
    passed = [c.spec.weight for c in verdict.checks if c.passed]
    if gates:
        yield f"all {len(gates)} gates passed"
    yield f"{len(passed)} of {len(verdict.checks)} checks passed"
    yield f"{sum(passed):g} of {verdict.total:g} in weights = {verdict.reward:.6f}"


def _doubts(task: TaskSpec, evidence: Evidence, record: Rollout, verdict: Verdict) -> Iterator[str]:
    if changed := ", ".join(unlike(evidence.pins, task)):
        yield f"the task has changed since ({changed}): what follows may not fit it"
    if evidence.pins and evidence.pins.patch_sha256 != record.patch_sha256:
        yield "the evidence is of another submission than results.jsonl tells of"
    told = record.verdict or VerdictRecord(reward=0.0, resolved=False, reason="", checks={})
    if (told.reward, told.resolved, told.flags) != (
        verdict.reward,
        verdict.resolved,
        verdict.flags,
    ):
        yield (
            f"results.jsonl has a reward of {told.reward:g}; by its evidence and the task as it is, "
            f"it is {verdict.reward:g}"
        )
