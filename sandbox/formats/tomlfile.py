"""TOML files: plain data that knows its lines, like that of yamlfile."""

import datetime as dt
import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from sandbox.errors import SpecError
from sandbox.formats.shape import Loc
from sandbox.formats.yamlfile import MAX_DEPTH, Document, read_text

T = TypeVar("T")
_TABLE = re.compile(r"(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_PART = re.compile(r"\s*(?:\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9_-]+))\s*(\.|$)")
_KEY = re.compile(r"\s*((?:\"[^\"]*\"|'[^']*'|[A-Za-z0-9_-]+|\s*\.\s*)+?)\s*=(.*)", re.DOTALL)
_AT = re.compile(r"\(at line (\d+), column \d+\)")


def load(path: Path, shape: type[T]) -> T:
    """The file as a `shape`. Raises SpecError with file, line and hint."""
    return open_document(path).parse(shape)


def open_document(path: Path) -> Document:
    """Dates become text; NaN and infinity are refused, as no count of ours can be either."""
    text = read_text(path)
    try:
        data = tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as e:
        found = _AT.search(str(e))
        line = int(found[1]) if found else text.count("\n") + 1
        said = _AT.sub("", str(e)).strip()
        said = said.replace("(at end of document)", "at the end of the file").strip()
        raise SpecError(f"not valid TOML: {said}", where=f"{path}:{line}") from None
    except RecursionError:
        raise SpecError("nested too deeply", where=str(path)) from None
    lines = dict(_lines(text))

    def where(loc: Loc) -> str:
        while loc and loc not in lines:
            loc = loc[:-1]
        return f"{path}:{lines.get(loc, 1)}"

    return Document(_plain(data, (), where), where)


def _plain(value: Any, loc: Loc, where: Any) -> Any:
    if len(loc) > MAX_DEPTH:
        raise SpecError("nested too deeply", where=where(loc))
    match value:
        case dict():
            return {k: _plain(v, (*loc, k), where) for k, v in value.items()}
        case list():
            return [_plain(v, (*loc, i), where) for i, v in enumerate(value)]
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case float() if not math.isfinite(value):
            raise SpecError(f"`{'.'.join(map(str, loc))}` is no number", where=where(loc))
        case _:
            return value


def _lines(text: str) -> Iterator[tuple[Loc, int]]:
    """Location → the line on which it stands. Of a table in braces, that of its key."""
    table: Loc = ()
    counts: dict[Loc, int] = {}
    for number, line in _statements(text):
        if found := _TABLE.fullmatch(line.strip()):
            table = _placed(_parts(found[2]), counts)
            if found[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            for end in range(1, len(table) + 1):
                yield table[:end], number
        elif found := _KEY.fullmatch(line):
            loc = (*table, *_parts(found[1]))
            for end in range(len(table) + 1, len(loc) + 1):
                yield loc[:end], number


def _placed(parts: Loc, counts: dict[Loc, int]) -> Loc:
    """A table below one of several is below the last of them."""
    loc: Loc = ()
    for i, part in enumerate(parts):
        loc = (*loc, part)
        if loc in counts and i < len(parts) - 1:
            loc = (*loc, counts[loc])
    return loc


def _parts(key: str) -> Loc:
    found, at = [], 0
    while at < len(key) and (part := _PART.match(key, at)):
        found.append(part[1] or part[2] or part[3] or "")
        at = part.end()
    return tuple(found)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each with the line on which it begins. Text and lists of several lines are one."""
    held, first, depth, quote = "", 0, 0, ""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if not held:
            first = number
            if _TABLE.fullmatch(line.strip()):
                yield number, line
                continue
        depth, quote = _state(line, depth, quote)
        held += line + "\n"
        if depth <= 0 and not quote:
            yield first, held
            held, depth = "", 0


def _state(line: str, depth: int, quote: str) -> tuple[int, str]:
    """How many brackets are open at the line's end, and in which text of several lines it is."""
    at = 0
    while at < len(line):
        if quote:
            end = _end_of(line, at, quote)
            if end < 0:
                return depth, quote if len(quote) == 3 else ""
            at, quote = end, ""
            continue
        c = line[at]
        if c == "#":
            break
        if c in "\"'":
            quote = c * 3 if line.startswith(c * 3, at) else c
            at += len(quote)
            continue
        depth += (c in "[{") - (c in "]}")
        at += 1
    return depth, quote


def _end_of(line: str, at: int, quote: str) -> int:
    while at < len(line):
        if line[at] == "\\" and quote[0] == '"':
            at += 2
        elif line.startswith(quote, at):
            return at + len(quote)
        else:
            at += 1
    return -1
