"""mocha: its `spec` reporter, its JSON, and its list of failures; TAP; quarto's Deno tests."""

import json
import re
from collections.abc import Iterator
from typing import Any

from sandbox.formats.logs import jest, stretch
from sandbox.formats.logs.outline import Outline
from sandbox.formats.logs.sighting import (
    Setting,
    Sighting,
    Status,
    UnreadableLog,
    aside,
    lines,
)

_PASSING = re.compile(r"\n[ \t]*\d+ passing")
_MS = re.compile(r"\(\d+ms\)")
_NUMBERED = re.compile(r"\d+\)")


def highlightjs(text: str, setting: Setting) -> Iterator[Sighting]:
    """The nearest heading, a dot, the name; up to the summary."""
    del setting
    heading: list[str] = []
    for line in lines(_PASSING.split(text, maxsplit=1)[0]):
        body = line.strip()
        if body.startswith(("✓", "✔")):
            yield Sighting(".".join([*heading, _untimed(body[1:])]), Status.PASSED)
        elif _NUMBERED.match(body):
            yield Sighting(".".join([*heading, _untimed(body.partition(")")[2])]), Status.FAILED)
        elif line.startswith("  "):
            heading = [body]


def spec(text: str, setting: Setting) -> Iterator[Sighting]:
    """The `spec` reporter of any project: all headings and the name, as mocha's own full title."""
    del setting
    outline = Outline()
    for line in lines(_PASSING.split(text, maxsplit=1)[0]):
        body = line.strip()
        found = _SPEC.match(body)
        if found is None:
            outline.see(line)
            continue
        test = " ".join([*outline.headings, _untimed(body[found.end() :])])
        yield Sighting(test, _SPEC_STATUS.get(found[1], Status.FAILED))


_SPEC = re.compile(r"([✓✔-]|\d+\)) ")
_SPEC_STATUS = {"✓": Status.PASSED, "✔": Status.PASSED, "-": Status.SKIPPED}
_FILES = re.compile(r"running\s\d+\stest\sfiles")
_SUMMARY = re.compile(r"(?<!\d)\d+\spassing")
_TOOK = re.compile(r"(.*)\s\(\d+m+s\)")
_SIGN_OR_NUMBER = re.compile(r"(?:(✔)|\d+\))\s")


def lighthouse_spec(text: str, setting: Setting) -> Iterator[Sighting]:
    del setting
    for run in _FILES.split(text)[1:]:
        outline = Outline()
        for line in lines(_SUMMARY.split(run, maxsplit=1)[0].strip()):
            body = line.strip()
            found = _SIGN_OR_NUMBER.match(body)
            if found is None:
                outline.see(line)
                continue
            rest = body[found.end() :]
            timed = _TOOK.match(rest)
            status = Status.PASSED if found[1] else Status.FAILED
            yield Sighting(" - ".join([*outline.headings, timed[1] if timed else rest]), status)


_PRISM = "./node_modules/.bin/mocha tests/run.js --reporter json"
_LIGHTHOUSE = "./node_modules/.bin/mocha --reporter json"
_TITLE = re.compile(r'"fullTitle":\s"')


def prism(text: str, setting: Setting) -> Iterator[Sighting]:
    """A JSON report after each command."""
    del setting
    for run in text.split(_PRISM)[1:]:
        body = "{" + run.split("{", 1)[-1].rsplit("}", 1)[0] + "}"
        try:
            report = json.loads(body)
        except (ValueError, RecursionError):
            raise UnreadableLog("mocha's JSON report is cut or broken") from None
        yield from _reported(report, "failures", Status.FAILED)
        yield from _reported(report, "passes", Status.PASSED)
        if isinstance(report.get("pending"), list):
            for one in _reported(report, "pending", Status.SKIPPED):
                yield aside(one.test, one.status)


def _reported(report: dict[str, Any], key: str, status: Status) -> list[Sighting]:
    try:
        return [Sighting(str(test["fullTitle"]), status) for test in report[key]]
    except (LookupError, TypeError):
        raise UnreadableLog(f"mocha's JSON report has no list `{key}` of tests") from None


def lighthouse(text: str, setting: Setting) -> Iterator[Sighting]:
    """Three forms in its history, by version."""
    if setting.version in ("9.5", "10.0", "10.2"):
        yield from lighthouse_spec(text, setting)
        return
    try:
        later = float(setting.version) >= 3
    except ValueError:
        raise UnreadableLog(f"lighthouse's version {setting.version!r} is no number") from None
    if later:
        yield from jest.suites(text, setting)
        return
    for run in text.split(_LIGHTHOUSE)[1:]:
        parts = (('"passes": [', "]", Status.PASSED), ('"failures": [', "],", Status.FAILED))
        for opening, closing, status in parts:
            body = run.split(opening)[-1].rsplit(closing, 1)[0]
            for title in stretch.to_line_end(body, _TITLE, '",'):
                yield Sighting(title, status)


_HEAD = re.compile(r"\s{2}\d+\)")
_SPACES = re.compile(r"\s+")


def eslint(text: str, setting: Setting) -> Iterator[Sighting]:
    """Failures only: what stands between a number and the line that says `Error`."""
    del setting
    at = 0
    while head := _HEAD.search(text, at):
        found = _error_after(text, head.end())
        if found is None:
            return
        name_end, error = found
        yield Sighting(_SPACES.sub(" ", text[head.end() : name_end]).strip(), Status.FAILED)
        line_end = text.find("\n", error)
        at = text.rfind("Error", error, line_end if line_end >= 0 else len(text)) + len("Error")


def _error_after(text: str, start: int) -> tuple[int, int] | None:
    """Where a name that begins at `start` ends, and the first `Error` that has space before it.

    The name ends where the white space begins that leads to the line of the `Error`.
    """
    space = _SPACES.search(text, start)
    error = text.find("Error", space.start() + 1) if space else -1
    if space is None or error < 0:
        return None
    line = text.rfind("\n", space.start() + 1, error)
    if line < 0:
        return space.start(), error
    while line > start and text[line - 1].isspace():
        line -= 1
    return line, error


_MARKED = re.compile(r"\d+\)\s(.*)")


def marked(text: str, setting: Setting) -> Iterator[Sighting]:
    """jasmine: failures only."""
    del setting
    for line in lines(text):
        if found := _MARKED.match(line):
            yield Sighting(found[1].strip(), Status.FAILED)


def tap(text: str, setting: Setting) -> Iterator[Sighting]:
    """The Test Anything Protocol. `# SKIP` is no pass to us, though it begins with `ok`."""
    del setting
    for raw in lines(text):
        parts = raw.strip().split(" ")
        failed = parts[:2] == ["not", "ok"]
        number, name = parts[2:3] if failed else parts[1:2], parts[3:] if failed else parts[2:]
        test = " ".join(name)
        if (parts[0] != "ok" and not failed) or not number or not number[0].isdecimal() or not test:
            continue
        yield Sighting(test, Status.FAILED if failed else Status.PASSED)
        directive = test.rpartition(" # ")[2].lower() if " # " in test else ""
        if directive.startswith(("skip", "todo")):
            yield aside(test, Status.SKIPPED if not failed else Status.XFAIL)


_QUARTO = re.compile(r"\[(?:smoke|unit)\]")
_TEMPORARY = "/" + "tmp/"
_QUARTO_TEMPORARY = (re.compile(_TEMPORARY + r"\w+\.qmd"), re.compile(_TEMPORARY + r"\w+/"))
_QUARTO_SAYS = {"32mok": Status.PASSED, "31mFAILED": Status.FAILED}


def quarto(text: str, setting: Setting) -> Iterator[Sighting]:
    """Names of temporary files are numbered: they differ each time."""
    del setting
    numbers: dict[str, int] = {}
    seen: set[str] = set()
    for raw in lines(text):
        if "ERRORS" in raw or "failures:" in raw:
            return
        if not _QUARTO.search(raw):
            continue
        line = _numbered(raw, numbers)
        test = line.split("...")[0].strip()
        if _is_quarto_noise(line):
            continue
        status = next((s for word, s in _QUARTO_SAYS.items() if word in line), None)
        if status or test not in seen:
            seen.add(test)
            yield Sighting(test, status or Status.FAILED)


def _numbered(line: str, numbers: dict[str, int]) -> str:
    for pattern in _QUARTO_TEMPORARY:
        if found := pattern.search(line):
            number = numbers.setdefault(found[0], len(numbers))
            line = pattern.sub(f"{_TEMPORARY}{number}", line)
    return line


def _is_quarto_noise(line: str) -> bool:
    counts = all(word in line for word in ("passed", "failed", "steps"))
    return line.startswith("test result:") or counts or "34mINFO" in line


def _untimed(name: str) -> str:
    return _MS.sub("", name).strip()
