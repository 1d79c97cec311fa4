"""PHP and Ruby."""

import re
from collections.abc import Iterator

from sandbox.formats.logs.sighting import (
    Setting,
    Sighting,
    Status,
    UnreadableLog,
    aside,
    lines,
)

_SUITE = re.compile(r"\w")
_PHPUNIT = {"✔": Status.PASSED, "✘": Status.FAILED, "↩": Status.SKIPPED}
_PHPUNIT_ASIDES = {"∅": Status.SKIPPED, "☢": Status.UNKNOWN, "⚠": Status.UNKNOWN}


def phpunit(text: str, setting: Setting) -> Iterator[Sighting]:
    """`--testdox`: a class, and below it sentences."""
    del setting
    suite: str | None = None
    for line in lines(text):
        cut = line.rfind(" (", 0, len(line) - 2) if line.endswith(")") else -1
        if cut > 1 and _SUITE.match(line):
            suite = line[:cut]
            continue
        body = line.lstrip()
        test = f"{suite} > {body[1:].lstrip()}"
        if body[:1] in _PHPUNIT:
            yield Sighting(test, _PHPUNIT[body[0]])
        elif body[:1] in _PHPUNIT_ASIDES:
            yield aside(test, _PHPUNIT_ASIDES[body[0]], body[0])


_OUTCOMES = {".": Status.PASSED, "F": Status.FAILED, "E": Status.FAILED, "S": Status.SKIPPED}


def minitest(text: str, setting: Setting) -> Iterator[Sighting]:
    """`TestX#test_y. = 0.01 s = .`: the last mark on the line is the outcome."""
    del setting
    for raw in lines(text):
        line = raw.strip()
        yield from _minitest_line(line)
        if line.endswith(" = S"):
            yield aside(line.partition(" = ")[0].removesuffix("."), Status.SKIPPED)


def _minitest_line(line: str) -> Iterator[Sighting]:
    mark = max(line.rfind(c) for c in ".FE")
    equals = line.rfind("=", 0, mark) if mark > 0 else -1
    cut = line.rfind(". ", 0, equals) if equals > 0 else -1
    if cut > 0:
        yield Sighting(line[:cut], _OUTCOMES[line[mark]])


_DOTS = re.compile(r" (\.+)(F?)")


def cucumber(text: str, setting: Setting) -> Iterator[Sighting]:
    """`--format progress`: a path, dots, and then how the last step went."""
    del setting
    for raw in lines(text):
        line = raw.strip()
        found = [m for m in _DOTS.finditer(line) if m[2] or len(m[1]) > 1]
        if found:
            status = Status.FAILED if found[-1][2] else Status.PASSED
            yield Sighting(line[: found[-1].start()], status)


_TEST_UNIT = re.compile(r":\s+(\.|[EFO]\b)")
_TEST_UNIT_OUTCOMES = {**_OUTCOMES, "O": Status.SKIPPED}
_PREFIX = "test: "


def test_unit(text: str, setting: Setting) -> Iterator[Sighting]:
    del setting
    for raw in lines(text):
        line = raw.strip()
        found = [m for m in _TEST_UNIT.finditer(line) if m.start()]
        if not found:
            continue
        end = found[-1].start()
        prefixed = line.startswith(_PREFIX) and end > len(_PREFIX)
        yield Sighting(line[len(_PREFIX) if prefixed else 0 : end], _of(found[-1][1]))


def _of(mark: str) -> Status:
    return _TEST_UNIT_OUTCOMES[mark]


_RSPEC = {" - passed": Status.PASSED, " - failed": Status.FAILED}


def rspec(text: str, setting: Setting) -> Iterator[Sighting]:
    """`description - passed`, which a filter made of RSpec's JSON."""
    del setting
    for raw in lines(text):
        line = raw.strip()
        end, cut = max((line.rfind(end), end) for end in _RSPEC)
        if end > 0:
            yield Sighting(line[:end], _RSPEC[cut])
        elif line.endswith(" - pending"):
            yield aside(line.removesuffix(" - pending"), Status.SKIPPED)


_JEKYLL_MINITEST = ("9141", "8047", "8167")
_JEKYLL_CUCUMBER = ("8761", "8771")


def jekyll(text: str, setting: Setting) -> Iterator[Sighting]:
    """Which runner a change was tested with is known by its number only."""
    number = setting.instance.partition("-")[2].partition("-")[0]
    if number in _JEKYLL_MINITEST:
        yield from minitest(text, setting)
    elif number in _JEKYLL_CUCUMBER:
        yield from cucumber(text, setting)
    else:
        raise UnreadableLog(f"nobody knows the runner of {setting.instance!r}")
