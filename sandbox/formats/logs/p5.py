"""p5.js: mocha's list of failures, in a log full of dumped JSON and markup."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from sandbox.formats.logs.browser import ANSI
from sandbox.formats.logs.sighting import Setting, Sighting, Status, lines

_LONGEST_NAME = 1000
_NUMBER = re.compile(r"^[^\S\n]*\d+\)", re.MULTILINE)
_TAG = re.compile(r"<(/?)(\w+)>")


def p5js(text: str, setting: Setting) -> Iterator[Sighting]:
    del setting
    text = _without_markup("\n".join(_without_json(ANSI.sub("", text))))
    at = 0
    while found := _NUMBER.search(text, at):
        end = text.find(":", found.end(), found.end() + _LONGEST_NAME + 1)
        if end < 0:
            at = found.end()
            continue
        at = end + 1
        names = text[found.end() : end].split("\n")
        indents = [len(name) - len(name.lstrip()) for name in names]
        if all(a < b for a, b in zip([0, *indents], indents, strict=False)):
            yield Sighting(":".join(name.strip() for name in names), Status.FAILED)


def _without_json(text: str) -> Iterator[str]:
    in_object = in_list = False
    for line in lines(text):
        body = line.rstrip()
        if body.endswith("{"):
            in_object = True
        elif body.endswith("["):
            in_list = True
        elif body == "}" and in_object:
            in_object = False
        elif body == "]" and in_list:
            in_list = False
        elif not (in_object or in_list or _is_json(body)):
            yield line


def _is_json(body: str) -> bool:
    return body[:1] + body[-1:] in ("{}", "[]")


def _without_markup(text: str) -> str:
    """Without what stands between a tag and the next end of it; what is left over stays.

    Elements of one name inside each other: of two opened, the second end is needed, too.
    """
    tags = [(m.start(), m.end(), m[1], m[2]) for m in _TAG.finditer(text)]
    ends: dict[str, list[tuple[int, int]]] = defaultdict(list)
    begins: dict[str, list[int]] = defaultdict(list)
    for start, end, closing, name in tags:
        if closing:
            ends[name].append((start, end))
        else:
            begins[name].append(start)
    kept, at = list[str](), 0
    for start, end, closing, name in tags:
        if closing or start < at:
            continue
        stop, open_still = _element(begins[name], ends[name], end)
        if stop == end:
            continue
        kept += [text[at:start], f"<{name}>" * open_still]
        at = stop
    return "".join([*kept, text[at:]])


def _element(begins: list[int], ends: list[tuple[int, int]], after: int) -> tuple[int, int]:
    """Where the element whose tag ends at `after` stops, and how many of its name stay open."""
    stop, depth = after, 1
    for i in range(bisect_left(ends, (after, 0)), len(ends)):
        start, end = ends[i]
        inner = bisect_left(begins, start) - bisect_left(begins, stop)
        depth += inner - 1
        stop = end
        if not depth:
            break
    return stop, depth if stop > after else 0
