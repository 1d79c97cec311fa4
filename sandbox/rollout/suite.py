"""A whole run: supplies first, then rollouts or grades, into one folder."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sandbox.errors import Fault
from sandbox.formats.records import SubmissionLine
from sandbox.model.conditions import USUAL, Conditions
from sandbox.model.record import Ending, Rollout, Submission
from sandbox.model.task import TaskId, TaskSpec
from sandbox.rollout import command
from sandbox.rollout.agent import Agent
from sandbox.rollout.executor import Job, execute
from sandbox.rollout.folder import RolloutFolder
from sandbox.rollout.outdir import OutFolder
from sandbox.rollout.run import Attempt, Made, Stopwatch, World, grade, perform, rollout
from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Supplies


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a run is to go about it."""

    workers: int = 1
    retries: int = 1
    attempts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One rollout to be done, and by whom."""

    task: TaskSpec
    attempt: int
    agent: Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One submission to be graded."""

    task: TaskSpec
    attempt: int
    agent: str
    """Who made it."""
    made: Made
    conditions: Conditions = USUAL


def run_suite(
    tasks: Sequence[TaskSpec], agent: Agent, world: World, out: OutFolder, plan: Plan
) -> list[Rollout]:
    """Each task, `plan.attempts` times, with this agent."""
    # One try at everything before the second at anything: early numbers say more.
    parts = [Part(task=t, attempt=n, agent=agent) for n in range(plan.attempts) for t in tasks]
    return run_parts(parts, world, out, plan)


def run_parts(
    parts: Sequence[Part],
    world: World,
    out: OutFolder,
    plan: Plan,
    after: Callable[[Part, RolloutFolder], None] | None = None,
) -> list[Rollout]:
    """Rollouts that need not have the same agent. after: looks around when one is over."""
    cancelled = threading.Event()

    def job(part: Part) -> Job:
        def run() -> Rollout:
            attempt = _attempt(part.task, part.attempt, world, out)
            done = rollout(attempt, part.agent, cancelled)
            if after:
                after(part, attempt.folder)
            return done

        return Job(task=part.task.id, attempt=part.attempt, run=run)

    tasks = {part.task.id: part.task for part in parts}
    jobs = [job(part) for part in parts]
    return _execute(jobs, list(tasks.values()), world, out, plan, cancelled)


def grade_all(
    tasks: Mapping[TaskId, TaskSpec],
    lines: Iterable[SubmissionLine],
    world: World,
    out: OutFolder,
    plan: Plan,
) -> list[Rollout]:
    """A verdict on each submission."""

    def case(line: SubmissionLine) -> Case:
        made = Submission(task=TaskId(line.task), patch=line.data)
        task = tasks[made.task]
        return Case(task=task, attempt=line.attempt, agent=line.agent, made=lambda _: made)

    return grade_cases([case(line) for line in lines], world, out, plan)


def grade_cases(cases: Sequence[Case], world: World, out: OutFolder, plan: Plan) -> list[Rollout]:
    """A verdict on each submission, each under its own conditions."""

    def job(case: Case) -> Job:
        def run() -> Rollout:
            attempt = _attempt(case.task, case.attempt, world, out)
            return grade(attempt, case.made, case.agent, case.conditions)

        return Job(task=case.task.id, attempt=case.attempt, run=run)

    tasks = {case.task.id: case.task for case in cases}
    jobs = [job(case) for case in cases]
    return _execute(jobs, list(tasks.values()), world, out, plan, threading.Event())


def play_one(
    task: TaskSpec, sit: Callable[[Attempt, Box], None], world: World, out: OutFolder
) -> Rollout:
    """One rollout in which a person takes the agent's part, in this thread."""
    attempt = _attempt(task, 0, world, out)

    def work(box: Box, supplies: Supplies) -> tuple[int, Ending]:
        del supplies
        sit(attempt, box)
        return 0, Ending.SUBMITTED

    done = perform(attempt, "person", work)
    out.add(done)
    return done


def reap(runtime: Runtime, store: Store) -> list[str]:
    """Remove what dead runs left: boxes, agents' programs, scratch folders."""
    return [*runtime.reap(), *command.reap(store), *store.reap()]


def _attempt(task: TaskSpec, number: int, world: World, out: OutFolder) -> Attempt:
    folder = out.rollout(task.id, number)
    folder.fresh()
    return Attempt(
        task=task,
        number=number,
        world=world,
        folder=folder,
        watch=Stopwatch(world.clocks.ticks, world.clocks.wall),
    )


def _execute(
    jobs: list[Job],
    tasks: Sequence[TaskSpec],
    world: World,
    out: OutFolder,
    plan: Plan,
    cancelled: threading.Event,
) -> list[Rollout]:
    finished = out.finished()
    open_tasks = {j.task for j in jobs if (j.task, j.attempt) not in finished}
    for i, task in enumerate(t for t in tasks if t.id in open_tasks):
        world.observer.preparing("tasks", i, len(open_tasks))
        # A task that cannot be supplied is void, by name; the others go on.
        with suppress(Fault):
            world.depot.supply(task)
    return execute(
        jobs,
        out,
        world.observer,
        workers=plan.workers,
        retries=plan.retries,
        cancelled=cancelled,
    )
