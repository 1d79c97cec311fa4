"""asciicast v2: what a terminal showed, and when. Written as it happens, one event a line."""

import codecs
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

from sandbox.errors import SpecError
from sandbox.formats.jsonfile import decode
from sandbox.formats.records import numbered_lines

VERSION = 2
ENV: Mapping[str, str] = MappingProxyType({"TERM": "xterm-256color", "SHELL": "/bin/bash"})
_LABEL_CHARS = 1000
_LINE_START_BYTES = 4096
"""How far into a cut tail a line's start is looked for: it is no half of a character or sequence."""
_SAME_SECONDS, _SMALL_BYTES = 0.01, 1024
"""What comes in dribs and drabs is held as one: a thousand little objects take more than it."""
_CANCEL = b"\x18"
"""Ends a control sequence that the cut left open."""
Code = Literal["o", "i", "r", "m"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bytes that are kept: of the output between two markers its beginning and its end."""

    head: int = 256 << 10
    tail: int = 64 << 10
    whole: int = 64 << 20
    """Of the file, give or take an event."""


BOUNDS = Bounds()


class Cast:
    """Use it in a `with`. Safe from several threads; what comes after the end is let go.

    Output beyond the bound is held back, its end that is, until an event of another kind comes.
    """

    def __init__(
        self,
        path: Path,
        *,
        rows: int,
        cols: int,
        wall: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
        title: str = "",
        env: Mapping[str, str] = ENV,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self._path, self._ticks = path, ticks
        self._began = ticks()
        self._header = {
            "version": VERSION,
            "width": cols,
            "height": rows,
            "timestamp": int(wall()),
            "env": {name: _whole(value) for name, value in env.items()},
            **({"title": _whole(title)} if title else {}),
        }
        self._bounds = bounds
        self._room, self._left = bounds.head, bounds.whole
        self._tail = _Tail(bounds.tail)
        self._open: tuple[Code, codecs.IncrementalDecoder] | None = None
        self._last = 0.0
        self._lock = threading.Lock()
        self._over = False
        self._error: OSError | None = None

    def __enter__(self) -> Self:
        # Unbuffered: one write per event, and what a run that dies has seen is on its way.
        self._file = self._path.open("wb", buffering=0)
        self._put(json.dumps(self._header))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Raises the OSError that kept it from being written, unless something else went wrong."""
        with self._lock:
            if self._over:
                return
            self._settle(self._now())
            self._over = True
            self._file.close()
        if self._error and kind is None:
            raise self._error

    def output(self, data: bytes) -> None:
        with self._lock:
            if self._over or not data:
                return
            now = self._now()
            if self._open and self._open[0] != "o":
                self._finish(now)
            room = min(self._room, self._left)
            if room > 0 and not self._tail:
                self._room -= len(data)
                self._text(now, "o", data[:room])
                data = data[room:]
            if data:
                self._tail.add(now, data)

    def typed(self, data: bytes) -> None:
        """What was typed into it, up to as much as is kept of an output's beginning."""
        self._other(lambda now: self._text(now, "i", data[: self._bounds.head]), keep="i")

    def marker(self, label: str) -> None:
        """What follows is another command's: its own beginning and end are kept."""

        def put(now: float) -> None:
            self._event(now, "m", _whole(label[:_LABEL_CHARS]))
            self._room = self._bounds.head

        self._other(put)

    def resized(self, rows: int, cols: int) -> None:
        self._other(lambda now: self._event(now, "r", f"{cols}x{rows}"))

    def afresh(self) -> None:
        """As a marker, without one: for a person, who gives no commands that could be told apart."""
        with self._lock:
            if not self._over and self._room < self._bounds.head:
                if self._tail:
                    self._settle(self._now(), keep="o")
                self._room = self._bounds.head

    def _other(self, put: Callable[[float], None], *, keep: Code | None = None) -> None:
        with self._lock:
            if not self._over:
                now = self._now()
                self._settle(now, keep=keep)
                put(now)

    def _now(self) -> float:
        return self._ticks() - self._began

    def _settle(self, now: float, *, keep: Code | None = None) -> None:
        """An event of another kind comes: what was held back of the last kind goes out first."""
        if self._tail:
            first = self._tail.first
            left_out, kept = self._tail.take(whole=self._left > self._bounds.tail)
            if left_out:
                self._open = None  # half a character before the gap is part of it
                said = b"%s\r\n[\xe2\x80\xa6 %d bytes left out \xe2\x80\xa6]\r\n" % (
                    _CANCEL,
                    left_out,
                )
                self._text(kept[0][0] if kept else first, "o", said)
            for at, data in kept:
                self._text(at, "o", data)
        if self._open and self._open[0] != keep:
            self._finish(now)

    def _finish(self, now: float) -> None:
        if self._open:
            code, decoder = self._open
            if rest := decoder.decode(b"", final=True):
                self._event(now, code, rest)
            self._open = None

    def _text(self, at: float, code: Code, data: bytes | bytearray) -> None:
        if self._open is None or self._open[0] != code:
            self._open = (code, codecs.getincrementaldecoder("utf-8")("replace"))
        if text := self._open[1].decode(data):
            self._event(at, code, text)

    def _event(self, at: float, code: Code, data: str) -> None:
        if self._left <= 0 and code == "i":
            return
        self._last = max(self._last, at)
        self._put(f'[{self._last:.6f}, "{code}", {json.dumps(data, ensure_ascii=False)}]')

    def _put(self, line: str) -> None:
        whole = line.encode() + b"\n"
        self._left -= len(whole)
        try:
            while whole and not self._error:
                whole = whole[self._file.write(whole) :]
        except OSError as e:
            # Whoever reads the terminal has no use for it; the end of the recording tells.
            self._error = e


class _Tail:
    """The last bytes of what is added, each with its time; the rest is counted and let go."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: deque[tuple[float, bytearray]] = deque()
        self._bytes, self._gone = 0, 0
        self.first = 0.0

    def __bool__(self) -> bool:
        return bool(self._parts) or self._gone > 0

    def add(self, at: float, data: bytes) -> None:
        if not self:
            self.first = at
        if len(data) > self._limit:
            self._gone += self._bytes + len(data) - self._limit
            self._parts.clear()
            self._bytes, data = 0, data[len(data) - self._limit :]
        if not data:
            return
        if self._parts and at - self._parts[-1][0] < _SAME_SECONDS and len(data) < _SMALL_BYTES:
            self._parts[-1][1].extend(data)
        else:
            self._parts.append((at, bytearray(data)))
        self._bytes += len(data)
        while self._bytes - len(self._parts[0][1]) >= self._limit > 0:
            gone = len(self._parts.popleft()[1])
            self._bytes -= gone
            self._gone += gone

    def take(self, *, whole: bool) -> tuple[int, list[tuple[float, bytearray]]]:
        """How many bytes are gone, and those that are not; after it, it is empty."""
        parts, gone = list(self._parts), self._gone
        if not whole:
            gone, parts = gone + self._bytes, []
        over = self._bytes - self._limit
        if parts and (gone or over > 0):
            at, data = parts[0]
            cut = max(over, 0)
            cut = max(data.find(b"\n", cut, cut + _LINE_START_BYTES) + 1, cut)
            while cut < len(data) and data[cut] & 0xC0 == 0x80:
                cut += 1
            gone += cut
            parts[0] = (at, data[cut:])
        self._parts.clear()
        self._bytes, self._gone = 0, 0
        return gone, parts


def _whole(text: str) -> str:
    """Without half characters, which JSON could say and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Names as in the format's description."""

    width: int
    height: int
    timestamp: int | None = None
    title: str = ""
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Event:
    time: float
    """Seconds since the recording began."""
    code: str
    """o: output, i: input, r: resized, m: marker; others are to be passed over."""
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    header: Header
    events: tuple[Event, ...]


def read_cast(path: Path) -> Recording:
    """Raises SpecError. A last line that was cut off when its writer died is left out."""
    header: Header | None = None
    events: list[Event] = []
    for number, raw in numbered_lines(path):
        where = f"{path}:{number}"
        try:
            data = decode(_utf8(raw, where), str(path), line=number)
        except SpecError:
            if header and not raw.endswith(b"\n"):
                break
            raise
        if header is None:
            header = _header(data, where)
        else:
            events.append(_read_event(data, where))
    if header is None:
        raise SpecError("an empty recording", where=str(path))
    return Recording(header=header, events=tuple(events))


def _utf8(raw: bytes, where: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise SpecError("not UTF-8 text", where=where) from None


def _header(data: Any, where: str) -> Header:
    match data:
        case {"version": 2, "width": int(width), "height": int(height), **more} if (
            width >= 0 <= height and not isinstance(width, bool) and not isinstance(height, bool)
        ):
            stamp, env = more.get("timestamp"), more.get("env")
            return Header(
                width=width,
                height=height,
                timestamp=stamp if isinstance(stamp, int) else None,
                title=str(more.get("title") or ""),
                env=MappingProxyType(
                    {k: v for k, v in env.items() if isinstance(v, str)}
                    if isinstance(env, dict)
                    else {}
                ),
            )
        case {"version": version} if version != VERSION:
            raise SpecError(f"asciicast version {version!r} is not known here", where=where)
        case _:
            raise SpecError("no header of an asciicast v2 recording", where=where)


def _read_event(data: Any, where: str) -> Event:
    match data:
        case [int() | float() as at, str(code), str(text)] if (
            not isinstance(at, bool) and 0 <= at < 1e12
        ):
            return Event(float(at), code, text)
        case _:
            raise SpecError("an event should be [seconds, code, text]", where=where)
