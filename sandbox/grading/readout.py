"""What came out of a box, a record a line: of the runner, and of who watched it. Pure.

The code under test runs in the runner's process, so it can write records of the runner's. It can
lie about itself; it must not be able to crash us, to take back a failure, or to make a verdict
void. Only the supervisor's own lines begin with `!`: it puts a `.` before those of the runner.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.errors import SpecError
from sandbox.formats.shape import parse
from sandbox.model.verdict import CheckReport, Outcome, Probe

_MESSAGE_CHARACTERS = 1000
_VALUE_CHARACTERS, _MOST_VALUES, _MOST_KEYS = 1 << 16, 16, 20_000
"""Of what a plain run observes."""
_MOST_RECORDS = 200_000
"""More than any suite has; code under test can write them faster than we read."""
_RUNNER, _SUPERVISOR = b".", b"!"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the runner ended, as the supervisor saw it."""

    how: str
    """`exited`, or why it was ended."""
    exit_code: int
    """128 + n for signal n."""
    others: int
    """Processes that were left and had to be killed."""
    seconds: float


@dataclass(slots=True)
class Readout:
    probes: list[Probe | None] = field(default_factory=list)
    """None: one that cannot be read. The first was told before the code under test was loaded."""
    report: dict[str, CheckReport] = field(default_factory=dict)
    observed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    uncollected: list[str] = field(default_factory=list)
    running: str = ""
    """The check that had begun, and not ended, when the records did."""
    overran: list[str] = field(default_factory=list)
    """Checks that took too long."""
    status: int | None = None
    """With which the runner said it would end, if it came so far."""
    seconds: float = 0.0
    """The run time of the checks, as the runner told."""
    ended: Ended | None = None
    """None: the supervisor did not come to its own end."""


def read_out(raw: bytes) -> Readout:
    found = Readout()
    told = 0
    for line in raw.split(b"\n"):
        sender, record = line[:1], line[1:]
        if sender == _SUPERVISOR:
            _of_supervisor(found, _record(record))
        elif sender == _RUNNER and told < _MOST_RECORDS:
            told += 1
            _of_runner(found, _record(record))
    return found


def _of_supervisor(found: Readout, record: Any) -> None:
    match record:
        case {"overran": str(name), **more}:
            name = _clean(name)
            found.overran.append(name)
            found.running = ""
            late = {"message": f"it took more than {_seconds(more):g} s"}
            _add(found.report, name, Outcome.FAILED, late)
        case {"ended": str(how), "exit": int(code), "others": int(others), **more}:
            found.ended = Ended(how=how, exit_code=code, others=others, seconds=_seconds(more))
        case _:
            pass


def _of_runner(found: Readout, record: Any) -> None:
    match record:
        case {"probe": seen}:
            found.probes.append(_probe(seen))
        case {"begin": str(name)}:
            found.running = _clean(name)[:_MESSAGE_CHARACTERS]
        case {"check": str(name), "outcome": str(outcome), **more}:
            found.running = ""
            _add(found.report, _clean(name), outcome, more)
        case {"observe": str(key), "value": str(value)}:
            _observe(found.observed, _clean(key), _clean(value)[:_VALUE_CHARACTERS])
        case {"uncollected": str(name)}:
            found.uncollected.append(_clean(name)[:_MESSAGE_CHARACTERS])
        case {"end": int(status), **more}:
            found.status, found.seconds = status, _seconds(more)
        case _:
            pass


def _record(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None  # the last line of a run that was cut short, or no record at all


def _probe(seen: Any) -> Probe | None:
    try:
        probe = parse(seen, Probe, lambda _: "probe")
    except (SpecError, ValueError, RecursionError):
        return None
    # What is written as `NaN` could not be read again.
    finite = all(map(math.isfinite, (*probe.clock.values(), *probe.numbers.values())))
    return probe if finite else None


def _add(report: dict[str, CheckReport], name: str, outcome: str, more: Mapping[Any, Any]) -> None:
    """A check is told once. If it is told again, what was not a pass stays."""
    known = outcome if outcome in list(Outcome) else Outcome.ERROR
    earlier = report.get(name)
    if earlier is None or earlier.outcome is Outcome.PASSED:
        message = _clean(str(more.get("message", "")))[:_MESSAGE_CHARACTERS]
        report[name] = CheckReport(outcome=Outcome(known), seconds=_seconds(more), message=message)


def _observe(observed: dict[str, tuple[str, ...]], key: str, value: str) -> None:
    """The different values of a key, in the order in which they came."""
    known = observed.get(key, ())
    if value in known or len(known) >= _MOST_VALUES:
        return
    if known or len(observed) < _MOST_KEYS:
        observed[key] = (*known, value)


def _seconds(record: Mapping[Any, Any]) -> float:
    value = record.get("seconds")
    try:
        seconds = float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:
        return 0.0  # JSON's whole numbers have no end
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def _clean(text: str) -> str:
    """Without halves of characters, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "backslashreplace").decode()
