"""Submissions made of the reference solution, and the runs in which they are judged."""

import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sandbox.audit.certify.execute import reference_sha256, runner_digest
from sandbox.audit.source.trees import Files, Source, by_path
from sandbox.formats.digest import Entry, digest_of
from sandbox.formats.patchwrite import make_patch
from sandbox.formats.shape import plain
from sandbox.model.conditions import USUAL, Conditions
from sandbox.model.record import Rollout, Submission
from sandbox.model.task import TaskId, TaskSpec
from sandbox.rollout.outdir import Manifest, OutFolder
from sandbox.rollout.run import World
from sandbox.rollout.suite import Case, Plan, grade_cases
from sandbox.runtime.supplies import Depot, Supplies

AGENT = "check"
_NUMBERS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A submission, and under what conditions it is judged."""

    name: str
    files: Files
    """The declared files as it leaves them."""
    conditions: Conditions = USUAL
    repeat: int = 0
    first_failure: bool = False
    """Enough is known once one test fails."""
    without: tuple[str, ...] = field(default=())
    """Tests that are left out: with `first_failure`, those that fail with the reference solution."""
    only: str = ""
    """The one check that is run."""
    seconds: float | None = None
    """How long the checks may take; as the task has it if not said."""

    @property
    def key(self) -> str:
        """By content: a trial that was judged need not be judged again."""
        files = sorted(
            (e.path, e.kind, hashlib.sha256(e.data).hexdigest()) for e in self.files.values()
        )
        more = [self.first_failure, self.without, self.only, self.seconds]
        about = [files, plain(self.conditions), self.repeat, *more]
        return digest_of(about)


def source_of(task: TaskSpec, depot: Depot) -> Source:
    """Raises a Fault where the task cannot be had."""
    supplies = depot.supply(task)
    return Source(
        by_path(source_files(task, supplies)),
        by_path(depot.solved(task, supplies)),
        by_path(supplies.tests),
    )


def source_files(task: TaskSpec, supplies: Supplies) -> list[Entry]:
    """What a submission may change, as it is pinned."""
    pinned = {e.path for e in supplies.base}
    return [e for e in supplies.base if task.submission.takes(e.path, pinned)]


def manifest(tasks: Iterable[TaskSpec], runtime: str) -> Manifest:
    """Whose folder it is: with another runner or reference solution, other verdicts."""
    chosen = list(tasks)
    what = [[runner_digest(t), reference_sha256(t)] for t in chosen]
    return Manifest(
        agent=AGENT,
        runtime=runtime,
        graded=digest_of(what),
        tasks={t.id: t.digest for t in chosen},
        attempts=_NUMBERS - 1,
    )


def judge_trials(
    trials: Mapping[TaskId, Sequence[Trial]],
    tasks: Mapping[TaskId, TaskSpec],
    world: World,
    out: OutFolder,
    plan: Plan,
) -> dict[TaskId, dict[str, Rollout]]:
    """Task → name of the trial → what came of it; what the folder has is not run again."""
    numbers = {task: numbered(found) for task, found in trials.items()}
    by_task = [
        [(place, _case(tasks[task], t, numbers[task][t.name])) for place, t in enumerate(found)]
        for task, found in trials.items()
    ]
    # The first of every task before the second of any: what is wrong altogether shows early.
    cases = sorted((pair for found in by_task for pair in found), key=lambda pair: pair[0])
    rollouts = grade_cases([case for _, case in cases], world, out, plan)
    done = {(r.task, r.attempt): r for r in rollouts}
    return {
        task: {name: done[task, number] for name, number in by_name.items()}
        for task, by_name in numbers.items()
    }


def numbered(trials: Sequence[Trial]) -> dict[str, int]:
    """Name → number of the attempt: the same in every run, whatever else is tried beside it."""
    keys = {t.name: int(t.key.removeprefix("sha256:")[:12], 16) % _NUMBERS for t in trials}
    taken: dict[int, str] = {}
    for name, number in sorted(keys.items(), key=lambda item: item[0]):
        free = number
        while free in taken:
            free = (free + 1) % _NUMBERS
        taken[free] = name
    return {name: number for number, name in taken.items()}


def _case(task: TaskSpec, trial: Trial, number: int) -> Case:
    return Case(
        task=narrowed(task, trial),
        attempt=number,
        agent=trial.name,
        made=_Maker(task, trial.files),
        conditions=trial.conditions,
    )


def narrowed(task: TaskSpec, trial: Trial) -> TaskSpec:
    """The same task, of which no more is run than the trial needs. Only pytest can be told so."""
    spec = task.verifier
    if trial.seconds is not None:
        spec = replace(spec, seconds=min(spec.seconds, trial.seconds))
    if spec.runner == "pytest" and trial.only:
        spec = replace(spec, arguments=(trial.only,))
    if spec.runner == "pytest" and trial.first_failure:
        more = ["-x", *(f"--deselect={name}" for name in trial.without)]
        usual = spec.options.get("addopts", "")
        addopts = " ".join([usual, *map(shlex.quote, more)]).strip()
        spec = replace(spec, options={**spec.options, "addopts": addopts})
    return replace(task, verifier=spec)


@dataclass(frozen=True, slots=True)
class _Maker:
    task: TaskSpec
    files: Files

    def __call__(self, supplies: Supplies) -> Submission:
        before = source_files(self.task, supplies)
        patch = make_patch(before, self.files.values())
        return Submission(task=self.task.id, patch=patch)
