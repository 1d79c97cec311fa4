"""Maven, Ant and Gradle."""

import re
from collections import deque
from collections.abc import Iterator

from sandbox.formats.logs.sighting import Edition, Setting, Sighting, Status, aside, lines

_TEST = re.compile(r".*-Dtest=(\S+)")
_BUILD = {"BUILD SUCCESS": Status.PASSED, "BUILD FAILURE": Status.FAILED}
_NO_NAME = "---NO TEST NAME FOUND YET---"
_SUREFIRE = re.compile(
    r"(?:\[(?:INFO|ERROR|WARNING)\]\s+)?Tests run: \d+, Failures: (\d+), Errors: (\d+), "
    r"Skipped: (\d+)[^-]*--? in (\S+)"
)


def maven(text: str, setting: Setting) -> Iterator[Sighting]:
    """Maven names no test that passed, so each is run by a command of its own.

    How the build ended is how the test did. Shell and Maven write at once: either may come first.
    """
    if setting.edition is not Edition.V5:
        yield from _maven_in_order(text)
        return
    waiting, early = deque[str](), deque[Status]()
    for raw in lines(text):
        line = raw.strip()
        if named := _TEST.match(line):
            waiting.append(named[1])
        if ended := _ended(line):
            if waiting:
                yield Sighting(waiting.popleft(), ended)
            else:
                early.append(ended)
        yield from _surefire(line)
    for test, status in zip(waiting, early, strict=False):
        yield Sighting(test, status)


def _maven_in_order(text: str) -> Iterator[Sighting]:
    test = _NO_NAME
    for raw in lines(text):
        line = raw.strip()
        if named := _TEST.match(line):
            test = named[1]
        if ended := _ended(line):
            yield Sighting(test, ended)
        yield from _surefire(line)


def _ended(line: str) -> Status | None:
    return next((status for end, status in _BUILD.items() if line.endswith(end)), None)


def _surefire(line: str) -> Iterator[Sighting]:
    """A class as a whole."""
    if found := _SUREFIRE.match(line):
        failures, errors, skipped, name = found.groups()
        status = (
            Status.FAILED
            if int(failures[:9])
            else Status.ERROR
            if int(errors[:9])
            else Status.SKIPPED
            if int(skipped[:9])
            else Status.PASSED
        )
        yield aside(name, status)


_ANT = re.compile(r"\[junit\]\s+\[(PASS|FAIL|ERR|SKIP)\]\s+(.*)$")


def ant(text: str, setting: Setting) -> Iterator[Sighting]:
    del setting
    for raw in lines(text):
        if found := _ANT.match(raw.strip()):
            if found[1] == "SKIP":
                yield aside(found[2], Status.SKIPPED)
            else:
                yield Sighting(found[2], _PASS if found[1] == "PASS" else Status.FAILED)


_PASS = Status.PASSED
_GRADLE = ("PASSED", "FAILED")


def gradle(text: str, setting: Setting) -> Iterator[Sighting]:
    """`com.example.SomeTest > method PASSED`; the status may have come loose from the name."""
    waiting: str | None = None
    for raw in lines(text):
        line = raw.strip()
        name, word = line[:-7], line[-6:]
        if word in _GRADLE and len(name) > 1 and name[0] != ">" and line[-7].isspace():
            yield Sighting(name, Status(word))
            waiting = None
        elif setting.edition is not Edition.V5:
            continue
        elif len(parts := line.split(maxsplit=3)) == 3 and parts[1] == ">" and line[0] != ">":
            waiting = line
        elif line in _GRADLE and waiting:
            yield Sighting(waiting, Status(line))
            waiting = None
        elif line.endswith(" SKIPPED") and " > " in line:
            yield aside(line.removesuffix(" SKIPPED"), Status.SKIPPED)
