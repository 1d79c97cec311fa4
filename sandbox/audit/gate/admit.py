"""All of the gate for some tasks: the agents' runs, the trials, and what else there is to see."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sandbox.audit.gate import levels, said, standing
from sandbox.audit.gate.attacks import of_exploits
from sandbox.audit.gate.finding import Finding, finding
from sandbox.audit.gate.levels import SIZES, Level, Sizes
from sandbox.audit.gate.look import of_leaks
from sandbox.audit.gate.trials import AGENT, Trial, judge_trials, manifest, source_of
from sandbox.audit.gate.unsaid import unsaid
from sandbox.audit.mutants.explained import explained
from sandbox.audit.pins import advise
from sandbox.audit.source.trees import Source
from sandbox.errors import Fault
from sandbox.formats.digest import digest_of
from sandbox.formats.shape import plain
from sandbox.model.record import Rollout
from sandbox.model.task import TaskId, TaskSpec
from sandbox.rollout.agents import Nop, Oracle
from sandbox.rollout.outdir import Manifest, OutFolder, run_name
from sandbox.rollout.run import World
from sandbox.rollout.suite import Plan, run_suite
from sandbox.runtime.repo.pins import read_files

_AGENTS = (Oracle(), Nop())
_LEAST_SECONDS, _TIMES = 16, 5
"""How long a wrong version may take: it may go round for ever, and time is what that costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found out about one task. It is admitted if nothing is an error."""

    task: TaskId
    findings: tuple[Finding, ...]
    advice: tuple[str, ...] = ()
    """What could be better, though the task is sound."""

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(f.evidence for f in self.findings if f.severity == "error")

    @property
    def failed(self) -> bool:
        """Something keeps the task out, and it is no fault of ours."""
        return any(f.severity == "error" and f.id != "SR-VOID" for f in self.findings)

    @property
    def void(self) -> bool:
        """Something of ours failed, so that not everything was found out."""
        return any(f.id == "SR-VOID" for f in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    tasks: tuple[TaskSpec, ...]
    level: Level
    world: World
    out: Path
    """Folders for the agents' runs and for the trials; what is there is not run again."""
    plan: Plan
    exploits: str = ""
    """Which of them, by id or family; none if not said."""
    runs: dict[str, list[Rollout]] = field(default_factory=dict)
    """Agent → its rollouts, once there are some."""

    def reports(self) -> list[Report]:
        for agent in _AGENTS:
            with OutFolder(self.folder(agent.name), self._manifest(agent.name)) as folder:
                self.runs[agent.name] = run_suite(self.tasks, agent, self.world, folder, self.plan)
        oracle, nop = ({r.task: r for r in self.runs[a.name]} for a in _AGENTS)
        found = {t.id: [*said.of_agents(t, oracle[t.id], nop[t.id])] for t in self.tasks}
        # What does not hold without any variation is not worth varying.
        sound = [t for t in self.tasks if not any(f.severity == "error" for f in found[t.id])]
        sources = {t.id: source_of(t, self.world.depot) for t in sound}
        for name, more in self._trials(sound, sources).items():
            found[name] += more
        with ThreadPoolExecutor(self.plan.workers) as threads:
            looks = threads.map(partial(self._looked, sources=sources), sound)
            for task, leaks in zip(sound, looks, strict=True):
                found[task.id] += leaks
        if self.exploits and sound:
            attacked = of_exploits(sound, self.exploits, self.world, self.out, self.plan)
            for name, more in attacked.items():
                found[name] += more
        for task in sound:
            found[task.id] += self._standing(task, sources[task.id], oracle[task.id])
        advice = advise(self.tasks, self.world.depot)
        return [
            Report(task=t.id, findings=tuple(found[t.id]), advice=advice.get(t.id, ()))
            for t in self.tasks
        ]

    def folder(self, name: str) -> Path:
        return self.out / name

    def _manifest(self, agent: str) -> Manifest:
        return Manifest(
            agent=agent,
            runtime=self.world.runtime.name,
            tasks={t.id: t.digest for t in self.tasks},
            attempts=1,
        )

    def _trials(
        self, sound: Sequence[TaskSpec], sources: Mapping[TaskId, Source]
    ) -> dict[TaskId, list[Finding]]:
        sizes = SIZES[self.level]
        tasks = {t.id: t for t in sound}
        first = {t.id: list(levels.first_trials(t, sources[t.id], sizes)) for t in sound}
        if not sound or not any(first.values()):
            return {}
        asked = manifest(sound, self.world.runtime.name)
        with OutFolder(self.folder(f"trials-{state(asked)}"), asked) as folder:
            done = judge_trials(first, tasks, self.world, folder, self.plan)
            second = {
                t.id: wrong_trials(t, sources[t.id], sizes, done[t.id], folder)
                for t in sound
                if not any(r.fault for r in done[t.id].values())
            }
            more = judge_trials(second, tasks, self.world, folder, self.plan)
        return {
            t.id: [*said.of_trials({**done[t.id], **more.get(t.id, {})}, explained(t))]
            for t in sound
        }

    def _looked(self, task: TaskSpec, *, sources: Mapping[TaskId, Source]) -> list[Finding]:
        return of_leaks(task, sources[task.id], self.world, self.out)

    def _standing(self, task: TaskSpec, source: Source, oracle: Rollout) -> list[Finding]:
        supplies = self.world.depot.supply(task)
        found = [*standing.of_certificate(task), *standing.of_cost(task, oracle)]
        try:
            found += standing.of_layers(task)
        except Fault as e:
            found.append(finding("SR-VOID", f"{e.code}: {e}", e.hint))
        names = unsaid(source, read_files(supplies.repo), supplies.tests, task.instruction)
        return found + [finding("SR-UNSAID", ", ".join(names))] * bool(names)


def folder_name(what: str, tasks: Sequence[TaskSpec], runtime: str) -> str:
    """The same for the same tasks in the same state: what was judged is found again."""
    return f"{run_name(AGENT, what, runtime)}-{state(manifest(tasks, runtime))}"


def state(about: Manifest) -> str:
    """Of the tasks, their reference solutions and runners, in a few characters."""
    return digest_of(plain(about)).removeprefix("sha256:")[:8]


def wrong_trials(
    task: TaskSpec,
    source: Source,
    sizes: Sizes,
    done: Mapping[str, Rollout],
    folder: OutFolder,
) -> list[Trial]:
    """What each has to fail, in the light of how the reference solution does, bare."""
    bare = done.get(levels.BARELY)
    if bare is None:
        return []
    evidence = folder.rollout(bare.task, bare.attempt).read_evidence()
    fails = [n for n, r in evidence.report.items() if r.outcome.value in ("failed", "error")]
    checks = [c.id for c in task.verifier.checks]
    # pytest leaves out every test whose id begins so.
    early = not any(c.startswith(n) for n in fails for c in checks) and not evidence.detail
    seconds = max(_LEAST_SECONDS, 2 ** math.ceil(math.log2(max(evidence.seconds, 1) * _TIMES)))
    without = tuple(sorted(fails)) if early else None
    return list(levels.wrong_trials(source, sizes, seconds=float(seconds), without=without))
