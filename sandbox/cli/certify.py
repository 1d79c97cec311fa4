"""stillroom certify: does the verdict stand still when everything around it moves?"""

import os
from pathlib import Path
from typing import Annotated

import typer

from sandbox.cli.options import AsJson, Jobs, Out, Quiet, Retries, RuntimeName, SuiteName, Tasks

_SOMETHING_VARIED = 1
Given = Annotated[
    Path | None,
    typer.Option("--submissions", help="A submissions.jsonl whose verdicts must stay, too."),
]
Names = Annotated[
    str, typer.Option("--shifts", help="Only these: names or glob patterns, with commas between.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Seven runs each, for a gate on changes.")]
Folder = Annotated[
    Path | None,
    typer.Option("--certificates", help="Where certificates are. Default: with the tasks."),
]
Exclude = Annotated[
    bool, typer.Option("--quarantine", help="Move checks that vary to `excluded` in checks.yaml.")
]
OnlyCheck = Annotated[
    bool, typer.Option("--check", help="Run nothing: do the certificates hold for the tasks?")
]


def certify(
    tasks: Tasks = None,
    *,
    suite: SuiteName = None,
    runtime: RuntimeName = "embedded",
    jobs: Jobs = min(os.cpu_count() or 1, 4),
    retries: Retries = 1,
    out: Out = None,
    given: Given = None,
    shifts: Names = "",
    quick: Quick = False,
    certificates: Folder = None,
    exclude: Exclude = False,
    only_check: OnlyCheck = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Certify that nothing but the submission decides a verdict.

    Judges the same submissions again and again while date, time zone, hash seed, order, processors,
    load, user, host name and umask move one at a time, and writes certificates/<task>.json; not with
    --quick or --shifts. Exit code 1 when something varied or a certificate does not hold.

    \b
    Examples:
      stillroom certify my-task --quick
      stillroom certify my-task --shifts 'user,year-*'
      stillroom certify --suite core --check
    """
    from sandbox.audit.certify import execute, shelf
    from sandbox.audit.certify.shifts import QUICK
    from sandbox.cli import options
    from sandbox.cli.output import show_held, show_settled
    from sandbox.cli.progress import ProgressObserver
    from sandbox.formats.records import read_submissions
    from sandbox.rollout.outdir import OutFolder, choose_out, run_name
    from sandbox.rollout.suite import Plan

    chosen = options.catalogue().choose(suite, tuple(tasks or ()))
    if only_check:
        held = [shelf.hold(task, certificates) for task in chosen]
        show_held(held, as_json=as_json)
        return _SOMETHING_VARIED if any(h.objections for h in held) else 0
    lines = read_submissions(given) if given else []
    names = [*(QUICK if quick else ()), *filter(None, shifts.split(","))]
    trials = [execute.trial(task, lines, names) for task in chosen]
    manifest = execute.manifest(trials, runtime)
    name = run_name("certify", suite or chosen[0].id, runtime)
    path = out or choose_out(options.RUNS, name, manifest, wanted=execute.total(trials))
    with (
        ProgressObserver(quiet=quiet, named=lambda r: f"{r.task}: {r.agent}") as observer,
        OutFolder(path, manifest) as folder,
        options.world(runtime, observer) as world,
    ):
        findings = execute.certify(trials, world, folder, Plan(workers=jobs, retries=retries))
    pairs = zip(trials, findings, strict=True)
    settled = [shelf.settle(*pair, certificates, exclude=exclude) for pair in pairs]
    show_settled(settled, folder.results_path, as_json=as_json)
    return shelf.exit_code(findings)
