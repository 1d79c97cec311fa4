"""Tests in a browser: karma's reporters, of which most name failures only."""

import re
from collections.abc import Iterator

from sandbox.formats.logs import stretch
from sandbox.formats.logs.outline import Outline
from sandbox.formats.logs.sighting import Setting, Sighting, Status, lines

ANSI = re.compile(r"\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])")
_SIGNED = {"✔": Status.PASSED, "✖": Status.FAILED}


def karma(text: str, setting: Setting) -> Iterator[Sighting]:
    """The names of suites above a test, by one column of indentation more or less."""
    del setting
    indent, above, started = -1, list[str](), False
    for line in lines(text):
        if line.startswith("SUMMARY:"):
            return
        if "Starting browser" in line:
            started = True
            continue
        margin, sign, name = _karma_line(line)
        if not started or name is None:
            continue
        if sign:
            yield Sighting(" > ".join([*above, name]), _SIGNED[sign])
        elif margin > indent and margin:
            indent = margin
            above.append(name)
        elif margin and margin < indent:
            indent = margin
            del above[-1:]


def _karma_line(line: str) -> tuple[int, str, str | None]:
    """How far in, which sign, what after it; None: no line of a test or a suite."""
    body = line.lstrip()
    margin = len(line) - len(body)
    if body[:1] in _SIGNED and body[1:2].isspace():
        return margin, body[0], body[2:]
    # Of the white space, the last place is what parts margin and name.
    return (margin - 1, "", line[margin:]) if margin else (0, "", None)


_CHART = re.compile(r"Chrome\s[\d.]+[^\S\r\n]\(.")
_CHART_END = re.compile(r"\)[^\S\r\n]")


def chart(text: str, setting: Setting) -> Iterator[Sighting]:
    del setting
    text = ANSI.sub("", text)
    at = end = hopeless = 0
    while head := _CHART.search(text, at):
        at = head.end()
        if at > end:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
        if at < hopeless or not text.endswith("FAILED", at, end):
            continue
        closed = _CHART_END.search(text, at, end)
        if closed and closed.end() <= end - len("FAILED"):
            yield Sighting(text[closed.end() : end - len("FAILED")], Status.FAILED)
            at = end
        else:
            hopeless = end  # what this head lacks, no later one of the line can have


_BPMN = (
    (re.compile(r"2KPhantomJS\s[\d.]+\s\(Linux\s[\d.]+\)\s"), ""),
    (re.compile(r"2KPhantomJS\s[\d.]+\s\(Linux\sx86_64\)\s"), ""),
    (re.compile(r"Chrome\sHeadless\s"), " (Linux x86_64) "),
    (re.compile(r"HeadlessChrome\s[\d.]+\s\(Linux\s[\d.]+\)\s"), ""),
)
_BPMN_MIDDLE = re.compile(r"\s\(Linux\sx86_64\)\s")


def bpmn(text: str, setting: Setting) -> Iterator[Sighting]:
    del setting
    for head, middle in _BPMN:
        for found in stretch.to_line_end(text, head, "FAILED"):
            if not middle:
                yield Sighting(found, Status.FAILED)
            elif parts := list(_BPMN_MIDDLE.finditer(found)):
                yield Sighting(found[parts[-1].end() :], Status.FAILED)


_OPENLAYERS = (
    (re.compile(r"Chrome\sHeadless\s[\d.]+\s\(Linux\s\S+\)\s"), re.compile(r"\sFAILED\n")),
    (re.compile(r"Chrome\s[\d.]+\s\(Linux\s\S+\)\s"), re.compile(r"FAILED\n")),
)
_OPENLAYERS_NUMBER = re.compile(r"^\s{2}\d+\)", re.MULTILINE)
_OPENLAYERS_CASE = re.compile(r"^case\s(.*):\smismatch", re.MULTILINE)
_SPACES = re.compile(r"\s+")


def openlayers(text: str, setting: Setting) -> Iterator[Sighting]:
    """Karma's failures, mocha's, and those of its own comparison of pictures."""
    del setting
    for name in _openlayers_names(text):
        yield Sighting(_SPACES.sub(" ", name).strip(), Status.FAILED)


def _openlayers_names(text: str) -> Iterator[str]:
    for head, tail in _OPENLAYERS:
        at = end = 0
        while found := head.search(text, at):
            at = found.end()
            if at > end:
                end = text.find("\n", at)
            if end < 0:
                break
            # The status may have been wrapped to a line of its own.
            wrapped = tail.match(text, end)
            here = wrapped or tail.search(text, max(at, end - len("FAILED") - 1), end + 1)
            if here:
                yield text[at : here.start()]
                at = end
    at = 0
    while found := _OPENLAYERS_NUMBER.search(text, at):
        end = text.find("Error:", found.end())
        if end < 0:
            break
        yield text[found.end() : end]
        at = end + len("Error:")
    for case in _OPENLAYERS_CASE.finditer(text):
        yield case[1]


_ASSERTION = re.compile(r"AssertionError:\s+#")
_NEXT_NOISE = ("ERROR", "LOG", "WARN", "Check", "in")
_NEXT_RUN, _NEXT_BROWSER = " xvfb-run ", "Starting browser Chrome"


def next_ui(text: str, setting: Setting) -> Iterator[Sighting]:
    if setting.version == "1.27":
        yield from _next_by_suite(text)
        return
    text = _without_assertions(ANSI.sub("", text))
    outline = Outline()
    for run in text.split(_NEXT_RUN)[1:]:
        for line in lines(run.split(_NEXT_BROWSER)[-1]):
            if line.startswith("TOTAL"):
                break
            if line.strip().startswith(_NEXT_NOISE):
                continue
            sign = next((s for s in ("✗", "✓") if s in line), "")
            if not sign:
                outline.see(line)
                continue
            name = line.partition(sign)[2].lstrip()
            status = Status.FAILED if sign == "✗" else Status.PASSED
            yield Sighting(" - ".join([*outline.headings, name]), status)


def _without_assertions(text: str) -> str:
    """Their messages hold whole trees of elements, which look like headings."""
    kept, at = list[str](), 0
    while found := _ASSERTION.search(text, at):
        end = text.find("\n\n", found.end())
        if end < 0:
            break
        kept.append(text[at : found.start()])
        at = end + 2
    return "".join([*kept, text[at:]])


_NEXT_FAILED = re.compile(r"^\s{4}\d+\)\s(.*)", re.MULTILINE)
_NEXT_PASSED = re.compile(r"^\s{4}✓\s(.*)\(", re.MULTILINE)


def _next_by_suite(text: str) -> Iterator[Sighting]:
    suites = list(_next_suites(text))
    if not suites:
        return
    ends = [start for _, start, _ in suites[1:]] + [len(text)]
    for (suite, _, start), end in zip(suites, ends, strict=True):
        part = text[start:end]
        for failed in _NEXT_FAILED.finditer(part):
            yield Sighting(f"{suite}: {failed[1].strip()}", Status.FAILED)
        for passed in _NEXT_PASSED.finditer(part):
            yield Sighting(f"{suite}: {passed[1].strip()}", Status.PASSED)


def _next_suites(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, where its heading begins, and where it ends."""
    at = closed = 0
    while (closed := text.find(")\n\n\n", max(at, closed))) >= 0:
        line = text.rfind("\n", at, closed) + 1 or at
        begin = text.find("Running:", line, closed)
        name, closed = closed + 6, closed + 1
        end = text.find("\n", name)
        if begin >= 0 and end >= 0 and text[name - 2].isspace() and text[name - 1].isspace():
            yield text[name:end], begin, end + 1
            at = closed = end + 1
