"""A request and a response as plain values: what every answerer is asked, and what it gives.

`url` is absolute (`https://pypi.org/simple/jsonlines/`), whatever way the client came: through a proxy,
through CONNECT or straight to a loopback address. A response's body is bytes, or the path of a file
that is read when it is sent, so that a wheel of 300 MB never is in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What a client in the box asked for; header names as they came."""

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""

    def header(self, name: str, default: str = "") -> str:
        """The first header of that name, whatever its case."""
        return header_of(self.headers, name, default)


@dataclass(frozen=True, slots=True)
class Response:
    """What it is given. Length and framing are the server's to add; everything else is in `headers`."""

    status: int
    headers: Headers = ()
    body: bytes | Path = b""

    def header(self, name: str, default: str = "") -> str:
        """The first header of that name, whatever its case."""
        return header_of(self.headers, name, default)


REFUSAL = ("X-Stillroom", "refused")
"""The header of an answer that says that there is none here."""


def is_refusal(response: Response) -> bool:
    return response.header(REFUSAL[0]) == REFUSAL[1]


class Answerer(Protocol):
    """Something that knows answers: a package index, a cassette, the real network."""

    def answer(self, request: Request) -> Response | None:
        """The answer to `request`, or None when this one has none: then the next is asked."""
        ...


def header_of(headers: Headers, name: str, default: str = "") -> str:
    """The first header called `name`, whatever its case, or `default`."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), default)
