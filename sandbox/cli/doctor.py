"""stillroom doctor: what works here."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from sandbox.cli.options import AsJson

if TYPE_CHECKING:
    from sandbox.audit.conformance import Outcome

Reap = Annotated[bool, typer.Option("--reap", help="Remove what dead runs left behind.")]
Conformance = Annotated[
    str | None,
    typer.Option(help="Hold a runtime to the contract: embedded, docker, or package.module:Class."),
]
Only = Annotated[str, typer.Option(help="With --conformance: a glob pattern of `group: check`.")]
_MARKS = {"ok": "ok  ", "not ok": "NOT ", "skipped": "skip"}


def doctor(
    *,
    reap: Reap = False,
    conformance: Conformance = None,
    only: Only = "*",
    as_json: AsJson = False,
) -> int:
    """Say what works on this machine, what is missing, and how to mend it.

    Exit code 1 when no runtime works, or when one does not keep the contract.

    \b
    Examples:
      stillroom doctor
      stillroom doctor --reap
      stillroom doctor --conformance my.module:Runtime
    """
    if reap:
        return _reap(as_json=as_json)
    if conformance is not None:
        return _conformance(conformance, only, as_json=as_json)
    return _examine(as_json=as_json)


def _reap(*, as_json: bool) -> int:
    from sandbox.audit.doctor import leftovers
    from sandbox.cli import options
    from sandbox.cli.output import print_json

    gone = leftovers(options.store())
    if as_json:
        print_json({"removed": gone})
    else:
        print("\n".join(f"removed {what}" for what in gone) or "nothing was left behind")
    return 0


def _examine(*, as_json: bool) -> int:
    from sandbox.audit.doctor import examine
    from sandbox.cli import options
    from sandbox.cli.output import print_json
    from sandbox.cli.progress import ProgressObserver

    working = False
    with ProgressObserver(quiet=as_json) as observer:
        for found in examine(options.store(), observer.preparing):
            working |= found.ok and found.name in ("embedded", "docker")
            if as_json:
                print_json(found)
                continue
            print(f"{'ok  ' if found.ok else 'NOT '} {found.name:<9} {found.found}", flush=True)
            if not found.ok and found.mend:
                print(f"     {'':<9} → {found.mend}", flush=True)
    return 0 if working else 1


def _conformance(name: str, only: str, *, as_json: bool) -> int:
    from contextlib import closing

    from sandbox.audit.conformance import all_checks, run
    from sandbox.audit.doctor import bundled_image
    from sandbox.cli import options
    from sandbox.cli.output import print_json
    from sandbox.cli.progress import ProgressObserver
    from sandbox.errors import NothingSelected
    from sandbox.rollout import plugins

    checks = [check for check in all_checks() if fnmatchcase(f"{check.group}: {check.name}", only)]
    if not checks:
        raise NothingSelected(f"no check is called `{only}`", hint="--only 'exec: *'")
    store = options.store()
    plugins.known_runtime(name)  # before anything is fetched for it
    with ProgressObserver(quiet=as_json) as observer:
        image = bundled_image(store, observer.preparing)
    counts = dict.fromkeys(_MARKS, 0)
    with closing(run(name, store, image, checks)) as outcomes:
        for outcome in outcomes:
            counts[outcome.result] += 1
            if as_json:
                print_json(outcome)
            else:
                _show(outcome, sum(counts.values()), len(checks))
    if not as_json:
        print(", ".join(f"{number} {result}" for result, number in counts.items()))
    return 1 if counts["not ok"] else 0


def _show(outcome: Outcome, number: int, of: int) -> None:
    print(f"{_MARKS[outcome.result]} {outcome.group}: {outcome.name}", flush=True)
    if outcome.words:
        print("\n".join(f"     {line}" for line in outcome.words.splitlines()), flush=True)
    if number < of and sys.stderr.isatty():
        sys.stderr.write(f"     {number} of {of}\r")
        sys.stderr.flush()
