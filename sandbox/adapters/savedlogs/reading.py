"""What a log says of the tests that are asked for, in both readings, in bounded memory. Pure.

Whoever is graded can print ten million names that nobody asked for: only what is asked is kept.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sandbox.formats.logs.sighting import RANK, Sighting, Status
from sandbox.formats.logs.structured import dotted

FAILING = (Status.FAILED, Status.ERROR)
_MOST_FAILING, _MOST_OF_CUT = 200_000, 200_000


@dataclass(frozen=True, slots=True)
class Asked:
    """The tests of an instance."""

    tests: frozenset[str]
    cut: tuple[str, ...]
    """Those whose ids were cut: what begins so may be meant."""

    def has(self, test: str) -> bool:
        return test in self.tests or (bool(self.cut) and test.startswith(self.cut))


@dataclass(slots=True)
class Reading:
    last: dict[str, Sighting] = field(default_factory=dict)
    """As published: the last word that counts."""
    worst: dict[str, Status] = field(default_factory=dict)
    """As we read: of all words, the worst."""
    told: dict[str, frozenset[Status]] = field(default_factory=dict)
    empty: bool = True
    """Does no line count, of any test?"""
    failing: set[str] = field(default_factory=set)
    """Tests, asked for or not, whose last word is a failure; as many of them as are kept."""
    overflowed: bool = False

    @property
    def fails(self) -> bool:
        return bool(self.failing) or self.overflowed


def read(found: Iterable[Sighting], asked: Asked) -> Reading:
    """Raises UnreadableLog, as the parser does."""
    reading = Reading()
    for one in found:
        if one.counted:
            reading.empty = False
            if one.status in FAILING:
                reading.failing.add(one.test)
                reading.overflowed |= len(reading.failing) >= _MOST_FAILING
                if reading.overflowed:
                    reading.failing.clear()
            else:
                reading.failing.discard(one.test)
        if asked.has(one.test) and (one.test in reading.told or len(reading.told) < _MOST_OF_CUT):
            _keep(reading, one)
    return reading


def _keep(reading: Reading, one: Sighting) -> None:
    if one.counted:
        reading.last[one.test] = one
    seen = reading.worst.get(one.test)
    if seen is None or RANK[one.status] > RANK[seen]:
        reading.worst[one.test] = one.status
    reading.told[one.test] = reading.told.get(one.test, frozenset()) | {one.status}


def renamed(found: Iterable[Sighting], asked: Asked) -> Iterable[Sighting]:
    """Sightings of a file of results under the data set's names for the same tests."""
    names: dict[str, str] = {}
    for test in asked.tests:
        names.setdefault(dotted(test), test)
    for one in found:
        name = one.test if one.test in asked.tests else names.get(dotted(one.test), one.test)
        yield one if name == one.test else Sighting(name, one.status, one.word, one.counted)
