"""jest: by test (`--verbose`), by suite (PASS and FAIL), as JSON made into lines; and vitest."""

import re
from collections.abc import Iterator

from sandbox.formats.logs.outline import Outline
from sandbox.formats.logs.sighting import Edition, Setting, Sighting, Status, aside, lines

_SIGNS = {"✓": Status.PASSED, "✕": Status.FAILED, "○": Status.SKIPPED}
_TODO = "✎"
_TOOK = re.compile(r"\s\(\d+\s*m?s\)$")
_VITEST = {"✓": Status.PASSED, "\N{MULTIPLICATION SIGN}": Status.FAILED, "↓": Status.SKIPPED}
_VITEST_END = re.compile(r"\s(?:\d+\s*m?s?|\[skipped\])$")
_SUITE = {"PASS": Status.PASSED, "FAIL": Status.FAILED}
_SUITE_TOOK = (
    re.compile(r"(.*)\s\([\d.]+ms\)"),
    re.compile(r"(.*)\s\([\d.]+\ss\)"),
    re.compile(r"(.*)\s\([\d.]+s\)"),
)
_GROMMET = {
    Status.FAILED: re.compile(r"^FAIL\s(.*)", re.MULTILINE),
    Status.PASSED: re.compile(r"^PASS\s(.*)", re.MULTILINE),
}
_GROMMET_TOOK = re.compile(r"\s\([\d.]+\s?(?:ms|s)\)$")
_JSON_LINES = {
    "[PASSED]": Status.PASSED,
    "[FAILED]": Status.FAILED,
}
_JSON_ASIDES = {"[PENDING]": Status.SKIPPED, "[SKIPPED]": Status.SKIPPED, "[TODO]": Status.SKIPPED}
_CALYPSO_RUN = " ./node_modules/.bin/jest "
_CALYPSO_MS = re.compile(r"\(\d+ms\)")


def verbose(text: str, setting: Setting) -> Iterator[Sighting]:
    for raw in lines(text):
        sign, rest = _signed(raw.strip())
        if sign == _TODO and rest:
            yield aside(rest, Status.SKIPPED)
        elif sign in _SIGNS and rest:
            test = _without_end(rest, _TOOK)
            test = test.strip() if setting.edition is Edition.V5 else test
            yield Sighting(test, _SIGNS[sign])


def vitest(text: str, setting: Setting) -> Iterator[Sighting]:
    del setting
    for raw in lines(text):
        sign, rest = _signed(raw.strip())
        if sign in _VITEST and rest:
            yield Sighting(_without_end(rest, _VITEST_END), _VITEST[sign])


def suites(text: str, setting: Setting) -> Iterator[Sighting]:
    """`PASS path (1.2 s)`: whole files."""
    del setting
    for line in lines(text):
        status = _SUITE.get(line[:4])
        if status and line[4:5].isspace():
            yield Sighting(_untimed(line[5:]), status)


def grommet(text: str, setting: Setting) -> Iterator[Sighting]:
    """The same, with failures read first: a later pass of the same file takes one back."""
    del setting
    for status, pattern in _GROMMET.items():
        for found in pattern.finditer(text):
            yield Sighting(_without_end(found[1].strip(), _GROMMET_TOOK, least=0), status)


def from_json(text: str, setting: Setting) -> Iterator[Sighting]:
    """`[PASSED] describe > test`, which a filter made of jest's JSON."""
    del setting
    for raw in lines(text):
        line = raw.strip()
        word, rest = line[: line.find("]") + 1], line[line.find("]") + 1 :]
        if len(rest) < 2 or not rest[0].isspace():
            continue
        if word in _JSON_LINES:
            yield Sighting(rest[1:], _JSON_LINES[word])
        elif word in _JSON_ASIDES:
            yield aside(rest[1:], _JSON_ASIDES[word])


def calypso(text: str, setting: Setting) -> Iterator[Sighting]:
    """Several runs of jest, each to its summary; names with the headings above them."""
    del setting
    outline = Outline()
    for run in text.split(_CALYPSO_RUN)[1:]:
        for line in lines(run):
            if line.startswith(("Test Suites", "  ● ")):
                break
            sign = line.strip()[:1]
            if sign not in ("✓", "✕"):
                outline.see(line)
            elif name := _calypso_name(line):
                status = Status.PASSED if sign == "✓" else Status.FAILED
                above = " - ".join(outline.headings)
                yield Sighting(f"{above} - {name[0]}".strip(), status)


def _calypso_name(line: str) -> list[str]:
    """The name, in a list; nothing when the line is not of the form."""
    rest = line.lstrip()[1:]
    if not line[0].isspace() or not rest[:1].isspace():
        return []
    rest = rest[1:]
    times = list(_CALYPSO_MS.finditer(rest))
    if not times:
        return [rest]
    return [rest[: times[-1].start()]] if times[-1].end() == len(rest) else []


def _signed(line: str) -> tuple[str, str]:
    """A sign, a space, a name."""
    return (line[0], line[2:]) if line[1:2].isspace() else ("", "")


def _without_end(name: str, end: re.Pattern[str], *, least: int = 1) -> str:
    found = end.search(name, least)
    return name[: found.start()] if found else name


def _untimed(name: str) -> str:
    for took in _SUITE_TOOK:
        if found := took.match(name):
            return found[1]
    return name
