"""What verbs print at their end: a table for a person, JSON lines for a program."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sandbox.audit.check import Finding
    from sandbox.model.record import Rollout
    from sandbox.runtime.base import ExecResult

SOME_VOID = 3


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
    from sandbox.report.tables import reasons, rollouts_table, summary_line

    summary = summarize(rollouts)
    if as_json:
        for rollout in rollouts:
            print_json(rollout)
        print_json({"summary": plain(summary), "results": str(results)})
    else:
        print_table(rollouts_table(rollouts))
        for line in reasons(rollouts):
            print(line)
        print(f"\n{summary_line(summary)}\n{results.absolute()}")
    return SOME_VOID if summary.void else 0


def show_findings(
    findings: Sequence[Finding], runs: Mapping[str, Sequence[Rollout]], results: Mapping[str, Path]
) -> None:
    """What each run came to, then what that says of each task."""
    from sandbox.report.summary import summarize
    from sandbox.report.tables import rollouts_table, summary_line

    for name, rollouts in runs.items():
        print(f"{name}:")
        print_table(rollouts_table(rollouts))
        print(f"\n{summary_line(summarize(rollouts))}\n{results[name].absolute()}\n")
    for finding in findings:
        word = "void" if finding.void else "NOT SOUND" if finding.problems else "sound"
        print(f"{finding.task}: {word}")
        for problem in finding.problems:
            print(f"  {problem}")


def show_output(done: ExecResult) -> None:
    """What a program in a box printed, as it printed it."""
    for stream, said in ((sys.stdout, done.stdout), (sys.stderr, done.stderr)):
        stream.flush()
        stream.buffer.write(said)
        stream.flush()
