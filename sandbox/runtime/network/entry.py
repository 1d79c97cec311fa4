"""One recorded answer, and a line of a cassette's index. No more than the answering process needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from sandbox.model.task import STRICT
from sandbox.runtime.network.message import Headers, Response, header_of

_NOT_KEPT = frozenset(
    {
        # of one connection, not of the answer
        *("connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade", "alt-svc"),
        # would make clients come back for more than there is
        *("strict-transport-security", "nel", "report-to"),
    }
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One answer. Several with one key are given in their order; the last again and again."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    key: str
    """Of the request; see asked.py."""
    method: str
    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    sha256: str
    """Of the body."""
    size: int
    accept: str | None = None
    """What the request's Accept said, if the server said that its answer depends on it."""

    @property
    def series(self) -> tuple[str, str | None]:
        return self.key, self.accept

    def same_answer(self, other: Entry) -> bool:
        """But for its headers, which tell the time of day and the server's mood."""
        return (self.series, self.status, self.sha256) == (other.series, other.status, other.sha256)


def index_text(entries: Iterable[Entry]) -> str:
    """One line each, keys sorted: the same entries are the same bytes."""
    return "".join(
        json.dumps(asdict(e), sort_keys=True, ensure_ascii=True, separators=(",", ":")) + "\n"
        for e in entries
    )


def entry_of(data: dict[str, Any]) -> Entry:
    """Of a line that we have written ourselves."""
    headers = tuple((str(name), str(value)) for name, value in data["headers"])
    return Entry(**{**data, "headers": headers})


def kept(headers: Headers, method: str) -> Headers:
    """Those that are part of the answer, not of the connection that it came over, and can be said.

    The length is reckoned from the body; only of an answer to HEAD, which has none, it is news.
    """
    named = {n.strip().lower() for n in header_of(headers, "connection").split(",")}
    if method != "HEAD" or not header_of(headers, "content-length").isdecimal():
        named.add("content-length")
    return tuple(
        (name, value)
        for name, value in headers
        if name.lower() not in _NOT_KEPT and name.lower() not in named and is_header(name, value)
    )


def is_header(name: str, value: str) -> bool:
    """Can it be said in HTTP?"""
    fits = _TOKEN.fullmatch(name) and _VALUE.fullmatch(value) and value == value.strip(" \t")
    return bool(fits)


def answer_of(entry: Entry, body: Path) -> Response:
    return Response(status=entry.status, headers=entry.headers, body=body)
