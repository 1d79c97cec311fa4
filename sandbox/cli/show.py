"""stillroom show: one task, or one run."""

from pathlib import Path
from typing import Annotated

import typer

from sandbox.cli.options import AsJson

What = Annotated[str, typer.Argument(help="A task id, or the folder of a run.")]


def show(what: What, *, as_json: AsJson = False) -> int:
    """Show a task's instruction and pins, or a run's results.

    \b
    Examples:
      stillroom show jinja2-3.1.4
      stillroom show runs/core-oracle-embedded-1
    """
    from sandbox.cli import options
    from sandbox.cli.output import finish, print_json
    from sandbox.errors import UserError
    from sandbox.formats.records import read_results
    from sandbox.model.task import TaskId
    from sandbox.rollout.outdir import RESULTS

    results = Path(what) / RESULTS
    if results.exists():
        latest = {(r.task, r.attempt): r for r in read_results(results)}
        return finish(list(latest.values()), results, as_json=as_json)
    if "/" in what:
        raise UserError(f"{what} is not the folder of a run", hint="a run has results.jsonl in it")
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
        print(f"{name:<11} {value}")
    print(f"\n{task.instruction.rstrip()}")
    return 0
