"""Tables that others wrote: JSON Lines, a JSON list, or a JSON map of rows by name.

What is wrong with one row is said of that row, and the others are read: such a file has thousands
of them, made by many hands. What is wrong with the file as a whole raises SpecError.
"""

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from sandbox.errors import SpecError
from sandbox.formats.jsonfile import decode

MOST_FILE_BYTES = 512 << 20
"""Of a file that has to be read at once: a list or a map. Of lines there may be any number."""
MOST_ROW_BYTES = 64 << 20
_BOM = b"\xef\xbb\xbf"
_WIDE = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_PACKED = {
    b"\x1f\x8b": ("gzip", "gunzip -k"), b"PK\x03\x04": ("zip", "unzip"), b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"BZh": ("bzip2", "bunzip2 -k"), b"\xfd7zXZ": ("xz", "unxz -k"),
}  # fmt: skip
_NOTHING = "there is nothing in it"
_LINES = "write it as JSON Lines: one object in each line, any number of them"


@dataclass(frozen=True, slots=True)
class Row:
    where: str
    """file:line, file[number] or file[key]."""
    data: dict[str, Any] | None
    why: str = ""
    """Why there are no data."""
    key: str = ""
    """In a map: under which name it stands."""


class _Doubled(dict[str, Any]):
    """An object in which a key stands twice."""

    twice: frozenset[str]


def read_rows(path: Path) -> Iterator[Row]:
    """Raises SpecError, at once or at the first row, for what is no such file."""
    head, size = _head(path)
    begin = head.removeprefix(_BOM).lstrip()
    start, spread = begin[:1], begin.partition(b"\n")[0].strip() == b"{"
    if not start and size <= len(head):
        raise SpecError(_NOTHING, where=str(path))
    if start not in (b"[", b"{"):
        raise SpecError(
            "neither JSON nor JSON Lines: it begins with no [ and no {",
            where=f"{path}:1",
            hint="a list of objects, a map of them, or one object in each line",
        )
    lines = start == b"{" and not spread and (path.suffix != ".json" or _more_than_one(path))
    rows = _line_rows(path) if lines else _whole(path, size)
    first = next(rows, None)
    if first is None:
        raise SpecError(_NOTHING, where=str(path))
    yield first
    yield from rows


def _head(path: Path) -> tuple[bytes, int]:
    """The first bytes, if it is a file that can be read here; and its size."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise SpecError("not a file", where=str(path))
        with path.open("rb") as f:
            head = f.read(65536)
    except FileNotFoundError:
        raise SpecError("no such file", where=str(path)) from None
    except OSError as e:
        raise SpecError(f"cannot be read: {e.strerror}", where=str(path)) from None
    if head.startswith(b"PAR1") or path.suffix == ".parquet":
        hint = "convert it: python -c \"import pandas as p; p.read_parquet('x.parquet').to_json('x.jsonl', orient='records', lines=True)\""
        raise SpecError("parquet is not read here", where=str(path), hint=hint)
    for mark, (kind, program) in _PACKED.items():
        if head.startswith(mark):
            raise SpecError(
                f"{kind} is not read here", where=str(path), hint=f"{program} {path.name}"
            )
    if wide := _WIDE.get(head[:2]):
        raise SpecError(f"{wide} text, not UTF-8", where=f"{path}:1", hint="save it as UTF-8")
    return head, found.st_size


def _more_than_one(path: Path) -> bool:
    """Is this `.json` in truth JSON Lines? Its first line then is an object, and another follows."""
    with path.open("rb") as f:
        first = f.readline(MOST_ROW_BYTES + 1)
        rest = first.endswith(b"\n") and any(part.strip() for part in _parts(f))
    if len(first) > MOST_ROW_BYTES or not rest:
        return False
    return _row(first.removeprefix(_BOM), "", 1).data is not None


def _parts(f: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(f.read, 65536), b"")


def _line_rows(path: Path) -> Iterator[Row]:
    with path.open("rb", buffering=1 << 20) as f:
        number = 0
        while line := f.readline(MOST_ROW_BYTES + 1):
            number += 1
            where = f"{path}:{number}"
            if len(line) > MOST_ROW_BYTES:
                yield Row(where, None, f"a line of more than {MOST_ROW_BYTES >> 20} MiB")
                while line and not line.endswith(b"\n"):
                    line = f.readline(1 << 20)  # the rest of it is passed over, never held
                continue
            line = line.removeprefix(_BOM) if number == 1 else line
            if not line.strip():
                continue
            row = _row(line, str(path), number)
            if number == 1 and row.data is not None and _is_map(row.data):
                yield from _map_rows(str(path), row.data)
            else:
                yield row


def _row(line: bytes, path: str, number: int) -> Row:
    where = f"{path}:{number}"
    try:
        data = decode(line.decode("utf-8"), path, line=number, pairs=_pairs)
    except UnicodeDecodeError:
        return Row(where, None, "not UTF-8 text")
    except SpecError as e:
        return Row(where, None, str(e).removeprefix(f"{where}: "))
    return _checked(where, data)


def _whole(path: Path, size: int) -> Iterator[Row]:
    if size > MOST_FILE_BYTES:
        said = f"{size >> 20} MiB at once: {MOST_FILE_BYTES >> 20} are allowed"
        raise SpecError(said, where=str(path), hint=_LINES)
    raw = path.read_bytes().removeprefix(_BOM)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as e:
        line = raw.count(b"\n", 0, e.start) + 1
        raise SpecError("not UTF-8 text", where=f"{path}:{line}") from None
    data = decode(text, str(path), pairs=_pairs)
    if isinstance(data, list):
        for number, one in enumerate(data):
            yield _checked(f"{path}[{number}]", one)
    elif _is_map(data):
        yield from _map_rows(str(path), data)
    else:
        yield _checked(f"{path}:1", data)


def _is_map(data: dict[str, Any]) -> bool:
    """A map of rows, and no row."""
    return "instance_id" not in data and all(isinstance(v, dict) for v in data.values())


def _map_rows(path: str, data: dict[str, Any]) -> Iterator[Row]:
    twice = data.twice if isinstance(data, _Doubled) else frozenset[str]()
    for key, one in data.items():
        where = f"{path}[{key}]"
        if key in twice:
            yield Row(where, None, f"`{key[:200]}` stands there twice", key)
        else:
            row = _checked(where, one)
            yield Row(where, row.data, row.why, key)


def _checked(where: str, data: Any) -> Row:
    if isinstance(data, _Doubled):
        return Row(where, None, f"the key `{min(data.twice)[:200]}` stands there twice")
    if not isinstance(data, dict):
        return Row(where, None, "a row should be a JSON object")
    if isinstance(data.get("instance_id"), list | dict):
        return Row(where, None, "a table by columns: write it by rows (pandas: orient='records')")
    return Row(where, data)


def _pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(found)
    if len(plain) == len(found):
        return plain
    names = [name for name, _ in found]
    doubled = _Doubled(plain)
    doubled.twice = frozenset(n for n in plain if names.count(n) > 1)
    return doubled
