"""stillroom run: an agent works on tasks, and each result is judged."""

import os
from typing import Annotated

import typer

from sandbox.cli.options import AsJson, Jobs, Out, Quiet, Retries, RuntimeName, SuiteName, Tasks

AgentName = Annotated[
    str,
    typer.Option(
        "--agent", "-a", help="oracle, nop, script:FILE, shell:COMMAND, or package.module:Class."
    ),
]
Attempts = Annotated[int, typer.Option("--attempts", "-k", min=1, help="Tries at each task.")]


def run(
    tasks: Tasks = None,
    *,
    agent: AgentName,
    suite: SuiteName = None,
    runtime: RuntimeName = "embedded",
    jobs: Jobs = min(os.cpu_count() or 1, 4),
    attempts: Attempts = 1,
    retries: Retries = 1,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Let an agent work on tasks, judge what it leaves, and write results.jsonl.

    The same command resumes a run that was stopped; what had ended is not run again.

    \b
    Examples:
      stillroom run --suite core --agent oracle -j 2
      stillroom run jinja2-3.1.4 --agent 'shell:python3 my_agent.py' -k 5 --out runs/mine
      stillroom run 'sqlparse-*' --agent script:commands.txt --runtime docker
    """
    from sandbox.cli import options
    from sandbox.cli.output import finish
    from sandbox.cli.progress import ProgressObserver
    from sandbox.rollout import plugins
    from sandbox.rollout.outdir import Manifest, OutFolder, choose_out, run_name
    from sandbox.rollout.suite import Plan, run_suite

    chosen = options.catalogue().choose(suite, tuple(tasks or ()))
    actor = plugins.agent(agent, options.store())
    manifest = Manifest(
        agent=actor.name,
        runtime=runtime,
        suite=suite or "",
        tasks={t.id: t.digest for t in chosen},
        attempts=attempts,
    )
    name = run_name(suite or "tasks", actor.name, runtime)
    path = out or choose_out(options.RUNS, name, manifest)
    plan = Plan(workers=jobs, retries=retries, attempts=attempts)
    with (
        ProgressObserver(quiet=quiet) as observer,
        OutFolder(path, manifest) as folder,
        options.world(runtime, observer) as world,
    ):
        rollouts = run_suite(chosen, actor, world, folder, plan)
    return finish(rollouts, folder.results_path, as_json=as_json)
