"""stillroom show: one task, one run, or one rollout of a run."""

from math import isfinite, isnan
from pathlib import Path
from typing import Annotated

import typer

from sandbox.cli.options import AsJson

What = Annotated[str, typer.Argument(help="A task id, or the folder of a run.")]
Task = Annotated[str | None, typer.Argument(help="One task of that run: its steps.")]
Replay = Annotated[bool, typer.Option("--replay", help="Play what its terminal showed.")]
Attempt = Annotated[int | None, typer.Option(min=0, help="Which try; the first if not said.")]
Speed = Annotated[float, typer.Option(min=0.01, max=1000, help="Of a replay: 2 is twice as fast.")]
MaxWait = Annotated[float, typer.Option(min=0, help="Longest pause of a replay, in seconds.")]


def show(
    what: What,
    task: Task = None,
    *,
    replay: Replay = False,
    attempt: Attempt = None,
    speed: Speed = 1.0,
    max_wait: MaxWait = 2.0,
    as_json: AsJson = False,
) -> int:
    """Show a task's instruction and pins, a run's results, or what happened in one rollout.

    With --replay, its terminal is played back in yours; ^C stops it.

    \b
    Examples:
      stillroom show jinja2-3.1.4
      stillroom show runs/core-oracle-embedded-1
      stillroom show runs/core-oracle-embedded-1 jinja2-3.1.4
      stillroom show runs/core-oracle-embedded-1 jinja2-3.1.4 --replay --speed 2
    """
    from sandbox.cli.output import finish
    from sandbox.errors import UserError
    from sandbox.formats.records import read_results
    from sandbox.rollout.outdir import RESULTS

    if replay and as_json:
        raise UserError("--replay shows a terminal, and --json data", hint="leave one of them out")
    if (replay and not isfinite(speed)) or isnan(max_wait):
        raise UserError("--speed and --max-wait want numbers")
    if task is not None:
        if replay:
            return _replay(Path(what), task, attempt, speed, max_wait)
        return _steps(Path(what), task, attempt, as_json=as_json)
    if replay or attempt is not None:
        raise UserError(
            "which rollout? name the run's folder and the task", hint="stillroom show RUN TASK"
        )
    results = Path(what) / RESULTS
    if results.exists():
        latest = {(r.task, r.attempt): r for r in read_results(results)}
        return finish(list(latest.values()), results, as_json=as_json)
    if "/" in what:
        raise UserError(f"{what} is not the folder of a run", hint="a run has results.jsonl in it")
    return _task(what, as_json=as_json)


def _task(what: str, *, as_json: bool) -> int:
    from sandbox.cli import options
    from sandbox.cli.output import print_json
    from sandbox.formats.controls import printable
    from sandbox.model.task import TaskId

    task = options.catalogue().load(TaskId(what))
    if as_json:
        print_json(task)
        return 0
    gates = sum(c.gate for c in task.verifier.checks)
    facts = {
        "task": f"{task.id}  {task.digest}",
        "repository": f"{task.repo.name}  commit {task.repo.commit}",
        "image": f"{task.image.name}  {task.image.digest}",
        "submission": ", ".join(task.submission.paths),
        "checks": f"{len(task.verifier.checks) - gates} scored, {gates} gates",
        "clock": task.clock.at,
        "difficulty": task.metadata.difficulty,
        "licence": task.metadata.licence,
        "source": task.metadata.source,
    }
    for name, value in facts.items():
        print(f"{name:<11} {printable(value)}")
    print()
    for line in task.instruction.rstrip().splitlines():
        print(printable(line.replace("\t", "    ")))
    return 0


def _steps(run: Path, task: str, attempt: int | None, *, as_json: bool) -> int:
    from sandbox.cli.output import print_json, print_table
    from sandbox.errors import UserError
    from sandbox.report.tables import steps_table
    from sandbox.rollout.folder import EVENTS
    from sandbox.rollout.outdir import find_rollout

    folder = find_rollout(run, task, attempt)
    if not (folder.path / EVENTS).exists():
        raise UserError(f"{folder.path} has no {EVENTS}", hint=_NONE)
    events = folder.read_events()
    if as_json:
        for event in events:
            print_json(event)
    else:
        print_table(steps_table(events))
    return 0


def _replay(run: Path, task: str, attempt: int | None, speed: float, max_wait: float) -> int:
    import sys

    from sandbox.errors import UserError
    from sandbox.formats.asciicast import read_cast
    from sandbox.report.replay import play, too_small
    from sandbox.rollout.folder import CAST
    from sandbox.rollout.outdir import find_rollout

    path = find_rollout(run, task, attempt).path / CAST
    if not path.exists():
        raise UserError(f"there is no recording {path}", hint=_NONE)
    recording = read_cast(path)
    if said := too_small(recording):
        sys.stderr.write(f"note: {said}\n")
    play(recording, speed=speed, max_wait=max_wait)
    return 0


_NONE = "rollouts have one once their terminal was opened; what was graded has none"
