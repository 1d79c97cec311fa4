"""stillroom grade: verdicts on submissions that were made elsewhere."""

import os
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from sandbox.cli.options import AsJson, Jobs, Out, Quiet, Retries, RuntimeName

Submissions = Annotated[
    Path | None, typer.Argument(help="submissions.jsonl: task, patch, agent, attempt.")
]
FromEvidence = Annotated[
    Path | None,
    typer.Option(help="A finished run: judge what its boxes showed again, without a box."),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--dataset", help="Data that its tasks were imported from: SUBMISSIONS is theirs."
    ),
]
Logs = Annotated[
    Path | None,
    typer.Option(help="Saved evaluation logs of instances of --dataset: no box is needed."),
]
Verify = Annotated[
    Path | None,
    typer.Option(help="A run, maybe another's: grade its submissions here, and compare."),
]


def grade(
    submissions: Submissions = None,
    *,
    dataset: Data = None,
    logs: Logs = None,
    from_evidence: FromEvidence = None,
    verify: Verify = None,
    runtime: RuntimeName = "embedded",
    jobs: Jobs = min(os.cpu_count() or 1, 4),
    retries: Retries = 1,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Judge the patches of a submissions.jsonl, and write results.jsonl.

    Each line is {"task": "...", "patch": "...", "agent": "...", "attempt": 0}; the last two may
    be left out. With --dataset it is JSON Lines, a list or a map with instance_id,
    model_name_or_path and model_patch, or `gold`; exit code 2 says that some lines were refused.
    With --verify, exit code 1 says that a verdict is another one here. With --logs, each verdict
    is that of the published rule, and what is odd about a log is named; --out DIR writes reports.

    \b
    Examples:
      stillroom grade submissions.jsonl
      stillroom grade runs/mine/submissions.jsonl --runtime docker --json
      stillroom grade preds.jsonl --dataset lite.jsonl
      stillroom grade --logs logs/run_evaluation/mine --dataset lite.jsonl
      stillroom grade --from-evidence runs/mine
      stillroom grade --verify runs/theirs -j 4
    """
    from sandbox.cli import again
    from sandbox.cli.dataset import grade_dataset
    from sandbox.cli.savedlogs import grade_logs
    from sandbox.errors import UserError

    given = [what for what in (submissions, logs, from_evidence, verify) if what]
    if len(given) != 1:
        raise UserError(
            "grade what? name a submissions.jsonl, --logs DIR, --from-evidence RUN or --verify RUN",
            hint="one of the four; stillroom grade --help",
        )
    if logs:
        return grade_logs(logs, dataset, out, as_json=as_json, quiet=quiet)
    if from_evidence:
        return again.from_evidence(from_evidence, out, as_json=as_json, quiet=quiet)
    here: _Here = {"runtime": runtime, "jobs": jobs, "retries": retries}
    if verify:
        return again.verify_run(verify, out, **here, as_json=as_json, quiet=quiet)
    if dataset:
        return grade_dataset(given[0], dataset, out, **here, as_json=as_json, quiet=quiet)
    return _grade(given[0], out, **here, as_json=as_json, quiet=quiet)


class _Here(TypedDict):
    """Where boxes run, and how."""

    runtime: str
    jobs: int
    retries: int


def _grade(
    submissions: Path,
    out: Path | None,
    *,
    runtime: str,
    jobs: int,
    retries: int,
    as_json: bool,
    quiet: bool,
) -> int:
    from sandbox.cli import options
    from sandbox.cli.output import finish
    from sandbox.cli.progress import ProgressObserver
    from sandbox.errors import SpecError, UserError
    from sandbox.formats.digest import digest_of
    from sandbox.formats.records import read_submissions
    from sandbox.model.task import TaskId, TaskSpec
    from sandbox.rollout.outdir import Manifest, OutFolder, choose_out, run_name
    from sandbox.rollout.suite import Plan, grade_all

    lines = read_submissions(submissions)
    shelf = options.catalogue()
    tasks: dict[TaskId, TaskSpec] = {}
    for number, line in enumerate(lines, 1):
        try:
            tasks.setdefault(TaskId(line.task), shelf.load(TaskId(line.task)))
        except SpecError:
            raise
        except UserError as e:
            raise SpecError(str(e), where=f"{submissions}:{number}", hint=e.hint) from None
    digest = digest_of([[line.task, line.attempt, line.patch, line.patch_base64] for line in lines])
    manifest = Manifest(
        agent="graded",
        runtime=runtime,
        graded=digest,
        tasks={t.id: t.digest for t in tasks.values()},
        attempts=max(line.attempt for line in lines) + 1,
    )
    name = run_name("grade", submissions.stem, runtime)
    path = out or choose_out(options.RUNS, name, manifest, wanted=len(lines))
    plan = Plan(workers=jobs, retries=retries)
    with (
        ProgressObserver(quiet=quiet) as observer,
        OutFolder(path, manifest) as folder,
        options.world(runtime, observer) as world,
    ):
        rollouts = grade_all(tasks, lines, world, folder, plan)
    return finish(rollouts, folder.results_path, as_json=as_json)
