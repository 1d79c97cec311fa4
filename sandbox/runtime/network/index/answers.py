"""The kinds of answers that all indexes give."""

import json
import re
from pathlib import Path
from typing import Any

from sandbox.runtime.network.message import REFUSAL, Request, Response

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
TEXT = "text/plain; charset=utf-8"


def answered(body: bytes, kind: str, *, status: int = 200) -> Response:
    return Response(status, (("Content-Type", kind),), body)


def refused(body: bytes, kind: str, *, status: int = 404) -> Response:
    """404, as an index says it: clients take that at once, and do without what is optional."""
    headers = (("Content-Type", kind), ("Cache-Control", "no-store"), REFUSAL)
    return Response(status, headers, body)


def json_bytes(value: Any) -> bytes:
    """The same value is the same bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def refusal(what: str, lock: str, option: str) -> str:
    """Why there is no such file, for whoever reads the client's output. `option`: of the index."""
    return (
        f"{what} is not in this box's frozen package index: {lock} does not list it, and nothing "
        f"else can be had from here. Whoever keeps the task can add it: "
        f"stillroom record TASK --{option} NAME"
    )


def not_listed(what: str, lock: str, option: str) -> Response:
    return refused(f"{refusal(what, lock, option)}\n".encode(), TEXT)


def file_answer(path: Path, sha256: str, request: Request, kind: str) -> Response:
    """The file, or that range of it which was asked for (RFC 9110): pip and uv read wheels so."""
    headers = (("Content-Type", kind), ("Accept-Ranges", "bytes"), ("ETag", f'"{sha256}"'))
    wanted = _RANGE.fullmatch(request.header("Range").replace(" ", ""))
    if request.header("If-Range", f'"{sha256}"') != f'"{sha256}"':
        wanted = None
    if wanted is None or request.method != "GET" or not (wanted[1] or wanted[2]):
        return Response(200, headers, path)
    size = path.stat().st_size
    first, last = _bounds(wanted[1], wanted[2], size)
    if wanted[1] and wanted[2] and int(wanted[2]) < int(wanted[1]):
        return Response(200, headers, path)  # no range at all: to be ignored
    if first > last:
        return Response(416, (*headers, ("Content-Range", f"bytes */{size}")))
    place = ("Content-Range", f"bytes {first}-{last}/{size}")
    if last - first + 1 == size:
        return Response(206, (*headers, place), path)
    with path.open("rb") as f:
        f.seek(first)
        return Response(206, (*headers, place), f.read(last - first + 1))


def _bounds(start: str, end: str, size: int) -> tuple[int, int]:
    """First and last byte; the first is past the last when there is no such range."""
    if not start:
        return (max(0, size - int(end)), size - 1) if int(end) else (size, size - 1)
    return int(start), min(int(end), size - 1) if end else size - 1
