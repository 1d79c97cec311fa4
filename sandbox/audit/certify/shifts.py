"""What is moved, one thing at a time, while a verdict has to stay where it is. Pure."""

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches

from sandbox.errors import UserError
from sandbox.model.conditions import USUAL, Conditions
from sandbox.model.task import ClockSpec

REPEATS = 10
QUICK = (
    "repeat-1",
    "repeat-2",
    "repeat-3",
    "year-later",
    "zone-kolkata",
    "order-1",
    "one-cpu-load",
)
"""For a gate on each change of a task: what finds most for the least."""
_EARLIEST, _LATEST = 2000, 2037
"""As for a task's own clock: files of a box are dated 2000."""
_NEW_YORK = "America/New_York"
_JUST_BEFORE = timedelta(seconds=2)
"""A box takes a second to come to its tests: they begin before the step, and end after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """One thing that is not as usual, and its name on the command line and in certificates."""

    name: str
    conditions: Conditions = USUAL


def all_shifts(clock: ClockSpec) -> tuple[Shift, ...]:
    """Every shift of a full certificate, the plain repeats first, for a task with this clock."""
    return (*_repeats(), *_dates(datetime.fromisoformat(clock.at)), *_settings(), *_machine())


def choose(shifts: Sequence[Shift], patterns: Iterable[str]) -> tuple[Shift, ...]:
    """Those that any pattern matches, and the first repeat, which all are held against."""
    known = [s.name for s in shifts]
    wanted = {known[0]}
    for pattern in patterns:
        found = fnmatch.filter(known, pattern)
        if not found:
            near = get_close_matches(pattern, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}"
            raise UserError(f"there is no shift `{pattern}`", hint=hint)
        wanted.update(found)
    return tuple(s for s in shifts if s.name in wanted)


def is_repeat(name: str) -> bool:
    return name.startswith("repeat-")


def _repeats() -> Iterator[Shift]:
    for number in range(1, REPEATS + 1):
        yield Shift(name=f"repeat-{number}")


def _dates(pin: datetime) -> Iterator[Shift]:
    for name, years in (
        ("year-later", 1),
        ("year-earlier", -1),
        ("decade-later", 10),
        ("decade-earlier", -10),
    ):
        if _EARLIEST <= pin.year + years <= _LATEST:
            yield _at(name, _years_on(pin, years))
    yield _at("leap-day", datetime(_leap_year(pin.year), 2, 29, 12, tzinfo=UTC))
    new_year = datetime(pin.year + 1, 1, 1, tzinfo=UTC)
    yield _at("new-years-eve", new_year - timedelta(seconds=10))
    yield _at("new-year", new_year - _JUST_BEFORE)
    # Since 2007 clocks there step at 2:00 of the second Sunday of March, when UTC is 5 h ahead, and
    # at 2:00 of the first Sunday of November, when it is 4 h ahead.
    gap, fold = _sunday(pin.year, 3, 2), _sunday(pin.year, 11, 1)
    yield _at("dst-gap", gap + timedelta(hours=7) - _JUST_BEFORE, TZ=_NEW_YORK)
    yield _at("dst-fold", fold + timedelta(hours=6) - _JUST_BEFORE, TZ=_NEW_YORK)
    yield _at("seconds-overflow", datetime(2038, 1, 19, 3, 14, 5, tzinfo=UTC))
    yield Shift(name="clock-fixed", conditions=Conditions(mode="fixed"))


def _settings() -> Iterator[Shift]:
    for name, zone in (
        ("zone-kolkata", "Asia/Kolkata"),
        ("zone-chatham", "Pacific/Chatham"),
        ("zone-west", "Etc/GMT+12"),
    ):
        yield _env(name, TZ=zone)
    # 0 is the usual one: the repeats have it.
    for seed in ("1", "4242", "random"):
        yield _env(f"hash-seed-{seed}", PYTHONHASHSEED=seed)
    yield _env("locale-c", LC_ALL="C")
    for order in (1, 2, 3):
        yield Shift(name=f"order-{order}", conditions=Conditions(order=order))


def _machine() -> Iterator[Shift]:
    # Load is bounded by what the box may use: the checks get their share of that and no less. On
    # niceness alone a busy machine starves them, and finds only that it did.
    yield Shift(name="one-cpu", conditions=Conditions(cpus=1.0))
    yield Shift(name="load", conditions=Conditions(load=2))
    yield Shift(name="one-cpu-load", conditions=Conditions(cpus=1.0, load=2))
    yield Shift(name="user", conditions=Conditions(user="1000:1000"))
    yield Shift(name="hostname", conditions=Conditions(hostname="elsewhere"))
    yield Shift(name="umask", conditions=Conditions(umask=0o077))


def _at(name: str, when: datetime, **env: str) -> Shift:
    at = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    return Shift(name=name, conditions=Conditions(at=at, env=env))


def _env(name: str, **env: str) -> Shift:
    return Shift(name=name, conditions=Conditions(env=env))


def _years_on(pin: datetime, years: int) -> datetime:
    leap = (pin.month, pin.day) == (2, 29) and not _is_leap(pin.year + years)
    return pin.replace(year=pin.year + years, day=28 if leap else pin.day)


def _leap_year(year: int) -> int:
    """The pin's own, or the one before it."""
    return next(y for y in range(year, year - 9, -1) if _is_leap(y))


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _sunday(year: int, month: int, number: int) -> datetime:
    first = datetime(year, month, 1, tzinfo=UTC)
    return first + timedelta(days=(6 - first.weekday()) % 7 + 7 * (number - 1))
