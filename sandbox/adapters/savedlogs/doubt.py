"""What is odd about a log, though a verdict was found. Each has a name; a person decides."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

_MOST_NAMED = 5


class Doubt(StrEnum):
    CUT_ID = "cut-id"
    """The data set cut the test's id at a space; it was matched as far as it goes."""
    CUT_ID_DISAGREES = "cut-id-disagrees"
    """Several tests begin so, and did not end alike: the published rule takes none of them."""
    DROPPED = "dropped-status"
    """The published rule counts it neither as passed nor as failed, so nothing is asked of it."""
    CONTRADICTION = "contradiction"
    """The log tells a test twice, once as passed and once not. The last word was published."""
    UNCOUNTED = "uncounted"
    """Told on lines that the published rule passes over."""
    ABSENT_PASSES = "absent-passes"
    """Only failures are looked for: these are not in the log at all, and count as passed."""
    MARKERS = "markers"
    """The marks around the test output are there more than once: something printed them."""
    FAILURE_MARK = "failure-mark"
    """A mark of a step that failed stands where tests print: the published rule believes it."""
    OUTSIDE = "outside-markers"
    """There are no results between the marks, and there are some elsewhere in the log."""
    EXIT_CODE = "exit-code"
    """The tests' program ended as if one had failed, and the log tells of none."""
    STRUCTURED = "structured"
    """A file of results decided; the log alone says something else."""
    NOT_UTF8 = "not-utf-8"
    """Bytes that are no text: published graders stop there."""
    NUL = "nul"
    CARRIAGE_RETURN = "carriage-return"
    """One in a line ends that line to published graders; with it, the tests end otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    doubt: Doubt
    tests: tuple[str, ...] = ()
    """The first of them."""
    count: int = 1


def flagged(doubt: Doubt, tests: Iterable[str]) -> list[Flag]:
    """One flag for all of them; none for none."""
    found = tuple(tests)
    return [Flag(doubt=doubt, tests=found[:_MOST_NAMED], count=len(found))] if found else []
