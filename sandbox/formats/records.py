"""JSON Lines: results.jsonl, submissions.jsonl, events.jsonl. Appended, synced, repaired."""

import base64
import io
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import jsonlines

from sandbox.errors import SpecError
from sandbox.formats.jsonfile import decode
from sandbox.formats.shape import Loc, parse, plain
from sandbox.model.record import SCHEMA, Rollout
from sandbox.model.task import STRICT

T = TypeVar("T")
MAX_LINE_BYTES = 64 << 20
MOST_PATCH_BYTES = 47 << 20
"""A line has room for the base64 of that."""
_MOST_TEXT_BYTES = 10 << 20
"""A line has room for that as text, even if JSON needs six bytes for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionLine:
    """One line of submissions.jsonl: a patch, and who made it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    task: str
    patch: str = ""
    """A unified diff against the pinned commit; which ones are taken: see patches.md."""
    patch_base64: str = ""
    """The same, when it is not UTF-8 text, or larger than 10 MiB."""
    agent: str = ""
    attempt: int = 0

    @property
    def data(self) -> bytes:
        return (
            base64.b64decode(self.patch_base64, validate=True)
            if self.patch_base64
            else self.patch.encode()
        )


def submission_line(task: str, patch: bytes, *, agent: str, attempt: int) -> SubmissionLine:
    """patch: of MOST_PATCH_BYTES at most; of one that is larger nobody could read the line."""
    if len(patch) <= _MOST_TEXT_BYTES:
        with suppress(UnicodeDecodeError):
            return SubmissionLine(task=task, patch=patch.decode(), agent=agent, attempt=attempt)
    coded = base64.b64encode(patch).decode()
    return SubmissionLine(task=task, patch_base64=coded, agent=agent, attempt=attempt)


class Appender:
    """Writes one line per record: whole, flushed to the disk, from any thread."""

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self._path = path
        self._sync = sync
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        repair(path)
        self._file = path.open("ab")

    def append(self, record: object) -> None:
        text = io.StringIO()
        with jsonlines.Writer(text, dumps=_dumps) as writer:
            writer.write(record if isinstance(record, dict) else plain(record))
        self.append_raw(text.getvalue().encode())

    def append_raw(self, line: bytes) -> None:
        """One that was written before, as it is."""
        with self._lock:
            self._file.write(line)
            self._file.flush()
            if self._sync:
                os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def repair(path: Path) -> int:
    """Cut off a last line that was torn when its writer died; returns the bytes removed."""
    if not path.exists():
        return 0
    with path.open("r+b") as f:
        size = f.seek(0, os.SEEK_END)
        end = size
        while end > 0:
            start = max(0, end - 65536)
            f.seek(start)
            newline = f.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        f.truncate(end)
        return size - end


def read_results(path: Path) -> list[Rollout]:
    """Every rollout of results.jsonl; a torn last line is left out, any other damage is told."""
    return [r for _, r in raw_results(path)]


def raw_results(path: Path) -> Iterator[tuple[bytes, Rollout]]:
    """Each line as it is written, and what it says."""
    if path.exists():
        yield from ((raw, rollout) for _, raw, rollout in _read(path, Rollout))


def read_submissions(path: Path) -> list[SubmissionLine]:
    """Raises SpecError with file and line; a task may be named once per attempt."""
    lines = []
    for _, found in submissions(path):
        if isinstance(found, SpecError):
            raise found
        lines.append(found)
    if not lines:
        raise SpecError("there is no submission in it", where=str(path))
    return lines


_PREDICTION = "a prediction of SWE-bench's form? stillroom grade FILE --dataset DATA reads those"


def submissions(path: Path) -> Iterator[tuple[int, SubmissionLine | SpecError]]:
    """Each line that is not blank, or what is wrong with it. Raises SpecError of the file itself."""
    found: dict[tuple[str, int], int] = {}
    for number, raw in numbered_lines(path):
        where = f"{path}:{number}"
        try:
            line = _parsed(raw, SubmissionLine, path, number)
            if line is None:
                continue
            _check_submission(line, found, where)
        except SpecError as e:
            if b'"instance_id"' in raw:
                e.hint = _PREDICTION
            yield number, e
            continue
        found[line.task, line.attempt] = number
        yield number, line


def _check_submission(
    line: SubmissionLine, found: Mapping[tuple[str, int], int], where: str
) -> None:
    if first := found.get((line.task, line.attempt)):
        raise SpecError(
            f"`{line.task}` attempt {line.attempt} stands in line {first} already",
            where=where,
            hint="give each try its own `attempt`",
        )
    if line.patch and line.patch_base64:
        raise SpecError("`patch` and `patch_base64` exclude each other", where=where)
    try:
        line.data  # noqa: B018
    except ValueError:
        raise SpecError("`patch_base64` is not base64", where=where) from None
    if line.attempt < 0:
        raise SpecError("`attempt` should be 0 or more", where=where)


def sort_submissions(path: Path) -> None:
    """By task and attempt, not by what ended first: the same run is the same file."""
    if not path.exists():
        return
    places: list[tuple[str, int, int, int]] = []
    at = 0
    for number, raw in numbered_lines(path):
        line = _parsed(raw, SubmissionLine, path, number) if raw.endswith(b"\n") else None
        if line is not None:
            places.append((line.task, line.attempt, at, len(raw)))
        at += len(raw)
    order = sorted(places)
    if order == places:
        return
    fresh = path.with_name(path.name + ".new")
    with path.open("rb") as old, fresh.open("wb") as out:
        for _, _, start, size in order:
            old.seek(start)
            out.write(old.read(size))
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(path)


def drop_submissions(path: Path, unwanted: Callable[[str, int], bool]) -> None:
    """Rewrite the file without the lines whose task and attempt are `unwanted`."""
    if not path.exists():
        return
    # Read twice, since all of them may be larger than memory.
    if not any(unwanted(line.task, line.attempt) for _, _, line in _read(path, SubmissionLine)):
        return
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with Appender(fresh) as out:
        for _, raw, line in _read(path, SubmissionLine):
            if not unwanted(line.task, line.attempt):
                out.append_raw(raw)
    fresh.replace(path)


def _read(path: Path, shape: type[T]) -> Iterator[tuple[int, bytes, T]]:
    """A last line that was torn is left out."""
    for number, raw in numbered_lines(path):
        if not raw.endswith(b"\n"):
            return
        if (found := _parsed(raw, shape, path, number)) is not None:
            yield number, raw, found


def _parsed(raw: bytes, shape: type[T], path: Path, number: int) -> T | None:
    """None: a blank line."""
    where = f"{path}:{number}"
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise SpecError("not UTF-8 text", where=where) from None
    if not line.strip():
        return None
    data = decode(line, str(path), line=number)
    if not isinstance(data, dict):
        raise SpecError("a line should be a JSON object", where=where)
    if shape is Rollout and data.get("schema") != SCHEMA:
        raise SpecError(
            f"schema {data.get('schema')!r} is not known here",
            where=where,
            hint=f"this version writes schema {SCHEMA}; was it made by another one?",
        )
    return parse(data, shape, _where(path, number))


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines of a file that may be larger than memory, each bounded."""
    try:
        with path.open("rb") as f:
            number = 0
            while raw := f.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(raw) > MAX_LINE_BYTES:
                    said = f"a line of more than {MAX_LINE_BYTES >> 20} MiB"
                    raise SpecError(said, where=f"{path}:{number}")
                yield number, raw
    except FileNotFoundError:
        raise SpecError("no such file", where=str(path)) from None
    except OSError as e:
        raise SpecError(f"cannot be read: {e.strerror}", where=str(path)) from None


def read_objects(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a file that may still be written: a torn last line is left out."""
    for number, raw in numbered_lines(path):
        if not raw.endswith(b"\n"):
            return
        data = decode(raw.decode("utf-8", "replace"), str(path), line=number)
        if not isinstance(data, dict):
            raise SpecError("a line should be a JSON object", where=f"{path}:{number}")
        yield data


def _where(path: Path, number: int) -> Any:
    def where(loc: Loc) -> str:
        del loc
        return f"{path}:{number}"

    return where


def _dumps(data: Any) -> str:
    return json.dumps(data, ensure_ascii=True, allow_nan=False)
