"""The least a task has to prove: the reference solution is worth 1, and nothing is worth less."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sandbox.model.record import Rollout
from sandbox.model.task import TaskId, TaskSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """About one task. Sound if there are no problems."""

    task: TaskId
    problems: tuple[str, ...]
    void: bool = False
    """Something of ours failed: nothing was found out."""
    advice: tuple[str, ...] = ()
    """What could be better, though the task is sound."""


def findings(
    tasks: Sequence[TaskSpec],
    oracle: Sequence[Rollout],
    nop: Sequence[Rollout],
    advice: Mapping[TaskId, tuple[str, ...]] | None = None,
) -> list[Finding]:
    """What the two runs say of each task, and what else there is to say of it. Pure."""
    by_oracle = {r.task: r for r in oracle}
    by_nop = {r.task: r for r in nop}
    found = [_finding(t, by_oracle[t.id], by_nop[t.id]) for t in tasks]
    return [replace(f, advice=(advice or {}).get(f.task, ())) for f in found]


def _finding(task: TaskSpec, oracle: Rollout, nop: Rollout) -> Finding:
    faults = [
        f"{r.agent} was void: {r.fault.code}: {r.fault.message}"
        + (f"\n    hint: {r.fault.hint}" if r.fault.hint else "")
        for r in (oracle, nop)
        if r.fault
    ]
    if faults:
        return Finding(task=task.id, problems=tuple(faults), void=True)
    problems = []
    if oracle.verdict and not oracle.verdict.resolved:
        problems.append(f"the reference solution does not resolve it: {oracle.verdict.reason}")
    if nop.verdict and nop.verdict.resolved:
        problems.append("doing nothing resolves it")
    if nop.verdict and oracle.verdict:
        problems += _unmoved(task, oracle, nop)
    return Finding(task=task.id, problems=tuple(problems))


def _unmoved(task: TaskSpec, oracle: Rollout, nop: Rollout) -> list[str]:
    """Scored checks that nothing passes already, and gates that fail before."""
    before = nop.verdict.checks if nop.verdict else {}
    after = oracle.verdict.checks if oracle.verdict else {}
    found = []
    for check in task.verifier.checks:
        passed = before.get(check.id) == "passed"
        if check.gate and not passed and after.get(check.id) == "passed":
            found.append(f"gate {check.id} does not pass before the solution")
        if not check.gate and passed:
            found.append(f"scored check {check.id} passes without the solution")
    return found
