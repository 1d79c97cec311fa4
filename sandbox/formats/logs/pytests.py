"""pytest: its short summary (`-rA`), in the shapes that data sets were made with.

The id is the second word of a line; ids with a space in them lost the rest in most data sets.
"""

import re
from collections.abc import Iterator

from sandbox.formats.logs.sighting import (
    Edition,
    Setting,
    Sighting,
    Status,
    aside,
    lines,
    sighting,
)

_FOUR = ("FAILED", "PASSED", "SKIPPED", "ERROR")
_FIVE = (*_FOUR, "XFAIL")
_COLOUR = re.compile(r"\[\d+m")
_CONTROLS = dict.fromkeys(range(1, 32))
_COUNT = re.compile(r"\[\d+\]")
_PERCENT = "%]"
_WORKER = re.compile(r"\[gw\d+\] \[ *\d+%\] ([A-Z]+) (?=\S)")
"""As pytest-xdist has it: which worker, how far, what came of which test."""
_SUBTEST = re.compile(r"SUBFAIL(?:ED)?\b.*? (\S+\.py::\S+)")
"""A part of a test failed, and the test itself may be told as passed. Looked for once in a line."""


def words(setting: Setting) -> tuple[str, ...]:
    """What a line of results begins with; XFAIL came later."""
    old = setting.edition.is_first or setting.edition is Edition.V2
    return _FOUR if old else _FIVE


def plain(text: str, setting: Setting) -> Iterator[Sighting]:
    for line in lines(text):
        for word, test in _second(line, setting):
            yield sighting(test, word)
        yield from _asides(line, setting)


def options(text: str, setting: Setting) -> Iterator[Sighting]:
    """Absolute paths among parameters differ from machine to machine: only their end counts."""
    if setting.edition is Edition.V1_0:
        yield from plain(text, setting)
        return
    for line in lines(text):
        for word, test in _second(line, setting):
            yield sighting(_without_folders(test), word)
        yield from _asides(line, setting)


def matplotlib(text: str, setting: Setting) -> Iterator[Sighting]:
    """Its ids have members of an enum whose names changed with Python."""
    if not setting.edition.is_first:
        text = text.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3")
    yield from plain(text, setting)


def v2(text: str, setting: Setting) -> Iterator[Sighting]:
    """With colours, or with the status at the end of a line, as old pytest had it."""
    whole = setting.edition is Edition.V5
    known = words(setting)
    for raw in lines(text):
        line = _COLOUR.sub("", raw).translate(_CONTROLS)
        if line.startswith(known):
            if line.startswith("FAILED"):
                line = line.split(" - ", 1)[0] if whole else line.replace(" - ", " ")
            parts = line.split()
            if len(parts) > 1 and not _is_count(parts, setting):
                yield sighting(" ".join(parts[1:]) if whole else parts[1], parts[0])
        elif line.endswith(known) and not setting.edition.is_first:
            parts = line.split()
            if len(parts) > 1 and whole:
                yield sighting(" ".join(parts[:-1]), parts[-1])
            elif len(parts) > 1:
                yield sighting(parts[0], parts[1])
        else:
            yield from _asides(line, setting)


def seaborn(text: str, setting: Setting) -> Iterator[Sighting]:
    """Passes in both places, failures in the summary; nothing else was ever read."""
    for line in lines(text):
        parts = line.split()
        if len(parts) < 2:
            continue
        if line.startswith("FAILED"):
            yield Sighting(parts[1], Status.FAILED)
        elif " PASSED " in line:
            if parts[1] == "PASSED":
                yield Sighting(parts[0], Status.PASSED)
        elif line.startswith("PASSED") and setting.edition is not Edition.V1_0:
            yield Sighting(parts[1], Status.PASSED)
        elif line.startswith(("SKIPPED ", "ERROR ", "XFAIL ")) and not _COUNT.fullmatch(parts[1]):
            yield aside(parts[1], Status(parts[0]))
        else:
            yield from _asides(line, setting)


def _second(line: str, setting: Setting) -> Iterator[tuple[str, str]]:
    if not line.startswith(words(setting)):
        return
    if line.startswith("FAILED"):
        line = line.replace(" - ", " ")
    parts = line.split(maxsplit=2)
    if len(parts) > 1 and not _is_count(parts, setting):
        yield parts[0], parts[1]


def _is_count(parts: list[str], setting: Setting) -> bool:
    """`SKIPPED [3] file:line: reason` tells how many, not which."""
    new = setting.edition is Edition.V5
    return new and parts[0] == "SKIPPED" and _COUNT.fullmatch(parts[1]) is not None


def _without_folders(test: str) -> str:
    opened, closed = test.find("["), test.rfind("]")
    if not 0 <= opened < closed:
        return test
    inside = test[opened + 1 : closed]
    if inside.startswith("/") and not inside.startswith("//") and "*" not in inside:
        inside = "/" + inside.rpartition("/")[2]
    return f"{test[:opened]}[{inside}]"


def _asides(line: str, setting: Setting) -> Iterator[Sighting]:
    """XPASS and, in old editions, XFAIL; subtests; and progress, which says it as it happens."""
    if line.startswith("XPASS ") or (line.startswith("XFAIL ") and "XFAIL" not in words(setting)):
        parts = line.split(maxsplit=2)
        if len(parts) > 1:
            yield aside(parts[1], Status(parts[0]))
    elif (at := line.find("SUBFAIL")) >= 0 and (found := _SUBTEST.match(line, at)):
        yield aside(found[1], Status.FAILED)
    elif line.startswith("[gw") and (found := _WORKER.match(line)):
        yield from _in_progress(line[found.end() :].rstrip(" "), found[1])
    elif line.endswith(_PERCENT) and "::" in line:
        name, _, word = line[: line.rfind("[")].rstrip().rpartition(" ")
        yield from _in_progress(name, word)


def _in_progress(name: str, word: str) -> Iterator[Sighting]:
    if word in (*_FIVE, "XPASS") and name:
        yield aside(name, Status(word))
