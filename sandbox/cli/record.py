"""stillroom record: the network of a task, recorded."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sandbox.cli.options import RuntimeName

Task = Annotated[str, typer.Argument(help="A task of this folder.")]
Command = Annotated[
    list[str] | None, typer.Argument(help="Run in the box; without one, a terminal is opened.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Forget what was recorded before.")]
Instead = Annotated[
    list[str] | None,
    typer.Option("--instead", help="host:port=host:port: ask another in its place, as a mirror."),
]
CaFile = Annotated[
    Path | None, typer.Option("--ca-file", help="Whom to trust, instead of whom this machine does.")
]
Names = list[str] | None


def _of(index: str) -> Any:
    text = f"A package that {index} is to find in the box, with what it needs. Can be repeated."
    return typer.Option(f"--{index}", help=text)


def record(
    task: Task,
    command: Command = None,
    *,
    runtime: RuntimeName = "embedded",
    fresh: Fresh = False,
    instead: Instead = None,
    ca_file: CaFile = None,
    pip: Annotated[Names, _of("pip")] = None,
    npm: Annotated[Names, _of("npm")] = None,
    apt: Annotated[Names, _of("apt")] = None,
) -> int:
    """Write down what the network answers in a task's box, for `network: replay`.

    The box is the agent's, on the real network. What is asked again is recorded again; the rest of the
    cassette stays. The digest is pinned in task.yaml.

    With --pip, --npm or --apt no box is made: what they name is resolved, and listed in the cassette's
    frozen package index.

    \b
    Examples:
      stillroom record my-task
      stillroom record my-task -- pip download jsonlines
      stillroom record my-task --fresh -- git clone https://example.org/project.git /tmp/p
      stillroom record my-task --pip requests==2.31.0 --npm is-odd --apt jq
    """
    from sandbox.cli import options
    from sandbox.cli.output import show_output
    from sandbox.cli.progress import ProgressObserver
    from sandbox.errors import UserError
    from sandbox.formats.taskfile import load_task
    from sandbox.rollout import recording
    from sandbox.rollout.person import sit_down
    from sandbox.runtime.network.index.resolve import Wanted

    wanted = Wanted(pip=tuple(pip or ()), npm=tuple(npm or ()), apt=tuple(apt or ()))
    if command and wanted != Wanted():
        raise UserError("a command, or packages to be listed: not both at once")
    spec = load_task(Path.cwd(), task)
    wish = recording.Wish(
        fresh=fresh,
        instead=recording.instead_of(instead or ()),
        ca_file=str(ca_file.absolute()) if ca_file else "",
    )
    work = recording.running(command, show_output) if command else sit_down
    with (
        ProgressObserver(quiet=not sys.stderr.isatty()) as observer,
        options.world(runtime, observer) as world,
    ):
        if wanted != Wanted():
            done = recording.index(spec, world, wanted, fresh=fresh)
        else:
            done = recording.record(spec, world, work, wish)
    said = f"{done.packages} packages" if done.packages else f"{done.fresh} of them new"
    print(f"{done.folder}: {done.answers} answers, {said}")
    print(f"digest {done.digest}{'' if recording.pin(spec, done) else ' (pinned already)'}")
    return 0
