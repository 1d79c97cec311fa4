"""stillroom export atif, asciicast, chat, traj, mini, inspect, verifiers: what happened in a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandbox.cli.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Callable

Run = Annotated[Path, typer.Argument(help="The folder of a run.")]
Task = Annotated[str | None, typer.Argument(help="One task of it; all if not said.")]
Attempt = Annotated[int | None, typer.Option(min=0, help="Which try; all if not said.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The folder that files are written to.")]


Version = Annotated[int, typer.Option("--cast", min=2, max=3, help="asciicast v2 or v3.")]
_KINDS = {
    "atif": "ATIF v1.8: TASK/ATTEMPT/trajectory.json, with exit codes and reward in `extra`.",
    "chat": "chat.jsonl: a line of OpenAI chat messages, with tools, for each rollout.",
    "traj": "SWE-agent's trajectories: TASK/ATTEMPT/TASK.traj.",
    "mini": "mini-swe-agent's, format 1.1: TASK/ATTEMPT/TASK.traj.json.",
    "inspect": "Inspect's evaluation log: RUN.eval. Wants inspect_ai installed.",
    "verifiers": "traces.jsonl of verifiers: an episode for each rollout.",
}


def asciicast(
    run: Run,
    task: Task = None,
    *,
    out: Out,
    attempt: Attempt = None,
    cast: Version = 2,
    as_json: AsJson = False,
) -> int:
    """Write recordings of terminals: TASK/ATTEMPT/terminal.cast.

    \b
    Examples:
      stillroom export asciicast runs/mine --out casts
      stillroom export asciicast runs/mine h11-0.14.0 --cast 3 --out casts
    """
    return _export("asciicast", run, task, attempt, out, cast=cast, as_json=as_json)


def add_to(app: typer.Typer) -> None:
    app.command("asciicast")(asciicast)
    for kind, told in _KINDS.items():
        app.command(kind)(_command(kind, told))


def _command(kind: str, told: str) -> Callable[..., int]:
    def export(
        run: Run,
        task: Task = None,
        *,
        out: Out,
        attempt: Attempt = None,
        as_json: AsJson = False,
    ) -> int:
        return _export(kind, run, task, attempt, out, as_json=as_json)

    export.__doc__ = f"""Write {told}

    \b
    Examples:
      stillroom export {kind} runs/mine --out {kind}
      stillroom export {kind} runs/mine h11-0.14.0 --attempt 0 --out {kind}
    """
    return export


def _export(
    kind: str,
    run: Path,
    task: str | None,
    attempt: int | None,
    out: Path,
    *,
    cast: int = 2,
    as_json: bool,
) -> int:
    from sandbox.adapters.trajectories import Wanted, write
    from sandbox.cli.output import print_json
    from sandbox.errors import UserError
    from sandbox.formats.controls import printable

    wanted = Wanted(run=run, out=out, task=task, attempt=attempt)
    told = 0
    for one in write(wanted, kind, cast):
        told += bool(one.path)
        if as_json:
            print_json(one)
        elif one.why:
            print(printable(f"{one.task} try {one.attempt}: left out: {one.why}"))
    if not told:
        raise UserError(
            f"no rollout in {run} has anything to tell",
            hint="events.jsonl is written while an agent works",
        )
    if not as_json:
        print(f"{told} written to {out.absolute()}")
    return 0
