"""stillroom grade --logs: saved evaluation logs, without a box."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox.adapters.savedlogs.doubt import Flag
    from sandbox.adapters.savedlogs.regrade import Regraded, RegradedAll


def grade_logs(
    logs: Path, dataset: Path | None, out: Path | None, *, as_json: bool, quiet: bool
) -> int:
    from sandbox.adapters.savedlogs.regrade import regrade_all, write_reports
    from sandbox.errors import UserError

    if dataset is None:
        raise UserError("--logs needs --dataset FILE", hint="it says which tests had to pass")
    found = regrade_all(logs, dataset)
    report = write_reports(found, out) if out else None
    if as_json:
        _print_json(found, report)
    else:
        _print(found, report)
    if not quiet:
        _note(found)
    return UserError.exit_status if found.odd or found.refused else 0


def _print_json(found: RegradedAll, report: Path | None) -> None:
    from sandbox.cli.output import print_json

    for log in found.logs:
        print_json(_row(log))
    counts = {
        "logs": len(found.logs),
        "resolved": sum(log.resolved for log in found.logs),
        "ours": sum(log.ours for log in found.logs),
        "missing": len(found.missing),
    }
    print_json({"summary": counts, "report": str(report) if report else None})


def _row(log: Regraded) -> dict[str, Any]:
    return {
        "instance_id": log.instance_id,
        **({"run": log.run} if log.run else {}),
        "resolved": log.resolved,
        "ours": log.ours,
        "state": log.result.state,
        "why": log.result.why,
        "resolution": log.resolution,
        "edition": log.edition,
        "parser": log.parser,
        "failed": {name: list(tests.failure) for name, tests in log.result.tests.items()},
        "flags": [{"doubt": f.doubt, "tests": list(f.tests), "count": f.count} for f in log.flags],
    }


def _print(found: RegradedAll, report: Path | None) -> None:
    from sandbox.formats.controls import printable

    for log in found.logs:
        of = printable(f" ({log.run})") if log.run else ""
        said = f"{log.instance_id}{of}: {log.result.state}"
        why = f": {printable(log.result.why)}" if log.result.why else ""
        print(said + why)
        if log.ours != log.resolved:
            print(f"  ours: {'resolved' if log.ours else 'not resolved'}")
        for flag in log.flags:
            print(f"  {_said(flag)}")
    print(f"\n{_summary(found.logs)}")
    if report:
        print(report.absolute())


def _said(flag: Flag) -> str:
    from sandbox.formats.controls import printable

    if not flag.tests:
        return flag.doubt.value
    more = f" and {flag.count - len(flag.tests)} more" if flag.count > len(flag.tests) else ""
    return f"{flag.doubt.value}: {', '.join(printable(t) for t in flag.tests)}{more}"


def _summary(logs: tuple[Regraded, ...]) -> str:
    resolved = sum(log.resolved for log in logs)
    differing = sum(log.ours != log.resolved for log in logs)
    return (
        f"{resolved} of {len(logs)} resolved by the published rule;"
        f" of these {len(logs)} verdicts, {differing} would be another one by ours"
    )


def _note(found: RegradedAll) -> None:
    for odd in found.odd:
        name = f"{odd.instance_id}: " if odd.instance_id else ""
        sys.stderr.write(f"{odd.where}: not graded: {name}{odd.why}\n")
    for row in found.refused:
        sys.stderr.write(f"{row.where}: not read: {row.why}\n")
    if found.missing:
        sys.stderr.write(f"note: {len(found.missing)} instances have no log here\n")
