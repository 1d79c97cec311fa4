"""stillroom check: is this task fit to be used, on this machine?"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sandbox.cli.options import AsJson, Jobs, Out, Quiet, Retries, RuntimeName, SuiteName, Tasks

if TYPE_CHECKING:
    from sandbox.audit.gate.admit import Report

_A_GATE_FAILED, _SOME_VOID = 1, 3
Quick = Annotated[
    bool, typer.Option("--quick", help="The agents' two runs, and what needs no further one.")
]
Full = Annotated[
    bool, typer.Option("--full", help="Everything: mutants, every variation, more repeats.")
]
Exploits = Annotated[bool, typer.Option("--exploits", help="Attack them with every exploit.")]
Exploit = Annotated[
    str, typer.Option("--exploit", help="With these only: ids, families or glob patterns.")
]


def check(
    tasks: Tasks = None,
    *,
    suite: SuiteName = None,
    runtime: RuntimeName = "embedded",
    jobs: Jobs = min(os.cpu_count() or 1, 4),
    retries: Retries = 1,
    out: Out = None,
    quick: Quick = False,
    full: Full = False,
    exploits: Exploits = False,
    exploit: Exploit = "",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Check that a task is fit to be used: the gate that admits it.

    The reference solution has to resolve it, however it is written, and doing nothing must not;
    what is wrong with the solution has to fail a check; nothing may leak into the agent's box; the
    certificate has to hold. Exit code 1 when something keeps the task out, 3 when something of ours
    failed. What was judged is kept in the run's folder, and not judged again.

    \b
    Examples:
      stillroom check my-task
      stillroom check my-task --full
      stillroom check --suite core --quick -j 2
      stillroom check my-task --quick --exploit process-exit
    """
    from sandbox.audit.gate.admit import Gate, folder_name
    from sandbox.cli import options
    from sandbox.cli.output import print_json
    from sandbox.cli.progress import ProgressObserver
    from sandbox.cli.reports import as_data, show_reports
    from sandbox.errors import UserError
    from sandbox.rollout.suite import Plan

    if quick and full:
        raise UserError("--quick and --full are two levels", hint="choose one of them")
    chosen = tuple(options.catalogue().choose(suite, tuple(tasks or ())))
    with (
        ProgressObserver(quiet=quiet, named=lambda r: f"{r.task}: {r.agent}") as observer,
        options.world(runtime, observer) as world,
    ):
        gate = Gate(
            tasks=chosen,
            level="quick" if quick else "full" if full else "usual",
            world=world,
            out=out or options.RUNS / folder_name(suite or chosen[0].id, chosen, runtime),
            plan=Plan(workers=jobs, retries=retries),
            exploits=exploit or ("*" if full or exploits else ""),
        )
        reports = gate.reports()
    if as_json:
        for report in reports:
            print_json(as_data(report))
    else:
        show_reports(reports, gate.runs, gate.out)
    return _exit_code(reports)


def _exit_code(reports: Sequence["Report"]) -> int:
    if any(r.failed for r in reports):
        return _A_GATE_FAILED
    return _SOME_VOID if any(r.void for r in reports) else 0
