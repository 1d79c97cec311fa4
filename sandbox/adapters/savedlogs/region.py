"""Where in a log the tests' own output is, and whether they ran at all, by edition. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sandbox.adapters.savedlogs.doubt import Doubt, Flag
from sandbox.formats.logs.sighting import Edition

_MARK = ">>>>> "
_START, _END = f"{_MARK}Start Test Output", f"{_MARK}End Test Output"
_EXIT = f"{_MARK}Test Exit Code"
_NO_APPLY, _NO_RESET = f"{_MARK}Patch Apply Failed", f"{_MARK}Reset Failed"
_ERRORED, _LATE, _NO_INSTALL = (
    f"{_MARK}Tests Errored",
    f"{_MARK}Tests Timed Out",
    f"{_MARK}Init Failed",
)
_FAILURES = (_NO_APPLY, _NO_RESET, _ERRORED, _LATE)
_OLD_RESET = "Failed to reset task environment"
_OLD_HEADER, _HEADER_CHARS = "] Task Metadata:", 2000
_PRED, _TEST = f"{_MARK}Applied Patch (pred)", f"{_MARK}Applied Patch (test)"
_OLD_FAILURES = (
    f"{_NO_APPLY}; (pred_try)",
    f"{_NO_APPLY}; (pred_minimal_try)",
    _NO_INSTALL,
    _NO_RESET,
)
_OLD_MARK = re.compile(
    rf"^{_MARK}(?:Applied Patch|Patch Apply Failed;) \((?:pred|test)", re.MULTILINE
)
_OLD_SOME_FAILED = f"{_MARK}Some Tests Failed"
_EXIT_CODE = re.compile(re.escape(_EXIT) + r":\s*(-?\d{1,10})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    text: str
    """What the tests printed, as far as the rule of the edition finds it."""
    fallback: str = ""
    """Where to look when that has no results."""
    why_not: str = ""
    """The rule finds nothing to read, and why. Empty: it does."""
    exit_code: int | None = None
    flags: tuple[Flag, ...] = ()


def edition_of(text: str, *, fifth: bool, python: bool) -> Edition:
    """The edition that the log was made for. fifth: does the data set say that?

    What tests print must not decide it, so the header comes first. Before 3.x there were only
    projects in Python.
    """
    first_line_end = text.find("\n", 0, _HEADER_CHARS)
    if _OLD_HEADER in text[: max(first_line_end, 0)] and not fifth:
        return Edition.V1
    if fifth or _EXIT in text:
        return Edition.V5
    if _START in text or _END in text or not python:
        return Edition.V4
    return Edition.V1 if _OLD_MARK.search(text) else Edition.V2


def region_of(text: str, edition: Edition) -> Region:
    match edition:
        case Edition.V1_0:
            return replace(_first(text), why_not="; ".join(_failures(text)))
        case Edition.V1:
            return _first(text)
        case Edition.V2:
            return _second(text)
        case Edition.V4 | Edition.V5:
            return _between(text, checked=edition is Edition.V5)


def _first(text: str) -> Region:
    """After the line that says that the prediction's patch was applied for good."""
    reasons = [f"the log has `{mark}`" for mark in _OLD_FAILURES if mark in text]
    reasons += [f"the log has no `{mark}`" for mark in (_PRED, _TEST) if mark not in text]
    output = text.rpartition(_PRED)[2]
    doubts = [Doubt.MARKERS] if text.count(_PRED) > 1 or text.count(_TEST) > 1 else []
    if _TEST in text and any(mark in text.partition(_TEST)[2] for mark in _OLD_FAILURES):
        doubts.append(Doubt.FAILURE_MARK)
    return Region(
        text=output,
        why_not="; ".join(reasons),
        exit_code=1 if _OLD_SOME_FAILED in output else None,
        flags=tuple(Flag(doubt=doubt) for doubt in doubts),
    )


def _second(text: str) -> Region:
    """All of it: in this edition there was nothing to tell the tests' output by."""
    return Region(text=text.rpartition(_PRED)[2], why_not="; ".join(_failures(text)))


def _failures(text: str) -> list[str]:
    reasons = [f"the log has `{mark}`" for mark in (*_FAILURES, _OLD_RESET) if mark in text]
    if "applied patch" not in text.lower():
        reasons.append("the log says of no patch that it was applied")
    return reasons


def _between(text: str, *, checked: bool) -> Region:
    reasons = [f"the log has `{mark}`" for mark in _FAILURES if mark in text]
    reasons += [f"the log has no `{mark}`" for mark in (_START, _END) if mark not in text]
    output = text.partition(_START)[2].partition(_START)[0].partition(_END)[0]
    codes = list(_EXIT_CODE.finditer(text)) if checked else []
    return Region(
        text=output,
        fallback=text,
        why_not="; ".join(reasons),
        exit_code=int(codes[0][1]) if codes else None,
        flags=tuple(Flag(doubt=doubt) for doubt in _doubts(text, output, codes)),
    )


def _doubts(text: str, output: str, codes: list[re.Match[str]]) -> Iterator[Doubt]:
    if text.count(_START) > 1 or text.count(_END) > 1 or len({code[1] for code in codes}) > 1:
        yield Doubt.MARKERS
    if any(mark in output for mark in _FAILURES):
        yield Doubt.FAILURE_MARK


_RAN = re.compile(
    r"Executed [1-9]\d* of \d"  # karma
    r"|TOTAL: [1-9]\d* (?:SUCCESS|FAILED)"
    r"|[1-9][^\D1-9]* passing"  # mocha; from the last digit above 0, and so looked at once
    r"|Tests:\s+[1-9]"  # jest
    r"|Test Suites:\s+(?:\d+ \w+, )*[1-9]\d* total"
    r"|^# tests [1-9]"  # TAP
    r"|[1-9][^\D1-9]* specs?, \d+ failures?"  # jasmine
    r"|': ok$",  # openlayers' pictures
    re.MULTILINE,
)


def suite_ran(text: str) -> bool:
    """Is there a runner's own word that it ran at least one test?"""
    return _RAN.search(text) is not None
