"""How many wrong versions of each reference solution fail a check of its task.

    ci/bench mutants [TASK…] [--most 25] [-j 1] [--out FOLDER]

Survivors are printed with the line they change, those that verifiers/<task>/mutants.yaml explains
with the reason. Judged ones are kept in --out, and not judged again there.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.audit.gate.admit import wrong_trials
from sandbox.audit.gate.levels import MUTANT, Sizes, first_trials
from sandbox.audit.gate.trials import judge_trials, manifest, source_of
from sandbox.audit.mutants.explained import explained, reason
from sandbox.cli import options
from sandbox.cli.progress import ProgressObserver
from sandbox.model.record import Rollout
from sandbox.model.task import TaskId, TaskSpec
from sandbox.rollout.outdir import OutFolder
from sandbox.rollout.run import World
from sandbox.rollout.suite import Plan


@dataclass(frozen=True, slots=True)
class Row:
    task: TaskId
    killed: int
    explained: tuple[str, ...]
    survived: tuple[str, ...]
    void: tuple[str, ...]

    @property
    def score(self) -> float:
        """Of those that some test has to fail."""
        counted = self.killed + len(self.survived)
        return self.killed / counted if counted else 1.0


def row(task: TaskId, done: Mapping[str, Rollout], reasons: Mapping[str, str]) -> Row:
    told = {n.partition(" ")[2]: r for n, r in done.items() if n.startswith(f"{MUTANT} ")}
    lives = [n for n, r in told.items() if r.verdict and r.verdict.resolved]
    return Row(
        task=task,
        killed=sum(bool(r.verdict and not r.verdict.resolved) for r in told.values()),
        explained=tuple(f"{n}: {why}" for n in lives if (why := reason(reasons, n))),
        survived=tuple(n for n in lives if not reason(reasons, n)),
        void=tuple(f"{n}: {r.fault.message}" for n, r in told.items() if r.fault),
    )


def run(
    tasks: Sequence[TaskSpec], most: int, world: World, out: OutFolder, plan: Plan
) -> list[Row]:
    by_id = {t.id: t for t in tasks}
    sources = {t.id: source_of(t, world.depot) for t in tasks}
    sizes = Sizes(references=0, nothings=1, mutants=most)
    first = {t.id: list(first_trials(t, sources[t.id], sizes)) for t in tasks}
    done = judge_trials(first, by_id, world, out, plan)
    second = {t.id: wrong_trials(t, sources[t.id], sizes, done[t.id], out) for t in tasks}
    found = judge_trials(second, by_id, world, out, plan)
    return [row(t.id, found[t.id], explained(t)) for t in tasks]


def show(rows: Sequence[Row]) -> None:
    print("| task | wrong versions | fail a check | explained | survive | score |")
    print("|---|---|---|---|---|---|")
    for r in rows:
        total = r.killed + len(r.explained) + len(r.survived)
        counts = (total, r.killed, len(r.explained), len(r.survived), f"{r.score:.0%}")
        print(f"| {r.task} | " + " | ".join(map(str, counts)) + " |")
    for r in rows:
        for what in ("survived", "explained", "void"):
            for line in getattr(r, what):
                print(f"{r.task}: {what}: {line}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/bench mutants", description=__doc__)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--most", type=int, default=25, help="of each task")
    parser.add_argument("--runtime", default="embedded")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs") / "mutants")
    asked = parser.parse_args()
    tasks = options.catalogue().choose(None if asked.tasks else "core", tuple(asked.tasks))
    with (
        ProgressObserver(quiet=False, named=lambda r: f"{r.task}: {r.agent}") as observer,
        OutFolder(asked.out, manifest(tasks, asked.runtime)) as folder,
        options.world(asked.runtime, observer) as world,
    ):
        rows = run(tasks, asked.most, world, folder, Plan(workers=asked.jobs))
    show(rows)
    return 1 if any(r.void or r.score < 0.8 for r in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
