"""stillroom import: other tools' tasks become tasks of ours. One command for each kind of source."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandbox.cli.options import AsJson, Jobs, RuntimeName
from sandbox.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sandbox.adapters.harbor.batch import Batch, Outcome
    from sandbox.adapters.harbor.report import Row
    from sandbox.adapters.importing import ImportReport
    from sandbox.rollout.run import World

app = typer.Typer(
    help="Make tasks of other tools' data. What cannot run here is listed, with the reason.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
Home = Annotated[
    Path, typer.Option("--out", "-o", help="Where task_specs/, verifiers/ and repos/ are written.")
]


def show_report(report: ImportReport, written: Path, *, as_json: bool) -> int:
    """The end of an import: what was made, what was not, and why. `written`: where it stands."""
    from sandbox.cli.output import print_json
    from sandbox.errors import UserError
    from sandbox.formats.controls import printable

    status = UserError.exit_status if any(one.unread for one in report.not_here) else 0
    if as_json:
        for one in (*report.converted, *report.not_here):
            print_json(one)
        counts = {"read": report.read, "imported": len(report.converted)}
        print_json({"summary": counts | {"not_here": len(report.not_here)}, "report": str(written)})
        return status
    for made in report.converted:
        print(
            f"{made.task}: {'was imported before, and is left as it is' if made.kept else 'made'}"
        )
        for note in made.notes:
            print(printable(f"  note: {note}"))
    for missing in report.not_here:
        said = f"{missing.where}: {missing.name or '?'}" if missing.unread else missing.name
        print(printable(f"{said}: {'not read' if missing.unread else 'cannot run here'}"))
        for reason in missing.reasons:
            print(printable(f"  {reason}"))
    for fate in report.fields:
        print(printable(f"field {fate.field} ({fate.count}): {fate.fate}: {fate.why}"))
    print(f"\n{len(report.converted)} of {report.read} are tasks now\n{written.absolute()}")
    return status


Data = Annotated[Path, typer.Argument(help="JSON Lines, JSON, or the folder of a task repository.")]
Clones = Annotated[
    list[str] | None,
    typer.Option("--repos", help="A folder of clones, or OWNER/NAME=CLONE. May be repeated."),
]
Images = Annotated[
    list[str] | None,
    typer.Option(
        "--image", help="An image of repos/images/, or OWNER/NAME=IMAGE. May be repeated."
    ),
]

TryThem = Annotated[
    bool,
    typer.Option(
        "--try", help="In a box: what its reference does not resolve, or nothing does, is no task."
    ),
]


@app.command("swebench")
def swebench(
    data: Data,
    *,
    out: Home = Path(),
    repos: Clones = None,
    image: Images = None,
    try_them: TryThem = False,
    runtime: RuntimeName = "embedded",
    jobs: Jobs = min(os.cpu_count() or 1, 4),
    as_json: AsJson = False,
) -> int:
    """Make tasks of SWE-bench data: Full, Lite, Verified, Multimodal, 5.x, SWE-smith, Pro.

    Nothing is fetched: an instance needs a clone of its repository on this machine. The report says
    of each instance what it became or why it cannot run here, and of each field what became of it.
    Exit code 2 says that some of it could not be read.

    \b
    Examples:
      stillroom import swebench lite.jsonl --repos clones
      stillroom import swebench lite.jsonl --repos clones --out mine --try
      stillroom import swebench verified.json --repos psf/requests=../requests --image web
      stillroom import swebench swe-bench-multimodal-dockerfiles --out mm --json
    """
    from sandbox.adapters.swebench import USUAL_IMAGE, Shelf, import_dataset
    from sandbox.cli import options
    from sandbox.formats import jsonfile

    clones, folders = _pairs(repos)
    for place in map(Path, (*clones.values(), *folders)):
        if not place.is_dir():
            raise UserError(
                f"--repos {place}: no such folder", hint="a clone, or a folder of clones"
            )
    images, usual = _pairs(image)
    if len(usual) > 1:
        raise UserError("--image names two images for the same", hint="OWNER/NAME=IMAGE for others")
    shelf = Shelf(
        home=out,
        store=options.store(),
        folders=tuple(map(Path, folders)),
        repos={name: Path(path) for name, path in clones.items()},
        images=images,
        image=usual[0] if usual else USUAL_IMAGE,
    )
    with _trial(runtime) if try_them else nullcontext() as world:
        report = import_dataset(data, replace(shelf, world=world, jobs=jobs))
    written = out / "imports" / f"{data.resolve().stem}.json"
    jsonfile.write(written, jsonfile.dumps(report))
    return show_report(report, written, as_json=as_json)


@contextmanager
def _trial(runtime: str) -> Iterator[World]:
    from sandbox.cli import options
    from sandbox.cli.progress import ProgressObserver

    with ProgressObserver(quiet=False) as observer, options.world(runtime, observer) as world:
        yield world


def _pairs(given: list[str] | None) -> tuple[dict[str, str], list[str]]:
    """NAME=VALUE, and what is no such pair."""
    pairs = [text.partition("=") for text in given or ()]
    return {n: v for n, mark, v in pairs if mark}, [n for n, mark, _ in pairs if not mark]


Theirs = Annotated[Path, typer.Argument(help="A task's folder, or a folder of such folders.")]
Bases = Annotated[
    list[str] | None,
    typer.Option(
        "--base", help="What FROM stands for: NAME=IMAGE of repos/images/. May be repeated."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Write over tasks that are there.")]


@app.command("harbor")
def harbor(
    folder: Theirs,
    *,
    out: Home = Path(),
    base: Bases = None,
    force: Force = False,
    runtime: RuntimeName = "embedded",
    as_json: AsJson = False,
) -> int:
    """Make tasks of Harbor's: task.toml of schema 1.0 to 1.4, its environment, tests and solution.

    The Dockerfile's packages become an image of Debian's and PyPI's; the rest of it is done in a
    box, once. The solution is run and judged, and so is doing nothing. What a test script would
    install while it grades is answered offline. Every field is accounted for; what cannot be had
    here with its meaning is refused, by name.

    \b
    Examples:
      stillroom import harbor my-task
      stillroom import harbor tasks/ --out suite --base my/base:1=python-3.11
    """
    return _import_theirs("harbor", folder, out, base, runtime, force=force, as_json=as_json)


@app.command("terminal-bench")
def terminal_bench(
    folder: Theirs,
    *,
    out: Home = Path(),
    base: Bases = None,
    force: Force = False,
    runtime: RuntimeName = "embedded",
    as_json: AsJson = False,
) -> int:
    """Make tasks of Terminal-Bench's: task.yaml, Dockerfile, compose file, tests and solution.

    As `import harbor`. The summary that pytest prints is what is judged; one without a test in it
    is no success.

    \b
    Examples:
      stillroom import terminal-bench tasks/hello-world
      stillroom import terminal-bench tasks/ --out suite --json
    """
    return _import_theirs(
        "terminal-bench", folder, out, base, runtime, force=force, as_json=as_json
    )


def _import_theirs(
    kind: str,
    folder: Path,
    out: Path,
    base: list[str] | None,
    runtime: str,
    *,
    force: bool,
    as_json: bool,
) -> int:
    from sandbox.adapters.harbor.batch import import_all
    from sandbox.adapters.harbor.bench import Place
    from sandbox.cli import options
    from sandbox.cli.progress import ProgressObserver
    from sandbox.formats import jsonfile

    bases, wrong = _pairs(base)
    if wrong:
        raise UserError(f"--base {wrong[0]}: no NAME=IMAGE", hint="--base my/base:1=python-3.11")
    with ProgressObserver(quiet=as_json) as observer, options.world(runtime, observer) as world:
        place = Place(
            home=out.resolve(),
            store=world.depot.store,
            runtime=world.runtime,
            progress=observer.preparing,
            bases=bases,
            force=force,
        )
        batch = import_all(place, folder.resolve(), kind)
    written = out / "imports" / f"{folder.resolve().name}.json"
    jsonfile.write(written, jsonfile.dumps(batch))
    return _show_batch(batch, written, as_json=as_json)


def _show_batch(batch: Batch, written: Path, *, as_json: bool) -> int:
    from sandbox.cli.output import print_json

    for outcome in batch.outcomes:
        if as_json:
            print_json(outcome)
        else:
            _show_outcome(outcome)
    if not as_json:
        made = len([o for o in batch.outcomes if o.tasks])
        print(f"\n{made} of {len(batch.outcomes)} are tasks now\n{written.absolute()}")
    if any(outcome.fault for outcome in batch.outcomes):
        return 3
    return 0 if batch.tasks else 2


def _show_outcome(outcome: Outcome) -> None:
    for task in outcome.tasks:
        print(f"{task.task}: oracle {_reward(task.oracle)}, nothing {_reward(task.floor)}")
        _show_rows(task.rows, ("changed", "dropped"))
    if not outcome.tasks:
        print(f"{outcome.folder}: {outcome.refused or outcome.fault}")
        _show_rows(outcome.rows, ("refused",))


def _show_rows(rows: Sequence[Row], fates: Sequence[str]) -> None:
    for row in rows:
        if row.fate in fates:
            print(f"  {row.fate} {row.field}: {row.note}")


def _reward(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
