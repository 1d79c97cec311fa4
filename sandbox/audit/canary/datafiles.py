"""Hidden tests that read files: those that a row is named after. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from sandbox.audit.canary.places import CLOSE, GIVEN, Kind, Literal
from sandbox.formats.digest import Entry

_VALUE = re.compile(r':\s*("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false)(?=\s*[,}\]]|\s*$)')
_TWICE = re.compile(r"_?\d+$")
"""What is added to the name of a row that there is twice."""
_MOST_LINES, _MOST_CHARACTERS = 12, 160
_EXPECTED = {".json", ".yaml", ".yml"}


def data_literals(entries: Sequence[Entry], checks: Iterable[str]) -> dict[str, list[Literal]]:
    """Check → what could be edited in the files that its row is named after."""
    stems: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.kind != "link" and not entry.path.endswith((".py", ".pyc")):
            stems.setdefault(PurePosixPath(entry.path).stem, []).append(entry)
            stems.setdefault(PurePosixPath(entry.path).name, []).append(entry)
    made = {}
    for check in checks:
        row = check.partition("[")[2].removesuffix("]")
        files = _named(stems, row) or _named(stems, _TWICE.sub("", row)) if row else []
        if literals := [x for entry in _expected_first(files) for x in _of(entry)]:
            made[check] = literals
    return made


def _named(stems: dict[str, list[Entry]], row: str) -> list[Entry]:
    name = PurePosixPath(row).name
    folder = str(PurePosixPath(row).parent).strip("/.")
    found = stems.get(name, [])
    return [e for e in found if str(PurePosixPath(e.path).parent).endswith(folder)]


def _expected_first(files: Iterable[Entry]) -> list[Entry]:
    return sorted(files, key=lambda e: (PurePosixPath(e.path).suffix not in _EXPECTED, e.path))


def _of(entry: Entry) -> Iterator[Literal]:
    try:
        lines = entry.data.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return
    suffix = PurePosixPath(entry.path).suffix
    rank = CLOSE if suffix in _EXPECTED else GIVEN
    found = _values(lines) if suffix == ".json" else _whole(lines)
    for line, column, text, kind in list(found)[:_MOST_LINES]:
        yield Literal(
            path=entry.path,
            line=line,
            column=column,
            text=text,
            kind=kind,
            rank=rank,
            whole=lines[line - 1],
        )


def _values(lines: Sequence[str]) -> Iterator[tuple[int, int, str, Kind]]:
    for number, line in enumerate(lines, 1):
        for found in _VALUE.finditer(line):
            text = found[1]
            if len(text) <= _MOST_CHARACTERS and not line[: found.start(1)].endswith('"type": '):
                yield number, found.start(1), text, "string" if text[0] == '"' else "number"


def _whole(lines: Sequence[str]) -> Iterator[tuple[int, int, str, Kind]]:
    for number, line in enumerate(lines, 1):
        text = line.strip()[-_MOST_CHARACTERS:]
        if re.search(r"\w", text):
            yield number, line.rindex(text), text, "piece"
