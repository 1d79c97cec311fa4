"""What the rollouts of one task say about it. Pure."""

from collections.abc import Iterator, Mapping

from sandbox.audit.gate import levels
from sandbox.audit.gate.finding import Finding, finding
from sandbox.audit.mutants.explained import reason
from sandbox.model.record import Rollout
from sandbox.model.task import TaskSpec

Done = Mapping[str, Rollout]
"""Name of the trial → what came of it."""
_FEW = 3
LEAST_SCORE = 0.8


def of_agents(task: TaskSpec, oracle: Rollout, nop: Rollout) -> Iterator[Finding]:
    """The least a task has to prove: the reference solution is worth 1, and nothing is worth less."""
    voids = [r for r in (oracle, nop) if r.fault]
    if voids:
        yield from map(void, voids)
        return
    if oracle.verdict and not oracle.verdict.resolved:
        reason = oracle.verdict.reason
        yield finding(
            "semantic.oracle_max", f"the reference solution does not resolve it: {reason}"
        )
    if nop.verdict and nop.verdict.resolved:
        yield finding("semantic.floor_gap", "doing nothing resolves it")
    before, after = _outcomes(nop), _outcomes(oracle)
    for check in task.verifier.checks:
        passed = before.get(check.id) == "passed"
        if check.gate and not passed and after.get(check.id) == "passed":
            yield finding("SR-GATE", f"gate {check.id} does not pass before the solution")
        if not check.gate and passed:
            said = f"scored check {check.id} passes without the solution"
            yield finding("semantic.floor_gap", said)


def void(rollout: Rollout) -> Finding:
    fault = rollout.fault
    said = f"{fault.code}: {fault.message}" if fault else "no verdict"
    return finding("SR-VOID", f"{rollout.agent} was void: {said}", fault.hint if fault else "")


def of_trials(done: Done, explained: Mapping[str, str]) -> Iterator[Finding]:
    yield from (void(r) for r in done.values() if r.fault)
    sound = {name: r for name, r in done.items() if not r.fault}
    yield from _repeated(sound, levels.REFERENCE)
    yield from _repeated(sound, levels.NOTHING)
    yield from _ordered(sound)
    yield from _alone(sound)
    yield from _controls(sound)
    yield from _unneeded(sound)
    yield from _mutants(sound, explained)


def _repeated(done: Done, what: str) -> Iterator[Finding]:
    runs = [r for name, r in done.items() if _number(name, what)]
    if what == levels.REFERENCE:
        for r in runs:
            if r.verdict and not r.verdict.resolved:
                said = f"{r.agent} does not resolve it: {r.verdict.reason}"
                yield finding("semantic.oracle_max", said)
    for other in runs[1:]:
        if said := _difference(runs[0], other):
            yield finding("semantic.verifier_determinism", f"{other.agent}: {said}")


def _ordered(done: Done) -> Iterator[Finding]:
    usual = done.get(levels.BARELY)
    for name, r in done.items():
        if usual and _number(name, levels.ORDER) and (said := _difference(usual, r)):
            yield finding("SR-ORDER", f"{name}: {said}")


def _alone(done: Done) -> Iterator[Finding]:
    for name, r in done.items():
        kind, _, check = name.partition(": ")
        if kind == levels.ALONE and _outcomes(r).get(check) in ("failed", "error"):
            yield finding("SR-ALONE", f"{check} {_outcomes(r)[check]} alone")


def _controls(done: Done) -> Iterator[Finding]:
    for name, r in done.items():
        kind, _, variation = name.partition(": ")
        if kind == levels.CONTROL and r.verdict and not r.verdict.resolved:
            failed = [c for c, outcome in r.verdict.checks.items() if outcome != "passed"]
            yield finding("SR-NARROW", f"{variation}: {r.verdict.reason}; {_listed(failed)}")


def _unneeded(done: Done) -> Iterator[Finding]:
    for name, r in done.items():
        if not (r.verdict and r.verdict.resolved):
            continue
        if name.startswith(f"{levels.HUNK} "):
            yield finding("SR-HUNK", f"{name.partition(' ')[2]} can stay as it was")
        elif name.startswith(f"{levels.KNOCKOUT} "):
            yield finding("SR-KNOCKOUT", f"{name.partition(' ')[2]} can return None")


def _mutants(done: Done, explained: Mapping[str, str]) -> Iterator[Finding]:
    tried = survived = 0
    for name, r in done.items():
        kind, _, told = name.partition(" ")
        if kind != levels.MUTANT:
            continue
        lives = bool(r.verdict and r.verdict.resolved)
        if lives and reason(explained, told):
            continue
        tried += 1
        survived += lives
        if lives:
            number, _, change = told.partition(" ")
            yield finding("SR-SURVIVOR", f"{number}: {change}")
    if tried and (score := 1 - survived / tried) < LEAST_SCORE:
        said = f"{tried - survived} of {tried} wrong versions fail a check: {score:.0%}"
        yield finding("SR-MUTANTS", said)


def _number(name: str, what: str) -> bool:
    return name.removeprefix(f"{what} ").isdigit()


def _outcomes(rollout: Rollout) -> Mapping[str, str]:
    return rollout.verdict.checks if rollout.verdict else {}


def _difference(one: Rollout, other: Rollout) -> str:
    mine, theirs = _outcomes(one), _outcomes(other)
    moved = [
        f"{c} {mine.get(c)} and then {theirs.get(c)}" for c in mine if mine[c] != theirs.get(c)
    ]
    return _listed(moved)


def _listed(found: list[str]) -> str:
    more = f" and {len(found) - _FEW} more" if len(found) > _FEW else ""
    return ", ".join(found[:_FEW]) + more
