"""stillroom new: the first files of a task."""

from pathlib import Path
from typing import Annotated

import typer

from sandbox.cli.options import AsJson

Task = Annotated[str, typer.Argument(help="The new task's id.")]


def new(task: Task, *, as_json: AsJson = False) -> int:
    """Write a working skeleton of a task into this folder, to be changed step by step.

    \b
    Examples:
      stillroom new my-task && stillroom check my-task
    """
    from sandbox.cli import options
    from sandbox.cli.output import print_json
    from sandbox.runtime.locks import new_task

    written = [str(p) for p in new_task(options.store(), Path.cwd(), task)]
    if as_json:
        print_json({"task": task, "files": written})
    else:
        print("\n".join(written))
        print(f"\nnext: stillroom check {task}")
    return 0
