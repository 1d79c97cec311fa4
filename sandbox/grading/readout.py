"""What the runner told, a record a line. Pure, and trusting nobody.

The code under test runs in the runner's process, so it can write records of its own. It can lie
about itself; it must not be able to crash us, to take back a failure, or to make a verdict void.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sandbox.errors import SpecError
from sandbox.formats.shape import parse
from sandbox.model.verdict import CheckReport, Outcome, Probe

_MESSAGE_CHARACTERS = 1000
_MOST_RECORDS = 200_000
"""More than any suite has; code under test can write them faster than we read."""


@dataclass(slots=True)
class Readout:
    probes: list[Probe | None] = field(default_factory=list)
    """None: one that cannot be read. The first was told before the code under test was loaded."""
    report: dict[str, CheckReport] = field(default_factory=dict)
    uncollected: list[str] = field(default_factory=list)
    seconds: float | None = None
    """The run time of the checks, if the runner reached its end."""


def read_out(raw: bytes) -> Readout:
    found = Readout()
    for line in islice(raw.split(b"\n"), _MOST_RECORDS):
        match _record(line):
            case {"probe": seen}:
                found.probes.append(_probe(seen))
            case {"check": str(name), "outcome": str(outcome), **more}:
                _add(found.report, _clean(name), outcome, more)
            case {"uncollected": str(name)}:
                found.uncollected.append(_clean(name))
            case {"end": int(), **more}:
                found.seconds = _seconds(more)
            case _:
                continue
    return found


def _record(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None  # the last line of a run that was cut short, or no record at all


def _probe(seen: Any) -> Probe | None:
    try:
        return parse(seen, Probe, lambda _: "probe")
    except (SpecError, ValueError):
        return None


def _add(report: dict[str, CheckReport], name: str, outcome: str, more: Mapping[Any, Any]) -> None:
    """A check is told once. If it is told again, what was not a pass stays."""
    known = outcome if outcome in list(Outcome) else Outcome.ERROR
    earlier = report.get(name)
    if earlier is None or earlier.outcome is Outcome.PASSED:
        message = _clean(str(more.get("message", "")))[:_MESSAGE_CHARACTERS]
        report[name] = CheckReport(outcome=Outcome(known), seconds=_seconds(more), message=message)


def _seconds(record: Mapping[Any, Any]) -> float:
    value = record.get("seconds")
    if isinstance(value, int | float) and math.isfinite(value) and value > 0:
        return float(value)
    return 0.0


def _clean(text: str) -> str:
    """Without halves of characters, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "backslashreplace").decode()
