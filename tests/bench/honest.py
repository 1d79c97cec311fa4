"""Honest submissions lose nothing: variations of right solutions, and partial ones.

    ci/bench honest [TASK…] [--layers none] [--kinds reformatted,slow] [-j 2] [--out FOLDER]

Every variation of the reference solution has to be resolved. A partial one gets what its passing
tests weigh in a run of the bare tests: no layer of the verdict may take anything from it, nor give.
Judged ones are kept in --out, and not judged again there.
"""

import argparse
import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.audit.gate.trials import Trial, judge_trials, manifest, source_of
from sandbox.audit.source.trees import Files, Source
from sandbox.audit.variations.kinds import variations
from sandbox.cli import options
from sandbox.cli.progress import ProgressObserver
from sandbox.model.conditions import Conditions
from sandbox.model.record import Rollout
from sandbox.model.task import TaskId, TaskSpec
from sandbox.rollout.outdir import OutFolder
from sandbox.rollout.run import World
from sandbox.rollout.suite import Plan

PARTIALS = 3
"""Of each task."""


@dataclass(frozen=True, slots=True)
class Asked:
    tasks: tuple[TaskSpec, ...]
    layers: str
    kinds: tuple[str, ...]
    jobs: int
    out: Path
    runtime: str
    as_json: bool


def asked(arguments: Sequence[str] | None = None) -> Asked:
    parser = argparse.ArgumentParser(prog="ci/bench honest", description=__doc__)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--layers", choices=("all", "none"), default="all")
    parser.add_argument("--kinds", default="")
    parser.add_argument("--runtime", default="embedded")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=None)
    found = parser.parse_args(arguments)
    chosen = options.catalogue().choose(None if found.tasks else "core", tuple(found.tasks))
    return Asked(
        tasks=tuple(chosen),
        layers=found.layers,
        kinds=tuple(filter(None, found.kinds.split(","))),
        jobs=found.jobs,
        out=found.out or Path("runs") / f"honest-{found.runtime}",
        runtime=found.runtime,
        as_json=found.json,
    )


def trials_of(source: Source, layers: str, kinds: tuple[str, ...]) -> Iterator[Trial]:
    conditions = Conditions(layers="none" if layers == "none" else "all")
    for found in variations(source, kinds):
        yield Trial(name=found.kind, files=found.files, conditions=conditions)
    if kinds:
        return
    for name, files in partials(source):
        yield Trial(name=f"{name}, naive", files=files, conditions=Conditions(layers="none"))
        if layers != "none":
            yield Trial(name=f"{name}, judged", files=files)


def partials(source: Source) -> Iterator[tuple[str, Files]]:
    """Without some of the hunks, drawn the same way each time."""
    draw = random.Random(len(source.hunks))
    for number in range(1, PARTIALS + 1):
        share = number / (PARTIALS + 1)
        kept = max(1, round(len(source.hunks) * share))
        dropped = draw.sample(source.hunks, max(1, len(source.hunks) - kept))
        yield f"partial {number}", source.without(dropped)


@dataclass(frozen=True, slots=True)
class Row:
    task: TaskId
    variations: int
    resolved: int
    wrong: tuple[str, ...]
    void: tuple[str, ...]
    partial: int
    """Partial submissions whose reward is that of a bare run."""
    partials: int


def row(task: TaskId, done: Mapping[str, Rollout]) -> Row:
    honest = {n: r for n, r in done.items() if not n.startswith("partial ")}
    naive = {n.removesuffix(", naive"): r for n, r in done.items() if n.endswith(", naive")}
    judged = {n.removesuffix(", judged"): r for n, r in done.items() if n.endswith(", judged")}
    wrong = [
        f"{name}: {r.verdict.reason}" for name, r in honest.items()
        if r.verdict and not r.verdict.resolved
    ]  # fmt: skip
    unequal = [
        f"{n}: {r.reward} where a bare run gives {naive[n].reward}"
        for n, r in judged.items()
        if r.reward != naive[n].reward
    ]
    return Row(
        task=task,
        variations=len(honest),
        resolved=sum(bool(r.verdict and r.verdict.resolved) for r in honest.values()),
        wrong=(*wrong, *unequal),
        void=tuple(f"{n}: {r.fault.message}" for n, r in done.items() if r.fault),
        partial=len(judged) - len(unequal),
        partials=len(judged),
    )


def run(wanted: Asked, world: World, out: OutFolder) -> list[Row]:
    trials = {
        t.id: list(trials_of(source_of(t, world.depot), wanted.layers, wanted.kinds))
        for t in wanted.tasks
    }
    tasks = {t.id: t for t in wanted.tasks}
    done = judge_trials(trials, tasks, world, out, Plan(workers=wanted.jobs))
    return [row(task, found) for task, found in done.items()]


def show(rows: Sequence[Row]) -> None:
    print("| task | variations | resolved | partial as naive |")
    print("|---|---|---|---|")
    for r in rows:
        print(f"| {r.task} | {r.variations} | {r.resolved} | {r.partial} of {r.partials} |")
    total = [
        sum(getattr(r, n) for r in rows) for n in ("variations", "resolved", "partial", "partials")
    ]
    print(f"| all | {total[0]} | {total[1]} | {total[2]} of {total[3]} |")
    for r in rows:
        for line in (*r.wrong, *(f"void: {v}" for v in r.void)):
            print(f"{r.task}: {line}")


def main() -> int:
    wanted = asked()
    with (
        ProgressObserver(quiet=False, named=lambda r: f"{r.task}: {r.agent}") as observer,
        OutFolder(wanted.out, manifest(wanted.tasks, wanted.runtime)) as folder,
        options.world(wanted.runtime, observer) as world,
    ):
        rows = run(wanted, world, folder)
    if wanted.as_json:
        for r in rows:
            print(json.dumps({n: getattr(r, n) for n in Row.__slots__}))
    else:
        show(rows)
    return 1 if any(r.wrong or r.void for r in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
