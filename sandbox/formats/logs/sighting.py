"""What a log says of a test, place by place, before anybody decides what it means.

A log can say two things of one test, or something nobody knows. A parser keeps all of it, in
order; `last` and `worst` are the two readings. The published graders of SWE-bench read some lines
and pass over others: `counted` says whether they would have read this one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Better ones first."""

    PASSED = "PASSED"
    XFAIL = "XFAIL"
    SKIPPED = "SKIPPED"
    XPASS = "XPASS"
    UNKNOWN = "UNKNOWN"
    """The log has a word that is no status; it is kept in `Sighting.word`."""
    ERROR = "ERROR"
    FAILED = "FAILED"


RANK = {status: i for i, status in enumerate(Status)}


@dataclass(frozen=True, slots=True)
class Sighting:
    test: str
    status: Status
    word: str = ""
    """What the log has, where that is no status."""
    counted: bool = True


class Edition(StrEnum):
    """Whose rule a published verdict was made by: SWE-bench's grading changed between these."""

    V1_0 = "1.0"
    """Before 1.0.5. Its logs are those of the next one: it is never found out, only asked for."""
    V1 = "1"
    """1.0.15 to 1.1.5: one log of all steps, with a line for each patch that applied."""
    V2 = "2"
    """2.x: the output of the evaluation script as a whole."""
    V4 = "4"
    """3.x and 4.x: between two markers."""
    V5 = "5"
    """5.x: between two markers, and checked against the exit code."""

    @property
    def is_first(self) -> bool:
        return self in (Edition.V1_0, Edition.V1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a parser may need to know beside the text."""

    edition: Edition = Edition.V5
    instance: str = ""
    version: str = ""


Parser = Callable[[str, Setting], Iterable[Sighting]]


class UnreadableLog(ValueError):
    """The log breaks the form that its parser needs: there is no answer, not even an empty one."""


def lines(text: str) -> Iterator[str]:
    r"""By \n only. Piece by piece: a list of a large log's lines would be a second copy of it."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def known(word: str) -> Status:
    """The word as a status; XPASS is none to the published graders, and so is no word here."""
    return Status(word) if word in _WORDS else Status.UNKNOWN


def sighting(test: str, word: str) -> Sighting:
    status = known(word)
    return Sighting(test, status, word if status is Status.UNKNOWN else "")


def aside(test: str, status: Status, word: str = "") -> Sighting:
    """What the published graders pass over."""
    return Sighting(test, status, word, counted=False)


def last(found: Iterable[Sighting]) -> dict[str, Sighting]:
    """As the published graders read: only what counts, and the last word on a test is the word."""
    return {one.test: one for one in found if one.counted}


def worst(found: Iterable[Sighting]) -> dict[str, Status]:
    """As we read: all of it, and nothing takes back a failure."""
    statuses: dict[str, Status] = {}
    for one in found:
        seen = statuses.get(one.test)
        if seen is None or RANK[one.status] > RANK[seen]:
            statuses[one.test] = one.status
    return statuses


_WORDS = frozenset({"PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL"})
