"""stillroom explain: why a reward is what it is."""

from pathlib import Path
from typing import Annotated

import typer

from sandbox.cli.options import AsJson

Run = Annotated[Path, typer.Argument(help="The folder of a run.")]
Task = Annotated[str, typer.Argument(help="One task of that run.")]
Attempt = Annotated[int | None, typer.Option(min=0, help="Which try; the first if not said.")]
Check = Annotated[
    list[str] | None,
    typer.Option("--check", help="Tell of these checks in full: an id or a pattern."),
]


def explain(
    run: Run,
    task: Task,
    *,
    attempt: Attempt = None,
    check: Check = None,
    as_json: AsJson = False,
) -> int:
    """Say in words, check by check, why a reward is what it is.

    From what the run's folder holds: no box is made, and nothing is fetched.

    \b
    Examples:
      stillroom explain runs/core-oracle-embedded-1 h11-0.14.0
      stillroom explain runs/mine h11-0.14.0 --attempt 2 --check '*test_headers*'
    """
    from sandbox.cli import options
    from sandbox.cli.output import print_json
    from sandbox.errors import UserError
    from sandbox.report.explain import matching, tell
    from sandbox.report.reading import read_story

    found, files = read_story(run, task, attempt, options.catalogue().load)
    if check and found.reward is not None and not matching(found, check):
        raise UserError(
            f"`{task}` has no check like {', '.join(check)}", hint="--json lists all of them"
        )
    if as_json:
        print_json(found)
        return 0
    lines = tell(found, check or ())
    print(lines[0] if not _colourful() else _coloured(lines[0], resolved=found.resolved))
    for line in lines[1:]:
        print(line)
    print("\nFiles")
    for path in files:
        print(f"  {path}")
    return 0


def _colourful() -> bool:
    import os
    import sys

    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _coloured(line: str, *, resolved: bool) -> str:
    return f"\x1b[1;{32 if resolved else 31}m{line}\x1b[m"
