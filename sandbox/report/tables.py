"""Tables for the terminal."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from sandbox.model.record import Rollout
from sandbox.model.task import TaskSpec
from sandbox.report.summary import Summary, overhead_seconds


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


def summary_line(summary: Summary) -> str:
    parts = [f"{summary.resolved} of {summary.rollouts} resolved"]
    if summary.failed:
        parts.append(f"{summary.failed} not resolved")
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
    return found


def _row(r: Rollout) -> tuple[str | Text, ...]:
    name, number, seconds = r.task, str(r.attempt), r.seconds
    if r.verdict is None:
        return (name, number, Text("void", "yellow"), "", "", "", "", "")
    passed = sum(o == "passed" for o in r.verdict.checks.values())
    word = Text("resolved", "green") if r.verdict.resolved else Text("not resolved", "red")
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
