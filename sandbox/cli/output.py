"""What verbs print at their end: a table for a person, JSON lines for a program."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sandbox.audit.certify.shelf import Held, Settled
    from sandbox.model.record import Rollout
    from sandbox.rollout.compare import Difference
    from sandbox.runtime.base import ExecResult

SOME_VOID = 3
_SIGHTINGS, _BESIDE = 6, 10
"""How many are shown to a person; --json has all."""


def print_json(value: Any) -> None:
    from sandbox.formats.shape import plain

    data = value if isinstance(value, dict) else plain(value)
    print(json.dumps(data, ensure_ascii=True), flush=True)


def print_table(table: Any) -> None:
    from rich.console import Console

    console = Console()
    # A pipe has no width; cutting what goes into it would lose something.
    width = console.width if console.is_terminal else 200
    Console(width=width).print(table)


def finish(rollouts: Sequence[Rollout], results: Path, *, as_json: bool) -> int:
    """The end of a run: everything that was asked for, and the exit code."""
    from sandbox.formats.shape import plain
    from sandbox.report.summary import summarize
    from sandbox.report.tables import reasons, rollouts_table, summary_line, warnings

    summary = summarize(rollouts)
    if as_json:
        for rollout in rollouts:
            print_json(rollout)
        print_json({"summary": plain(summary), "results": str(results)})
    else:
        print_table(rollouts_table(rollouts))
        for line in (*reasons(rollouts), *warnings(rollouts)):
            print(line)
        print(f"\n{summary_line(summary)}\n{results.absolute()}")
    return SOME_VOID if summary.void else 0


def show_differences(found: Sequence[Difference], *, as_json: bool) -> None:
    """Where verdicts are not what they were; a line, when there is nothing to show."""
    from sandbox.report.tables import differences_table

    if as_json:
        for one in found:
            print_json(one)
    elif found:
        print_table(differences_table(found))
        print(f"{len(found)} differences\n")
    else:
        print("no verdict is another one\n")


def show_output(done: ExecResult) -> None:
    """What a program in a box printed, as it printed it."""
    for stream, said in ((sys.stdout, done.stdout), (sys.stderr, done.stderr)):
        stream.flush()
        stream.buffer.write(said)
        stream.flush()


def show_held(held: Sequence[Held], *, as_json: bool) -> None:
    """Do the certificates hold?"""
    for one in held:
        if as_json:
            print_json(one)
            continue
        print(f"{one.task}: {'DOES NOT HOLD' if one.objections else 'holds'}")
        for objection in one.objections:
            print(f"  {one.path}: {objection}")


def show_settled(settled: Sequence[Settled], results: Path, *, as_json: bool) -> None:
    """What varied in which task, with what, and where it is written."""
    for one in settled:
        if as_json:
            print_json(one)
        else:
            _show_settled(one)
    if not as_json:
        print(f"\n{results.absolute()}")


def _show_settled(one: Settled) -> None:
    found = one.finding
    word = "void" if found.void else "steady" if found.still else "VARIES"
    names = " and ".join(t.submission for t in found.told)
    print(f"{found.task}: {word}" + (f" in {one.runs} runs of {names}" if names else ""))
    for line in (*found.void, *found.problems):
        print(f"  {line}")
    for varied in found.varied:
        print(f"  {varied.check}: {varied.why}")
        for seen in varied.sightings[:_SIGHTINGS]:
            print(f"    {seen.submission} with {seen.shift}: {seen.change}")
    for varied in found.beside[:_BESIDE]:
        print(f"  no check: {varied.check}: {varied.why}")
    if len(found.beside) > _BESIDE:
        print(f"  no check: {len(found.beside) - _BESIDE} more of them")
    for what, path in (("certificate", one.certificate), ("changed", one.changed)):
        if path:
            print(f"  {what} {path}")
    if one.changed:
        print("  the task is another one now: certify it again")
