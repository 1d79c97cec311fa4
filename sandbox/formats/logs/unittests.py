"""unittest's verbose output, as Django's runner prints it.

A test's name and its `ok` stand on one line unless the test, or Django, prints between them.
"""

import re
from collections.abc import Iterator

from sandbox.formats.logs.sighting import Setting, Sighting, Status, aside, lines

_VERSION = "--version is equivalent to version"
_PASSES = (" ... ok", " ... OK", " ...  OK")
_MIGRATION = "Applying sites.0002_alter_domain_unique...test_no_migrations"
_ENDINGS = {" ... FAIL": Status.FAILED, " ... ERROR": Status.ERROR}
_ASIDES = {" ... expected failure": Status.XFAIL, " ... unexpected success": Status.XPASS}
_CUT = " ... "


def django(text: str, setting: Setting) -> Iterator[Sighting]:
    old = setting.edition.is_first
    before: str | None = None
    for raw in lines(text):
        line = raw.strip()
        if old:
            if line.endswith(_PASSES[0]):
                yield Sighting(line.split(_PASSES[0])[0], Status.PASSED)
        else:
            if _VERSION in line:
                yield Sighting(_VERSION, Status.PASSED)
            if _CUT in line:
                before = line.split(_CUT)[0]
            line, found = _passed(line)
            yield from found
        yield from _not_passed(line)
        if not old and before is not None and line.startswith("ok"):
            # What stood between the name and its `ok` had lines of its own.
            yield Sighting(before, Status.PASSED)
    if not old:
        yield from _interrupted(text)


def _passed(line: str) -> tuple[str, list[Sighting]]:
    for suffix in _PASSES:
        if line.endswith(suffix):
            if line.startswith(_MIGRATION):
                line = line.split("...", 1)[-1].strip()
            return line, [Sighting(line.rsplit(suffix, 1)[0], Status.PASSED)]
    return line, []


def _not_passed(line: str) -> Iterator[Sighting]:
    if " ... skipped" in line:
        yield Sighting(line.split(" ... skipped", maxsplit=1)[0], Status.SKIPPED)
    for ending, status in _ENDINGS.items():
        if line.endswith(ending):
            yield Sighting(line.split(ending, maxsplit=1)[0], status)
        head = "FAIL:" if status is Status.FAILED else "ERROR:"
        if line.startswith(head) and len(parts := line.split(maxsplit=2)) > 1:
            yield Sighting(parts[1], status)
            yield aside(line[len(head) :].strip(), status)
    for ending, status in _ASIDES.items():
        if line.endswith(ending):
            yield aside(line.split(ending, maxsplit=1)[0], status)


_TESTING = re.compile(r"\s\.\.\.\sTesting against Django installed in ")
_SILENCED = re.compile(r" silenced\)\.\nok$", re.MULTILINE)
_INTERNAL = re.compile(r"\s\.\.\.\sInternal Server Error: /")
_CHECKED = re.compile(r"\s\.\.\.\sSystem check identified no issues \(0 silenced\)(?=\n)")
_OK = re.compile(r"\nok$", re.MULTILINE)


def _interrupted(text: str) -> Iterator[Sighting]:
    """A name, then what Django prints in the middle of it, then `ok` on a line of its own."""
    at = since = 0
    while found := _TESTING.search(text, at):
        ending = _SILENCED.search(text, found.end())
        if ending is None:
            break
        at = found.end()
        for name in _name(text, found.start(), since):
            yield Sighting(name, Status.PASSED)
            at = since = ending.end()
    yield from _in_a_line(text, _INTERNAL, "/")
    yield from _in_a_line(text, _CHECKED, "")


def _in_a_line(text: str, needle: re.Pattern[str], tail: str) -> Iterator[Sighting]:
    at = since = 0
    while found := needle.search(text, at):
        end = text.find("\n", found.end())
        if end < 0:
            return
        at = end
        ending = _OK.match(text, end) if text.endswith(tail, found.end(), end) else None
        if ending is None:
            continue
        for name in _name(text, found.start(), since):
            yield Sighting(name, Status.PASSED)
            at = since = ending.end()


def _name(text: str, end: int, since: int) -> Iterator[str]:
    """What stands on the line before `end`, if that line begins after what was read already."""
    start = text.rfind("\n", max(since - 1, 0), end) + 1
    if start or not since:
        yield text[start:end]
