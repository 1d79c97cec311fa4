"""What the gate says of each task: for a person, or as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sandbox.audit.gate.admit import Report
    from sandbox.model.record import Rollout

_MOST = 8
"""Findings of one kind that a person is shown; --json has all."""


def as_data(report: Report) -> dict[str, Any]:
    from sandbox.formats.shape import plain

    more = {"problems": list(report.problems), "void": report.void}
    return {"task": report.task, **more, **plain(report)}


def show_reports(
    reports: Sequence[Report], runs: Mapping[str, Sequence[Rollout]], out: Path
) -> None:
    """What each agent's run came to, then what was found out about each task."""
    from sandbox.cli.output import print_table
    from sandbox.report.summary import summarize
    from sandbox.report.tables import rollouts_table, summary_line, warnings

    for name, rollouts in runs.items():
        print(f"{name}:")
        print_table(rollouts_table(rollouts))
        for line in warnings(rollouts):
            print(line)
        print(f"\n{summary_line(summarize(rollouts))}\n")
    for report in reports:
        _show(report)
    print(f"\n{out.absolute()}")


def _show(report: Report) -> None:
    word = "NOT SOUND" if report.failed else "void" if report.void else "sound"
    print(f"{report.task}: {word}")
    by_id: dict[str, list[Any]] = {}
    for found in report.findings:
        by_id.setdefault(found.id, []).append(found)
    order = ("error", "warning", "info")
    for found_all in sorted(by_id.values(), key=lambda f: order.index(f[0].severity)):
        for found in found_all[:_MOST]:
            print(f"  {found.severity} {found.id}: {found.evidence}")
        if len(found_all) > _MOST:
            print(f"  {found_all[0].severity} {found_all[0].id}: {len(found_all) - _MOST} more")
        if found_all[0].severity != "info" and found_all[0].hint:
            print(f"    hint: {found_all[0].hint}")
    for said in report.advice:
        print(f"  advice: {said}")
