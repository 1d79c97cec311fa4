"""stillroom record: the network of a task, recorded."""

import sys
from pathlib import Path
from typing import Annotated

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
Pip = Annotated[
    list[str] | None, typer.Option("--pip", help="What `pip install` is to find in the box.")
]
Npm = Annotated[list[str] | None, typer.Option("--npm", help="The same for npm.")]
Apt = Annotated[list[str] | None, typer.Option("--apt", help="The same for apt.")]


def record(
    task: Task,
    command: Command = None,
    *,
    runtime: RuntimeName = "embedded",
    pip: Pip = None,
    npm: Npm = None,
    apt: Apt = None,
    fresh: Fresh = False,
    instead: Instead = None,
    ca_file: CaFile = None,
) -> int:
    """Write down what the network answers in a task's box, for `network: replay`.

    The box is the agent's, on the real network. What is asked again is recorded again; the rest of the
    cassette stays. Packages are resolved, with all that they need, into a frozen index beside it; a
    box is opened then only if there is a command. The digest is pinned in task.yaml.

    \b
    Examples:
      stillroom record my-task
      stillroom record my-task -- curl -sS https://example.org/
      stillroom record my-task --pip requests==2.31.0 --npm is-odd
      stillroom record my-task --fresh -- git clone https://example.org/project.git /tmp/p
    """
    from sandbox.cli import options
    from sandbox.cli.output import show_output
    from sandbox.cli.progress import ProgressObserver
    from sandbox.formats.taskfile import load_task
    from sandbox.rollout import recording
    from sandbox.rollout.person import sit_down

    spec = load_task(Path.cwd(), task)
    wish = recording.Wish(
        fresh=fresh,
        instead=recording.instead_of(instead or ()),
        ca_file=str(ca_file.absolute()) if ca_file else "",
        packages=recording.wanted(pip, npm, apt),
    )
    work = recording.running(command, show_output) if command else sit_down
    with (
        ProgressObserver(quiet=not sys.stderr.isatty()) as observer,
        options.world(runtime, observer) as world,
    ):
        for done in recording.record_all(spec, world, work, wish, opened=bool(command)):
            print(f"{done.path}: {done.answers} {done.kind}, {done.fresh} of them new")
    digest, changed = recording.pin(spec)
    print(f"digest {digest}{'' if changed else ' (pinned already)'}")
    return 0
