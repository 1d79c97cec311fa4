"""Go, Rust, and what C and C++ projects print."""

import re
from collections.abc import Iterator

from sandbox.formats.logs import structured
from sandbox.formats.logs.sighting import Setting, Sighting, Status, aside, lines

_GO = {
    "--- PASS: ": Status.PASSED,
    "--- FAIL: ": Status.FAILED,
    "--- SKIP: ": Status.SKIPPED,
}


def go(text: str, setting: Setting) -> Iterator[Sighting]:
    """`--- PASS: TestX (0.00s)`; and the events of `go test -json`, which only we read."""
    del setting
    for raw in lines(text):
        line = raw.strip()
        status = _GO.get(line[:10])
        cut = line.rfind(" (", 0, len(line) - 2) if status and line.endswith(")") else -1
        if status and cut > 10:
            yield Sighting(line[10:cut], status)
        elif line.startswith('{"') and '"Action"' in line:
            yield from (aside(one.test, one.status) for one in structured.go_event(line))


_CARGO = {"ok": Status.PASSED, "FAILED": Status.FAILED}


def cargo(text: str, setting: Setting) -> Iterator[Sighting]:
    del setting
    for raw in lines(text):
        line = raw.strip()
        if not line.startswith("test"):
            continue
        parts = line.split()
        if len(parts) == 4 and parts[0] == "test" and parts[2] == "..." and parts[3] in _CARGO:
            yield Sighting(parts[1], _CARGO[parts[3]])
            continue
        name, dots, word = line.removeprefix("test ").rpartition(" ... ")
        outcome = word.partition(",")[0].strip()
        if not line.startswith("test ") or not dots:
            continue
        if outcome in _CARGO:
            yield aside(name, _CARGO[outcome])
        else:
            status = Status.SKIPPED if outcome == "ignored" else Status.UNKNOWN
            yield aside(name, status, "" if status is Status.SKIPPED else outcome)


_BRACKETED = re.compile(r"\[\s*(OK|FAILED)\s*\]\s")
_BRACKETED_ASIDE = re.compile(r"\[\s*(FAILED|SKIPPED|DISABLED)\s*\]\s(\S+)")
_TIMED = re.compile(r"(.*)\s\(")


def googletest(text: str, setting: Setting) -> Iterator[Sighting]:
    del setting
    for raw in lines(text):
        line = raw.strip()
        found = list(_bracketed(line)) if line.endswith(")") else []
        if found:
            status = Status.PASSED if found[0] == "OK" else Status.FAILED
            yield Sighting(found[1], status)
        elif other := _BRACKETED_ASIDE.match(line):
            status = Status.FAILED if other[1] == "FAILED" else Status.SKIPPED
            yield aside(other[2].rstrip(","), status)


def _bracketed(line: str) -> Iterator[str]:
    """Status and name; of several brackets, the last that a time follows."""
    for found in reversed(list(_BRACKETED.finditer(line))):
        if timed := _TIMED.match(line, found.end()):
            yield from (found[1], timed[1])
            return


_REDIS = re.compile(r"\[(ok|err|skip|ignore)\]:\s")
_REDIS_TOOK = re.compile(r"\s\(\d+\s*m?s\)$")


def redis(text: str, setting: Setting) -> Iterator[Sighting]:
    del setting
    for raw in lines(text):
        line = raw.strip()
        found = _REDIS.match(line)
        if found is None or found.end() == len(line):
            continue
        took = _REDIS_TOOK.search(line, found.end() + 1)
        test = line[found.end() : took.start() if took else len(line)]
        match found[1]:
            case "ok":
                yield Sighting(test, Status.PASSED)
            case "err":
                yield Sighting(_without_place(test), Status.FAILED)
            case _:
                yield Sighting(test, Status.SKIPPED)


def _without_place(test: str) -> str:
    """Without ` in tests/unit/x.tcl`, which only failures have."""
    parts = test.rsplit(maxsplit=2)
    if parts[-2:-1] != ["in"] or test[-1].isspace():
        return test
    if len(parts) == 3:
        return parts[0]
    return "" if test[0].isspace() else test


_JQ = {"PASS": Status.PASSED, "FAIL": Status.FAILED}
_AUTOMAKE = {
    "XFAIL": Status.XFAIL,
    "XPASS": Status.XPASS,
    "SKIP": Status.SKIPPED,
    "ERROR": Status.ERROR,
}


def jq(text: str, setting: Setting) -> Iterator[Sighting]:
    """Automake's test driver."""
    del setting
    for raw in lines(text):
        word, _, rest = raw.strip().partition(":")
        if len(rest) < 2 or not rest[0].isspace():
            continue
        if word in _JQ:
            yield Sighting(rest[1:], _JQ[word])
        elif word in _AUTOMAKE:
            yield aside(rest[1:], _AUTOMAKE[word])


_MICROPYTHON = {"pass": Status.PASSED, "FAIL": Status.FAILED, "skip": Status.SKIPPED}


def micropython(text: str, setting: Setting) -> Iterator[Sighting]:
    del setting
    for raw in lines(text):
        parts = raw.strip().split(maxsplit=1)
        if len(parts) == 2 and parts[0] in _MICROPYTHON:
            yield Sighting(parts[1], _MICROPYTHON[parts[0]])


def doctest(text: str, setting: Setting) -> Iterator[Sighting]:
    """The C++ framework of that name: XML in the log, a sub-case each."""
    del setting
    start = text.find("<doctest")
    if start < 0:
        return
    end = text.find("</doctest>", start)
    document = text[start : end + len("</doctest>")] if end >= 0 else text[start:]
    yield from structured.doctest(document)
