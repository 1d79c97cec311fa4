"""The runs of a certificate: every submission, under every shift, into one folder."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.audit.certify.certificate import Now
from sandbox.audit.certify.findings import NOP, ORACLE, Finding, examine
from sandbox.audit.certify.shifts import Shift, all_shifts, choose
from sandbox.errors import RuntimeFault, SpecError, UserError
from sandbox.formats.digest import Entry, digest_of, tree_digest
from sandbox.formats.layerfile import load_layers
from sandbox.formats.records import SubmissionLine, read_submissions
from sandbox.formats.shape import plain
from sandbox.grading.pattern import as_tests
from sandbox.model.conditions import Conditions
from sandbox.model.record import Rollout, Submission
from sandbox.model.task import Digest, TaskId, TaskSpec
from sandbox.model.verdict import Evidence
from sandbox.rollout.outdir import Manifest, OutFolder
from sandbox.rollout.run import World
from sandbox.rollout.suite import Case, Plan, grade_cases
from sandbox.runtime.supplies import Depot, Supplies, runner_files

AGENT = "certify"
STORED = "submissions.jsonl"
"""Beside task.yaml: submissions whose verdicts are to stay the same, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A task, what is submitted to it, and what is moved meanwhile."""

    task: TaskSpec
    submissions: Mapping[str, bytes | None]
    """Name → patch; None for the reference solution, which its repository has."""
    shifts: tuple[Shift, ...]

    def cases(self, depot: Depot) -> Iterator[Case]:
        """The number of each is that of its submission and shift, the same in every run."""
        pairs = [(name, shift) for shift in self.shifts for name in self.submissions]
        for number, (name, shift) in enumerate(pairs):
            yield Case(
                task=self.task,
                attempt=number,
                agent=f"{name} with {shift.name}",
                made=self._maker(name, depot),
                conditions=_conditions(name, shift),
            )

    def _maker(self, name: str, depot: Depot) -> "Maker":
        return Maker(self.task, self.submissions[name], depot)


def _conditions(submission: str, shift: Shift) -> Conditions:
    """The reference solution passes every test and fails every canary: it can tell of both at once.

    Not in another order: what a failed test leaves behind is met by another one then, and verdicts
    are made in the usual order.
    """
    both = submission == ORACLE and shift.conditions.order is None
    return replace(shift.conditions, layers="mixed" if both else "none", draw=shift.name)


@dataclass(frozen=True, slots=True)
class Maker:
    task: TaskSpec
    patch: bytes | None
    depot: Depot

    def __call__(self, supplies: Supplies) -> Submission:
        patch = self.depot.solution(self.task, supplies) if self.patch is None else self.patch
        return Submission(task=self.task.id, patch=patch)


def trial(task: TaskSpec, lines: Sequence[SubmissionLine], names: Sequence[str]) -> Trial:
    """names: of the shifts; all of them if none is named."""
    refuse_open(task)
    shifts = all_shifts(task.clock)
    return Trial(
        task=task,
        submissions=submissions(task, lines),
        shifts=choose(shifts, names) if names else shifts,
    )


def refuse_open(task: TaskSpec) -> None:
    """Raises UserError: what the network says is under nobody's control."""
    if not task.network.certifiable:
        raise UserError(
            f"`{task.id}` cannot be certified: its agent's box reaches the open network",
            hint="record what it needs, and set `network.mode: replay`",
        )


def submissions(task: TaskSpec, lines: Sequence[SubmissionLine]) -> dict[str, bytes | None]:
    """The reference solution, nothing, what is stored beside the task, and what was given."""
    stored = Path(task.home) / "task_specs" / task.id / STORED
    kept = read_submissions(stored) if stored.exists() else []
    for number, line in enumerate(kept, 1):
        if line.task != task.id:
            raise SpecError(f"a submission to `{line.task}`", where=f"{stored}:{number}")
    found: dict[str, bytes | None] = {ORACLE: None, NOP: b""}
    for line in (*kept, *(x for x in lines if x.task == task.id)):
        # By content: the same one twice is one.
        digest = hashlib.sha256(line.data).hexdigest()
        found[f"submission-{digest[:12]}"] = line.data
    return found


def manifest(trials: Sequence[Trial], runtime: str) -> Manifest:
    """Whose folder it is: one with other shifts or submissions has its numbers for other things."""
    what = [
        [
            runner_digest(t.task),
            reference_sha256(t.task),
            list(t.submissions),
            [plain(s) for s in t.shifts],
        ]
        for t in trials
    ]
    return Manifest(
        agent=AGENT,
        runtime=runtime,
        graded=digest_of(what),
        tasks={t.task.id: t.task.digest for t in trials},
        attempts=max(len(t.submissions) * len(t.shifts) for t in trials),
    )


def total(trials: Sequence[Trial]) -> int:
    return sum(len(t.submissions) * len(t.shifts) for t in trials)


def certify(trials: Sequence[Trial], world: World, out: OutFolder, plan: Plan) -> list[Finding]:
    """Run what has not been run yet, and say of each task what varied.

    Raises RuntimeFault where the clock of some programs only can be held: what the others would
    show, nobody saw.
    """
    if lacks := world.runtime.capabilities().still:
        raise RuntimeFault(
            f"no certificate can be given here: {lacks}",
            hint="`stillroom doctor` says what this machine lacks; or use another --runtime",
            retry=False,
        )
    by_task = {t.task.id: list(t.cases(world.depot)) for t in trials}
    # The first of every task before the second of any: what is wrong altogether shows early.
    cases = sorted((c for found in by_task.values() for c in found), key=lambda c: c.attempt)
    done = {(r.task, r.attempt): r for r in grade_cases(cases, world, out, plan)}
    return [_finding(t, by_task[t.task.id], done, out) for t in trials]


def _finding(
    trial: Trial,
    cases: Sequence[Case],
    done: Mapping[tuple[TaskId, int], Rollout],
    out: OutFolder,
) -> Finding:
    rollouts = [done[c.task.id, c.attempt] for c in cases]
    if void := tuple(_said(r) for r in rollouts if r.fault):
        return Finding(task=trial.task.id, void=void)
    seen = iter(rollouts)
    canaries = load_layers(trial.task).canaries
    runs: dict[str, dict[str, Evidence]] = {name: {} for name in trial.submissions}
    patches: dict[str, str] = {}
    for shift in trial.shifts:
        for name in trial.submissions:
            rollout = next(seen)
            evidence = out.rollout(rollout.task, rollout.attempt).read_evidence()
            runs[name][shift.name] = as_tests(evidence, canaries)
            patches[name] = rollout.patch_sha256
    return examine(trial.task, trial.shifts, runs, patches)


def _said(void: Rollout) -> str:
    fault = void.fault
    said = f"{void.agent}: {fault.code}: {fault.message}" if fault else void.agent
    return f"{said}\n    hint: {fault.hint}" if fault and fault.hint else said


def now(task: TaskSpec) -> Now:
    """What a certificate of this task has to be about."""
    return Now(
        task=task,
        runner=runner_digest(task),
        submissions=frozenset(submissions(task, ())),
        reference_sha256=reference_sha256(task),
    )


def reference_sha256(task: TaskSpec) -> str:
    """Of the reference solution, when it is a file; a pinned one is in the task's digest."""
    if task.solution.patch is None:
        return ""
    path = Path(task.home) / "task_specs" / task.id / task.solution.patch
    return hashlib.sha256(path.read_bytes()).hexdigest()


def runner_digest(task: TaskSpec) -> Digest:
    """Of what runs the hidden tests in the box."""
    files = runner_files(Path(task.home))
    return tree_digest(Entry(name, "file", data) for name, data in files.items())
