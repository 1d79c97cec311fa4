"""stillroom grade --from-evidence and --verify: a finished run, judged or graded again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_DIFFERENT = 1
_AT_ITS_WORD = (
    "note: evidence is taken at its word; to grade the submissions again, in boxes:"
    " stillroom grade --verify {}"
)


def from_evidence(run: Path, out: Path | None, *, as_json: bool, quiet: bool) -> int:
    import sys

    from sandbox.cli import options
    from sandbox.cli.output import finish, show_differences
    from sandbox.rollout.outdir import next_out, run_name
    from sandbox.rollout.rejudge import rejudge, write_again

    found = rejudge(run, options.catalogue().load)
    path = out or next_out(options.RUNS, run_name("rejudged", run.resolve().name, "evidence"))
    results = write_again(run, path, found)
    if not quiet:
        notes = dict.fromkeys(n for one in found for n in one.notes)
        for note in (*(f"note: {n}" for n in notes), _AT_ITS_WORD.format(run)):
            sys.stderr.write(f"{note}\n")
    show_differences([d for one in found for d in one.differences], as_json=as_json)
    latest = {(one.now.task, one.now.attempt): one.now for one in found}
    return finish(list(latest.values()), results, as_json=as_json)


def verify_run(
    run: Path,
    out: Path | None,
    *,
    runtime: str,
    jobs: int,
    retries: int,
    as_json: bool,
    quiet: bool,
) -> int:
    import sys

    from sandbox.cli import options
    from sandbox.cli.output import finish, show_differences
    from sandbox.cli.progress import ProgressObserver
    from sandbox.formats.digest import digest_of
    from sandbox.formats.shape import plain
    from sandbox.rollout.claims import compared, read_claims
    from sandbox.rollout.outdir import Manifest, OutFolder, choose_out, run_name
    from sandbox.rollout.suite import Plan, grade_all

    claims = read_claims(run, options.catalogue().load)
    manifest = Manifest(
        agent="verified",
        runtime=runtime,
        graded=digest_of([plain(line) for line in claims.lines]),
        tasks={t.id: t.digest for t in claims.tasks.values()},
        attempts=max((line.attempt for line in claims.lines), default=0) + 1,
    )
    name = run_name("verify", run.resolve().name, runtime)
    path = out or choose_out(options.RUNS, name, manifest, wanted=len(claims.lines))
    with (
        ProgressObserver(quiet=quiet) as observer,
        OutFolder(path, manifest) as folder,
        options.world(runtime, observer) as world,
    ):
        plan = Plan(workers=jobs, retries=retries)
        ours = grade_all(dict(claims.tasks), claims.lines, world, folder, plan)
    for note in () if quiet else claims.notes:
        sys.stderr.write(f"note: {note}\n")
    found = list(compared(claims, ours))
    show_differences(found, as_json=as_json)
    status = finish(ours, folder.results_path, as_json=as_json)
    return _DIFFERENT if found else status
