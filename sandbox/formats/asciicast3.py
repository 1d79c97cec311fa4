"""asciicast v3: as v2, but each event says how long it is after the one before.

A recording is written as v2, which every player reads; this is for tools of the newer one.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sandbox.errors import SpecError
from sandbox.formats.asciicast import Event, Header, Recording
from sandbox.formats.jsonfile import decode
from sandbox.formats.records import numbered_lines
from sandbox.formats.trajectory import clean

_MICROS = 1_000_000


def lines2(recording: Recording) -> Iterator[str]:
    """The recording as v2 again, whole: no last line that was cut off."""
    header = recording.header
    yield _json(
        {
            "version": 2,
            "width": header.width,
            "height": header.height,
            **_more(header),
            "env": dict(header.env),
        }
    )
    for event in recording.events:
        yield f"[{event.time:.6f}, {_json(event.code)}, {_json(event.data)}]"


def lines3(recording: Recording, exit_code: int | None = None) -> Iterator[str]:
    """`exit_code`: of the session as a whole, if it had one."""
    header = recording.header
    env = {name: value for name, value in header.env.items() if name != "TERM"}
    term = {"cols": header.width, "rows": header.height}
    kind = {"type": header.env["TERM"]} if "TERM" in header.env else {}
    yield _json({"version": 3, "term": term | kind, **_more(header), "env": env})
    before = 0
    for event in recording.events:
        # In whole microseconds, so that what is rounded does not add up.
        now = max(round(event.time * _MICROS), before)
        since = now - before
        yield f"[{since // _MICROS}.{since % _MICROS:06d}, {_json(event.code)}, {_json(event.data)}]"
        before = now
    if exit_code is not None:
        yield f'[0.000000, "x", "{exit_code}"]'


def read3(path: Path) -> Recording:
    """Raises SpecError."""
    header: Header | None = None
    events: list[Event] = []
    micros = 0
    for number, raw in numbered_lines(path):
        where = f"{path}:{number}"
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            raise SpecError("not UTF-8 text", where=where) from None
        if header is not None and (text.startswith("#") or not text.strip()):
            continue
        data = decode(text, str(path), line=number)
        if header is None:
            header = _header(data, where)
        else:
            since, code, said = _event(data, where)
            micros += round(since * _MICROS)
            events.append(Event(micros / _MICROS, code, said))
    if header is None:
        raise SpecError("an empty recording", where=str(path))
    return Recording(header=header, events=tuple(events))


def text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _more(header: Header) -> dict[str, Any]:
    stamp = {} if header.timestamp is None else {"timestamp": header.timestamp}
    return stamp | ({"title": header.title} if header.title else {})


def _json(value: Any) -> str:
    return json.dumps(clean(value), ensure_ascii=False, allow_nan=False)


def _header(data: Any, where: str) -> Header:
    match data:
        case {"version": 3, "term": {"cols": int(cols), "rows": int(rows), **term}, **more} if (
            cols >= 0 <= rows and not isinstance(cols, bool) and not isinstance(rows, bool)
        ):
            env, stamp, kind = more.get("env"), more.get("timestamp"), term.get("type")
            known = env if isinstance(env, dict) else {}
            found = {k: v for k, v in known.items() if isinstance(v, str)}
            return Header(
                width=cols,
                height=rows,
                timestamp=stamp if isinstance(stamp, int) else None,
                title=str(more.get("title") or ""),
                env=MappingProxyType(({"TERM": kind} if isinstance(kind, str) else {}) | found),
            )
        case _:
            raise SpecError("no header of an asciicast v3 recording", where=where)


def _event(data: Any, where: str) -> tuple[float, str, str]:
    match data:
        case [int() | float() as since, str(code), str(said)] if (
            not isinstance(since, bool) and 0 <= since < 1e9
        ):
            return float(since), code, said
        case _:
            raise SpecError("an event should be [seconds, code, text]", where=where)
