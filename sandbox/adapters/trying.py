"""Is a task that was just imported one here: does its reference resolve it, and nothing less?"""

from dataclasses import dataclass

from sandbox.errors import UserError
from sandbox.grading.judge import judge
from sandbox.model.record import Submission
from sandbox.model.task import TaskSpec
from sandbox.model.verdict import Evidence, Outcome
from sandbox.rollout.run import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    task: TaskSpec
    solved: Evidence
    """Of the reference solution."""
    idle: Evidence
    """Of nothing at all."""

    def floor(self) -> float:
        """What doing nothing is worth. Raises UserError, when this is no task here."""
        verifier = self.task.verifier
        best, least = judge(verifier, self.solved), judge(verifier, self.idle)
        if not best.resolved:
            why = f"its reference does not resolve it in image `{self.task.image.name}`"
            words = self.solved.detail and f" ({self.solved.detail})"
            raise UserError(f"{why}: {best.reason}{words}")
        if least.resolved:
            raise UserError("doing nothing resolves it: no check depends on the reference")
        return least.reward


def tried(task: TaskSpec, world: World) -> Tried:
    """In boxes: once with the reference solution, once without anything. Raises a Fault."""
    supplies = world.depot.supply(task)
    solution = world.depot.solution(task, supplies)
    solved, idle = (
        world.verify(
            task,
            Submission(task=task.id, patch=patch),
            world.runtime,
            supplies,
            now=world.clocks.wall,
            ticks=world.clocks.ticks,
        )
        for patch in (solution, b"")
    )
    return Tried(task=task, solved=solved, idle=idle)


def meant(cut: str, one: Tried) -> tuple[str, ...]:
    """The tests that an id stands for which was cut at a space, if all of them ended alike."""
    if cut in one.solved.report:
        return (cut,)  # it only looks so
    found = sorted(name for name in one.solved.report if name.startswith(cut))
    outcomes = {(_outcome(one.solved, name), _outcome(one.idle, name)) for name in found}
    return tuple(found) if len(outcomes) == 1 else ()


def passed(evidence: Evidence, test: str) -> bool:
    return _outcome(evidence, test) is Outcome.PASSED


def _outcome(evidence: Evidence, test: str) -> Outcome:
    found = evidence.report.get(test)
    return found.outcome if found else Outcome.MISSING
