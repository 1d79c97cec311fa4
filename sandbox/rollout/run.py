"""Task + agent + runtime → rollout. Read top to bottom; nothing calls back up."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sandbox.errors import Fault, RuntimeFault
from sandbox.grading.collect import collect
from sandbox.grading.judge import judge_as_asked
from sandbox.grading.verify import verify
from sandbox.model.conditions import USUAL, Conditions
from sandbox.model.layers import Layers
from sandbox.model.record import Ending, FaultRecord, Rollout, Submission, VerdictRecord
from sandbox.model.step import Observation, Status, Step, Submit, TerminalAction
from sandbox.model.task import Limits, TaskSpec
from sandbox.model.verdict import Evidence
from sandbox.rollout.agent import Agent, Opening, Session
from sandbox.rollout.folder import Recorded, RolloutFolder
from sandbox.rollout.network import network_of
from sandbox.rollout.observer import Observer
from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.freeze.hold import held, stillness
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.supplies import Depot, Supplies
from sandbox.runtime.terminal import ENVIRONMENT, Terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Time is an argument: `wall` in seconds since the epoch, `ticks` monotonic."""

    wall: Callable[[], float] = time.time
    ticks: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What rollouts share."""

    runtime: Runtime
    depot: Depot
    observer: Observer = field(default_factory=Observer)
    clocks: Clocks = field(default_factory=Clocks)
    verify: Callable[..., Evidence] = verify
    """Who asks much of the same may remember the answers; see audit.exploits.memo."""


class Stopwatch:
    """When a try began, and wall seconds per phase."""

    def __init__(self, ticks: Callable[[], float], wall: Callable[[], float] = time.time) -> None:
        self._ticks = ticks
        self._began = ticks()
        self.started = datetime.fromtimestamp(wall(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = self._ticks()
        try:
            yield
        finally:
            self.seconds[name] = round(self._ticks() - began, 4)

    def elapsed(self) -> float:
        return self._ticks() - self._began

    def total(self) -> dict[str, float]:
        return self.seconds | {"total": round(self.elapsed(), 4)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at one task: what it needs, and where its files go."""

    task: TaskSpec
    number: int
    world: World
    folder: RolloutFolder
    watch: Stopwatch

    def begun(self, agent: str, ending: Ending | None = None) -> Rollout:
        return Rollout(
            task=self.task.id,
            task_digest=self.task.digest,
            attempt=self.number,
            agent=agent,
            runtime=self.world.runtime.name,
            started=self.watch.started,
            ending=ending,
            # A submission that was made elsewhere says nothing of what its maker reached.
            network="none" if ending is Ending.GRADED else self.task.network.mode,
        )

    def recorded(self, rows: int, cols: int) -> Recorded:
        """terminal.cast of this attempt."""
        clocks = self.world.clocks
        return self.folder.cast(
            rows, cols, wall=clocks.wall, ticks=clocks.ticks, title=self.task.id
        )

    def phase(self, name: str) -> AbstractContextManager[None]:
        self.world.observer.phase(self.task.id, self.number, name)
        return self.watch.phase(name)


ROWS, COLS = 40, 160
"""Of the window an agent has."""
_ENDINGS = {Status.STOPPED: Ending.BOX_STOPPED, Status.SHELL_LOST: Ending.SHELL_LOST}
"""The first shell did start. In a box that stands, what is wrong is the agent's doing; void would be
a way to try again, and would lose its work."""
Work = Callable[[Box, Supplies], tuple[int, Ending]]
"""What is done in the agent's box: how many steps it took, and how it ended."""
Made = Callable[[Supplies], Submission]
"""A submission that was made elsewhere; the reference solution's comes from the task's supplies."""


def rollout(attempt: Attempt, agent: Agent, cancelled: threading.Event) -> Rollout:
    """One rollout, from a fresh box to a verdict or a fault. Its files go to the folder."""

    def work(box: Box, supplies: Supplies) -> tuple[int, Ending]:
        session = agent.begin(_opening(attempt, supplies, cancelled))
        try:
            return drive(session, box, attempt)
        finally:
            session.close()

    return perform(attempt, agent.name, work)


def perform(attempt: Attempt, who: str, work: Work) -> Rollout:
    """A rollout in which `work` takes the agent's part."""
    record = attempt.begun(who)
    try:
        supplies = attempt.world.depot.supply(attempt.task)
        submission, record = _agent_part(attempt, work, supplies, record)
        record = _graded(attempt, submission, supplies, record)
    except Fault as e:
        record = replace(record, fault=_fault(e))
    return replace(record, seconds=attempt.watch.total())


def grade(attempt: Attempt, made: Made, agent: str, conditions: Conditions = USUAL) -> Rollout:
    """A verdict on a submission that was made elsewhere."""
    record = attempt.begun(agent, Ending.GRADED)
    try:
        supplies = attempt.world.depot.supply(attempt.task)
        record = _graded(attempt, made(supplies), supplies, record, conditions)
    except Fault as e:
        record = replace(record, fault=_fault(e))
    return replace(record, seconds=attempt.watch.total())


def agent_box(task: TaskSpec, supplies: Supplies) -> BoxSpec:
    """The box an agent works in: the image, the repository and the clock, and nothing else of the task.

    The clock ticks, whatever the verifier's does: somebody works there.
    """
    return BoxSpec(
        image=supplies.image,
        seeds=(supplies.seed,),
        limits=task.limits,
        env={**ENVIRONMENT, **task.env},
        workdir=task.workdir,
        still=stillness(replace(task.clock, mode="ticking")),
        labels={"task": task.id, "role": "agent"},
    )


@contextmanager
def standing(world: World, task: TaskSpec, supplies: Supplies, spec: BoxSpec) -> Iterator[Box]:
    """The agent's box, its clock held as well as this machine can."""
    strict, now = task.clock.strict, world.clocks.wall
    with (
        held(spec, world.runtime, supplies.scratch, strict=strict, now=now) as hold,
        world.runtime.create(hold.spec) as box,
    ):
        yield box


def _opening(attempt: Attempt, supplies: Supplies, cancelled: threading.Event) -> Opening:
    task, depot = attempt.task, attempt.world.depot
    return Opening(
        task=task.id,
        attempt=attempt.number,
        instruction=task.instruction,
        workdir=task.workdir,
        limits=task.limits,
        folder=attempt.folder.path,
        cancelled=cancelled,
        reference=lambda: depot.solution(task, supplies),
    )


def _agent_part(
    attempt: Attempt, work: Work, supplies: Supplies, record: Rollout
) -> tuple[Submission, Rollout]:
    with ExitStack() as stack:
        with attempt.phase("box"):
            task, world = attempt.task, attempt.world
            link = stack.enter_context(network_of(task, world.depot, attempt.folder.path))
            spec = link.joined(agent_box(task, supplies))
            box = stack.enter_context(standing(world, task, supplies, spec))
            link.start(box)
        with attempt.phase("agent"):
            steps, ending = work(box, supplies)
        link.check()
        with attempt.phase("collect"):
            submission = collect(box, attempt.task, supplies, ticks=attempt.world.clocks.ticks)
    return submission, replace(record, steps=steps, ending=ending)


def drive(session: Session, box: Box, attempt: Attempt) -> tuple[int, Ending]:
    """The one loop: observe, act, until the agent submits or a limit is reached."""
    limits, ticks = attempt.task.limits, attempt.world.clocks.ticks
    until = ticks() + limits.wall_seconds
    seen = Observation(cwd=attempt.task.workdir)
    with (
        attempt.recorded(ROWS, COLS) as tape,
        attempt.folder.events(attempt.watch.elapsed, attempt.watch.started) as log,
        Terminal(
            box,
            cwd=attempt.task.workdir,
            command_seconds=limits.command_seconds,
            output_bytes=limits.output_bytes,
            rows=ROWS,
            cols=COLS,
            folder=attempt.folder.spool,
            tape=tape,
        ) as terminal,
    ):
        log.task(attempt.task, attempt.number)
        for number in range(limits.turns):
            action = session.act(seen)
            left = until - ticks()
            if left <= 0:
                return number, Ending.WALL_TIME
            log.action(number + 1, action)
            if isinstance(action, Submit):
                return number, Ending.SUBMITTED
            seen = terminal.do(_bounded(action, limits, left))
            log.observation(number + 1, seen)
            attempt.world.observer.stepped(attempt.task.id, attempt.number, Step(action, seen))
            if seen.status is Status.BOX_LOST:
                raise RuntimeFault("the box was lost")
            if ending := _ENDINGS.get(seen.status):
                return number + 1, ending
    return limits.turns, Ending.TURNS


def _bounded(action: TerminalAction, limits: Limits, left: float) -> TerminalAction:
    """With the time that is left. NaN compares as neither less nor more: `min` keeps the first."""
    asked = limits.command_seconds if action.seconds is None else action.seconds
    return replace(action, seconds=min(left, asked))


def _graded(
    attempt: Attempt,
    submission: Submission,
    supplies: Supplies,
    record: Rollout,
    conditions: Conditions = USUAL,
) -> Rollout:
    attempt.folder.write_patch(submission.patch)
    record = replace(
        record,
        patch_sha256=hashlib.sha256(submission.patch).hexdigest(),
        patch_bytes=len(submission.patch),
    )
    with attempt.phase("verify"):
        evidence = attempt.world.verify(
            attempt.task,
            submission,
            attempt.world.runtime,
            supplies,
            attempt=attempt.number,
            conditions=conditions,
            now=attempt.world.clocks.wall,
            ticks=attempt.world.clocks.ticks,
        )
    attempt.watch.seconds["checks"] = evidence.seconds
    attempt.folder.write_evidence(evidence)
    warning = evidence.clock.warning if evidence.clock else ""
    verdict = verdict_record(attempt.task, evidence, supplies.layers)
    return replace(record, verdict=verdict, warning=warning)


def verdict_record(task: TaskSpec, evidence: Evidence, layers: Layers) -> VerdictRecord:
    verdict = judge_as_asked(task.verifier, evidence, layers)
    return VerdictRecord(
        reward=verdict.reward,
        resolved=verdict.resolved,
        reason=verdict.reason,
        checks={c.spec.id: c.outcome.value for c in verdict.checks},
        flags=verdict.flags,
    )


def _fault(error: Fault) -> FaultRecord:
    return FaultRecord(code=error.code, message=str(error), hint=error.hint, retry=error.retry)
