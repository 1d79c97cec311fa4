"""stillroom submit: is a submissions.jsonl ready to be graded?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandbox.cli.options import AsJson, SuiteName

if TYPE_CHECKING:
    from sandbox.formats.submissionfile import Examined

Check = Annotated[Path, typer.Option("--check", help="A submissions.jsonl.")]


def submit(*, check: Check, suite: SuiteName = None, as_json: AsJson = False) -> int:
    """Say what is wrong with a submissions.jsonl, and what is missing. Nothing is sent anywhere.

    Exit code 0: `stillroom grade` takes it, and no task of the suite is left out. 2: it does not, or
    one is.

    \b
    Examples:
      stillroom submit --check submissions.jsonl
      stillroom submit --check runs/mine/submissions.jsonl --suite core
    """
    from sandbox.cli import options
    from sandbox.cli.output import print_json
    from sandbox.formats.submissionfile import examine

    shelf = options.catalogue()
    wanted = shelf.suite(suite).tasks if suite is not None else None
    found = examine(check, shelf.tasks(), wanted, suite or "")
    if as_json:
        print_json(found)
    else:
        _show(found, check)
    return 0 if found.good else 2


def _show(found: "Examined", path: Path) -> None:
    from sandbox.formats.controls import printable

    for remark in found.problems:
        print(printable(f"{remark.where}: {remark.message}"))
        if remark.hint:
            print(printable(f"  hint: {remark.hint}"))
    for task in found.missing:
        print(printable(f"{path}: no submission for `{task}`"))
    for remark in found.notes:
        print(printable(f"note: {remark.where}: {remark.message}"))
    wrong = len(found.problems) + len(found.missing)
    print(
        f"submissions: {found.submissions}, of tasks: {found.tasks}; "
        + (f"{wrong} problems" if wrong else f"ready: stillroom grade {path}")
    )
