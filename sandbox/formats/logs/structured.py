"""Results that a program wrote for programs: JUnit XML, CTRF, and the JSON of test runners."""

import json
import re
from collections.abc import Iterator
from typing import Any

from sandbox.formats.logs import xmlevents
from sandbox.formats.logs.sighting import Sighting, Status, UnreadableLog

_WORDS = {
    Status.PASSED: ("passed", "pass", "ok", "success", "successful", "run", "completed"),
    Status.FAILED: ("failed", "fail", "failure"),
    Status.ERROR: ("error", "errored", "broken"),
    Status.SKIPPED: (
        *("skipped", "skip", "pending", "todo", "ignored", "disabled", "notrun", "suppressed"),
        "not run",
    ),
    Status.XFAIL: ("xfailed", "xfail"),
    Status.XPASS: ("xpassed", "xpass"),
}
_STATUS = {word: status for status, words in _WORDS.items() for word in words}


def read(raw: bytes) -> list[Sighting]:
    """Whichever of the forms it is. Raises UnreadableLog."""
    body = raw.removeprefix(b"\xef\xbb\xbf").lstrip()
    if body.startswith(b"<"):
        return list(junit(body))
    try:
        return list(_of_json(json.loads(body)))
    except RecursionError:
        raise UnreadableLog("JSON nested too deeply") from None
    except ValueError:
        return list(_of_json_lines(body.decode(errors="replace")))


def junit(document: str | bytes) -> Iterator[Sighting]:
    for case in xmlevents.read(document).within("testcase"):
        told = case.attributes
        above, name = told.get("classname", ""), told.get("name", "")
        yield _seen(f"{above}.{name}" if above else name, _junit_word(case))


def _junit_word(case: xmlevents.Element) -> str:
    children = {child.tag: child.attributes for child in case.children}
    for tag in ("failure", "error", "rerunFailure", "rerunError"):
        if tag in children:
            return "failed" if tag.lower().endswith("failure") else "error"
    if "skipped" in children:
        return "xfailed" if children["skipped"].get("type") == "pytest.xfail" else "skipped"
    told = case.attributes
    if told.get("result", "").lower() in ("suppressed", "skipped"):
        return "skipped"
    return told.get("status") or "passed"


def doctest(document: str) -> Iterator[Sighting]:
    """The C++ framework's own: a sub-case passes when all its expressions do."""
    for case in xmlevents.read(document).within("TestCase"):
        above = case.attributes.get("name")
        for part in case.within("SubCase"):
            told = [e.attributes.get("success") == "true" for e in part.within("Expression")]
            status = Status.PASSED if all(told) else Status.FAILED
            yield Sighting(f"{above} > {part.attributes.get('name')}", status)


def _of_json(report: Any) -> Iterator[Sighting]:
    match report:
        case {"results": {"tests": [*tests]}}:  # CTRF
            yield from _listed(tests, ("name",), "status")
        case {"tests": [*tests], **more} if "passes" not in more:  # pytest, and SWE-bench Pro
            yield from _listed(tests, ("nodeid", "name"), "outcome", "status")
        case {"testResults": [*files]}:  # jest, vitest
            for file in files:
                yield from _listed(_assertions(file), ("fullName", "title"), "status")
        case {"passes": [*passes], "failures": [*failures], **more}:  # mocha
            yield from _mocha(passes, Status.PASSED)
            pending = more.get("pending")
            yield from _mocha(pending if isinstance(pending, list) else (), Status.SKIPPED)
            yield from _mocha(failures, Status.FAILED)
        case {"examples": [*examples]}:  # RSpec
            yield from _listed(examples, ("full_description", "description"), "status")
        case {"Action": str()} | {"type": "test"}:
            yield from _of_event(report)
        case _:
            raise UnreadableLog("JSON that is no report of a test runner we know")


def _assertions(file: Any) -> list[Any]:
    match file:
        case {"assertionResults": [*tests]}:
            return tests
        case _:
            raise UnreadableLog("jest's report has a file without a list of its tests")


def _of_json_lines(text: str) -> Iterator[Sighting]:
    """Events of `go test -json` or of Rust's test harness."""
    found = False
    for line in text.split("\n"):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and ("Action" in event or "type" in event):
            found = True
            yield from _of_event(event)
    if not found:
        raise UnreadableLog("neither XML nor JSON of a test runner we know")


def go_event(line: str) -> Iterator[Sighting]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(event, dict):
        yield from _of_event(event)


def _of_event(event: dict[str, Any]) -> Iterator[Sighting]:
    match event:
        case {"Action": "pass" | "fail" | "skip" as word, "Test": str(test)}:
            yield _seen(test, word)
        case {"type": "test", "event": str(word), "name": str(test)} if word != "started":
            yield _seen(test, word)
        case _:
            pass


def _listed(tests: Any, names: tuple[str, ...], *statuses: str) -> Iterator[Sighting]:
    for test in tests:
        told = test if isinstance(test, dict) else {}
        name = next((told[key] for key in names if isinstance(told.get(key), str)), None)
        word = next((told[key] for key in statuses if isinstance(told.get(key), str)), "")
        if name is None:
            raise UnreadableLog("a report with a test that has no name")
        yield _seen(name, word)


def _mocha(tests: Any, status: Status) -> Iterator[Sighting]:
    for one in _listed(tests, ("fullTitle", "title")):
        yield Sighting(one.test, status)


def _seen(test: str, word: str) -> Sighting:
    status = _STATUS.get(word.lower(), Status.UNKNOWN)
    return Sighting(test, status, word if status is Status.UNKNOWN else "")


_UNITTEST = re.compile(r"(\w+) \(([\w.]+)\)")


def dotted(test: str) -> str:
    """One way to write what pytest, unittest, Maven and JUnit write in four: `a.b.Class.test[x]`."""
    if found := _UNITTEST.fullmatch(test):
        name, above = found.groups()
        return above if above.endswith(f".{name}") else f"{above}.{name}"
    path, sign, parameters = test.partition("[")
    path = path.replace(".py::", ".").replace("::", ".").replace(" > ", ".")
    path = path.replace("/", ".").replace("#", ".")
    return path + sign + parameters
