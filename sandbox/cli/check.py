"""stillroom check: is this task sound, on this machine?"""

import os
from pathlib import Path

from sandbox.cli.options import AsJson, Jobs, Out, Quiet, RuntimeName, SuiteName, Tasks

_A_GATE_FAILED, _SOME_VOID = 1, 3


def check(
    tasks: Tasks = None,
    *,
    suite: SuiteName = None,
    runtime: RuntimeName = "embedded",
    jobs: Jobs = min(os.cpu_count() or 1, 4),
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Check that the reference solution resolves each task, and that doing nothing does not.

    Exit code 1 when a task is not sound. It also says when a task's clock starts at an awkward
    instant, or before files were made that a box has.

    \b
    Examples:
      stillroom check my-task
      stillroom check --suite core -j 2
    """
    from sandbox.audit.check import findings
    from sandbox.audit.pins import advise
    from sandbox.cli import options
    from sandbox.cli.output import print_json, show_findings
    from sandbox.cli.progress import ProgressObserver
    from sandbox.model.record import Rollout
    from sandbox.rollout.agents import Nop, Oracle
    from sandbox.rollout.outdir import Manifest, OutFolder, choose_out, run_name
    from sandbox.rollout.suite import Plan, run_suite

    chosen = options.catalogue().choose(suite, tuple(tasks or ()))
    results: dict[str, list[Rollout]] = {}
    paths: dict[str, Path] = {}
    with (
        ProgressObserver(quiet=quiet) as observer,
        options.world(runtime, observer) as world,
    ):
        for agent in (Oracle(), Nop()):
            manifest = Manifest(
                agent=agent.name,
                runtime=runtime,
                tasks={t.id: t.digest for t in chosen},
                attempts=1,
            )
            name = run_name("check", agent.name, runtime)
            path = out / agent.name if out else choose_out(Path("runs"), name, manifest)
            with OutFolder(path, manifest) as folder:
                paths[agent.name] = folder.results_path
                results[agent.name] = run_suite(chosen, agent, world, folder, Plan(workers=jobs))
        advice = advise(chosen, world.depot)
    found = findings(chosen, results["oracle"], results["nop"], advice)
    if as_json:
        for finding in found:
            print_json(finding)
    else:
        show_findings(found, results, paths)
    if any(f.problems and not f.void for f in found):
        return _A_GATE_FAILED
    return _SOME_VOID if any(f.void for f in found) else 0
