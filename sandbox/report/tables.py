"""Tables for the terminal."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from sandbox.formats.controls import printable
from sandbox.model.record import Rollout
from sandbox.model.task import TaskSpec
from sandbox.report.summary import Summary, overhead_seconds
from sandbox.rollout.compare import Difference

_CELL_CHARS = 100


def rollouts_table(rollouts: Iterable[Rollout]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("task", "try", "verdict", "reward", "checks", "agent s", "tests s", "overhead s"):
        numeric = name not in ("task", "verdict")
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for r in rollouts:
        table.add_row(*_row(r))
    return table


def tasks_table(tasks: Iterable[TaskSpec], suites: dict[str, list[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("task", "category", "difficulty", "scored", "gates", "image", "suites"):
        table.add_column(name, justify="right" if name in ("scored", "gates") else "left")
    for t in tasks:
        gates = sum(c.gate for c in t.verifier.checks)
        table.add_row(
            t.id,
            t.metadata.category,
            t.metadata.difficulty,
            str(len(t.verifier.checks) - gates),
            str(gates),
            t.image.name,
            ", ".join(sorted(name for name, ids in suites.items() if t.id in ids)),
        )
    return table


def differences_table(found: Iterable[Difference]) -> Table:
    """A line for each thing in which two verdicts on the same differ."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("task", "try", "what", "as told", "as found here"):
        table.add_column(name, justify="right" if name == "try" else "left", overflow="fold")
    for d in found:
        cells = (d.task, d.attempt, d.what, d.theirs, d.ours)
        table.add_row(*(Text(_cell(cell)) for cell in cells))
    return table


def steps_table(events: Iterable[Mapping[str, Any]]) -> Table:
    """A line per step: what was done, and what came of it, if it came to that."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("step", "time s", "action", "status", "exit code", "bytes"):
        numeric = name not in ("action", "status")
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in _steps(events):
        table.add_row(*(Text(cell) for cell in row))
    return table


def _steps(events: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    rows: list[list[str]] = []
    for event in events:
        kind, step, seconds = event.get("type"), _cell(event.get("step")), event.get("time")
        at = f"{seconds:.1f}" if isinstance(seconds, int | float) else ""
        if kind == "observation" and rows and rows[-1][0] == step:
            rows[-1][3:] = [_cell(event.get(n)) for n in ("status", "exit_code", "total_bytes")]
        elif kind == "task":
            continue
        elif kind == "action":
            rows.append([step, at, _cell(_doing(event)), "", "", ""])
        else:
            what = _cell(f"{kind}: {event.get('what', '')}")
            rows.append(
                [step, at, what, "", _cell(event.get("exit_code")), _cell(event.get("bytes"))]
            )
    return rows


def _doing(event: Mapping[str, Any]) -> str:
    match event:
        case {"action": "run", "command": str(command)}:
            return f"run {command.strip()}"
        case {"action": "keys", "keys": str(keys), **more}:
            named = more.get("named")
            words = [keys, *map(str, named if isinstance(named, list) else ())]
            return "keys " + " ".join(w for w in words if w)
        case {"action": "signal", "name": str(name)}:
            return f"signal {name}"
        case _:
            return str(event.get("action"))


def _cell(value: object) -> str:
    """What a box or an agent said, on one line, short, and with nothing in it to obey."""
    text = printable("" if value is None else str(value)[: 2 * _CELL_CHARS])
    return text if len(text) <= _CELL_CHARS else text[: _CELL_CHARS - 1] + "…"


def summary_line(summary: Summary) -> str:
    parts = [f"{summary.resolved} of {summary.rollouts} resolved"]
    if summary.failed:
        parts.append(f"{summary.failed} not resolved")
    parts += [f"{count} {flag}" for flag, count in summary.flags.items()]
    if summary.void:
        parts.append(f"{summary.void} void")
    if summary.mean_reward is not None:
        parts.append(f"mean reward {summary.mean_reward:.3f}")
    if summary.median_overhead_seconds is not None:
        parts.append(f"median overhead {summary.median_overhead_seconds:.2f} s")
    return ", ".join(parts)


def reasons(rollouts: Iterable[Rollout]) -> list[str]:
    """A line about each rollout that is not resolved: too long for a column."""
    found = []
    for r in rollouts:
        if r.fault:
            found.append(f"{r.task} try {r.attempt}: void: {r.fault.code}: {r.fault.message}")
        elif r.verdict and r.verdict.reason:
            found.append(f"{r.task} try {r.attempt}: {r.verdict.reason}")
    # A test's name, and the end of an agent's log, are what somebody else said.
    return [printable(line) for line in found]


def warnings(rollouts: Sequence[Rollout]) -> list[str]:
    """Each once: what one verdict of a run was made without, the others mostly were, too."""
    counts = Counter(r.warning for r in rollouts if r.warning)
    return [
        printable(f"warning: {said}; {count} of {len(rollouts)} verdicts")
        for said, count in counts.items()
    ]


def _row(r: Rollout) -> tuple[str | Text, ...]:
    name, number, seconds = printable(r.task), str(r.attempt), r.seconds
    if r.verdict is None:
        return (name, number, Text("void", "yellow"), "", "", "", "", "")
    passed = sum(o == "passed" for o in r.verdict.checks.values())
    word = Text("resolved", "green") if r.verdict.resolved else Text("not resolved", "red")
    if r.verdict.flags:
        word = Text(", ".join(r.verdict.flags), "bold red")
    return (
        name,
        number,
        word,
        f"{r.verdict.reward:.3f}",
        f"{passed}/{len(r.verdict.checks)}",
        f"{seconds.get('agent', 0.0):.1f}",
        f"{seconds.get('checks', 0.0):.1f}",
        f"{overhead_seconds(r):.2f}",
    )
