"""stillroom grade --dataset: patches in another tool's words, against imported tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sandbox.adapters.predictions import SortedOut
    from sandbox.model.record import Rollout
    from sandbox.rollout.outdir import Manifest
    from sandbox.rollout.suite import Plan


def grade_dataset(
    file: Path,
    dataset: Path,
    out: Path | None,
    *,
    runtime: str,
    jobs: int,
    retries: int,
    as_json: bool,
    quiet: bool,
) -> int:
    from sandbox.adapters.evaluation import write_reports
    from sandbox.adapters.predictions import BAD_INPUT, sort_out, write_answers
    from sandbox.cli import options
    from sandbox.cli.output import SOME_VOID, finish
    from sandbox.errors import UserError
    from sandbox.formats.digest import digest_of
    from sandbox.formats.shape import plain
    from sandbox.rollout.outdir import RESULTS, Manifest, choose_out, run_name
    from sandbox.rollout.suite import Plan

    shelf = options.catalogue()
    found = sort_out(file, dataset, shelf.tasks(), shelf.load)
    manifest = Manifest(
        agent="graded",
        runtime=runtime,
        graded=digest_of([plain(found.answers), [plain(line) for line in found.lines]]),
        tasks={t.id: t.digest for t in found.tasks.values()},
        attempts=max((line.attempt for line in found.lines), default=0) + 1,
    )
    name = run_name("grade", file.stem, runtime)
    path = out or choose_out(options.RUNS, name, manifest, wanted=len(found.lines))
    plan = Plan(workers=jobs, retries=retries)
    rollouts = _rollouts(found, path, manifest, plan, quiet=quiet)
    write_answers(path, found.answers)
    reports = write_reports(path, shelf.load)
    _show(found, reports, as_json=as_json)
    status = finish(rollouts, path / RESULTS, as_json=as_json)
    kinds = {a.kind for a in found.answers.answers}
    if "not here" in kinds:
        return status or SOME_VOID
    return status or (UserError.exit_status if kinds & BAD_INPUT else 0)


def _rollouts(
    found: SortedOut, path: Path, manifest: Manifest, plan: Plan, *, quiet: bool
) -> Sequence[Rollout]:
    """Where there is nothing to run, no runtime is asked for."""
    from sandbox.cli import options
    from sandbox.cli.progress import ProgressObserver
    from sandbox.rollout.outdir import OutFolder
    from sandbox.rollout.suite import grade_all

    with OutFolder(path, manifest) as folder:
        if not found.lines:
            return []
        with (
            ProgressObserver(quiet=quiet) as observer,
            options.world(manifest.runtime, observer) as world,
        ):
            return grade_all(found.tasks, found.lines, world, folder, plan)


def _show(found: SortedOut, reports: Sequence[Path], *, as_json: bool) -> None:
    """The answer to each that is not graded, and how many there are of each kind."""
    from sandbox.cli.output import print_json
    from sandbox.formats.controls import printable

    answers, counts = found.answers.answers, found.counts
    if as_json:
        for one in answers:
            print_json(one)
        print_json({"counts": counts, "reports": [str(path) for path in reports]})
        return
    for one in answers:
        print(printable(f"{one.where}: {one.kind}: {one.instance_id or '?'}: {one.why}"))
    for path in reports:
        print(f"report: {path}")
    parts = ", ".join(f"{n} {kind}" for kind, n in counts.items() if kind != "predictions")
    print(f"{counts['predictions']} predictions: {parts}")
