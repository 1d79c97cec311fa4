"""Instants of a task's clock, and which of them are good ones to start at.

A good one is noon UTC in the middle of a week in the middle of a month, away from where clocks are
changed: then neither the minutes that a run takes nor a time zone cross a boundary that a test
could trip over.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

_FIRST_DAY, _LAST_DAY = 10, 20
_MIDWEEK = (1, 2, 3)
"""Tuesday to Thursday."""
_MARCH, _AFTER_CHANGE = 3, 17
"""North America changes its clocks on the second Sunday of March, the 14th at the latest."""
_NOON = 12


def seconds_of(at: str) -> int:
    """Seconds since the epoch. Raises ValueError."""
    return int(datetime.fromisoformat(at).timestamp())


def nanoseconds_of(at: str) -> int:
    return seconds_of(at) * 1_000_000_000


def written(seconds: float) -> str:
    """As `clock.at` has it."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def awkward(at: str) -> str:
    """Why this is no good instant to start a clock at; empty when it is one."""
    moment = datetime.fromisoformat(at).astimezone(UTC)
    return ", ".join(_against(moment))


def good_near(at: str) -> str:
    """The good instant that is nearest; of two, the later."""
    moment = datetime.fromisoformat(at).astimezone(UTC)
    days = (moment.date() + timedelta(days=n) for n in range(-40, 41))
    noons = [datetime(d.year, d.month, d.day, _NOON, tzinfo=UTC) for d in days if _is_good(d)]
    nearest = min(noons, key=lambda noon: (abs(noon - moment), moment - noon))
    return written(nearest.timestamp())


def _against(moment: datetime) -> Iterator[str]:
    if not _FIRST_DAY <= moment.day <= _LAST_DAY:
        yield "the days around it are those of two months"
    if moment.weekday() not in _MIDWEEK:
        yield f"it is a {moment:%A}"
    if moment.month == _MARCH and moment.day < _AFTER_CHANGE:
        yield "clocks are changed about then"
    if (moment.hour, moment.minute, moment.second) != (_NOON, 0, 0):
        yield "it is not noon in UTC"


def _is_good(day: date) -> bool:
    return not any(_against(datetime(day.year, day.month, day.day, _NOON, tzinfo=UTC)))
