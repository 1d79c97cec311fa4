"""stillroom play: take the agent's place."""

import sys
from typing import Annotated

import typer

from sandbox.cli.options import AsJson, Out, RuntimeName

Task = Annotated[str, typer.Argument(help="A task id.")]


def play(
    task: Task, *, runtime: RuntimeName = "embedded", out: Out = None, as_json: AsJson = False
) -> int:
    """Work on a task yourself, in a real terminal; leave the shell to be judged.

    What the terminal shows is recorded: stillroom show RUN TASK --replay.

    \b
    Examples:
      stillroom play jinja2-3.1.4
      stillroom play my-task --runtime docker
    """
    from sandbox.cli import options
    from sandbox.cli.output import finish
    from sandbox.cli.progress import ProgressObserver
    from sandbox.model.task import TaskId
    from sandbox.rollout.outdir import Manifest, OutFolder, choose_out, run_name
    from sandbox.rollout.person import sit_down
    from sandbox.rollout.run import Attempt
    from sandbox.rollout.suite import play_one
    from sandbox.runtime.base import Box

    spec = options.catalogue().load(TaskId(task))
    manifest = Manifest(agent="person", runtime=runtime, tasks={spec.id: spec.digest}, attempts=1)
    path = out or choose_out(options.RUNS, run_name("play", task, runtime), manifest)

    def sit(attempt: Attempt, box: Box) -> None:
        sys.stderr.write(f"{spec.instruction}\n\nLeave the shell (exit or ^D) to be judged.\n\n")
        sit_down(attempt, box)
        sys.stderr.write("\nJudging…\n")

    with (
        ProgressObserver(quiet=not sys.stderr.isatty()) as observer,
        OutFolder(path, manifest) as folder,
        options.world(runtime, observer) as world,
    ):
        done = play_one(spec, sit, world, folder)
    return finish([done], folder.results_path, as_json=as_json)
