"""Which requests are the same: the key under which an answer is recorded."""

from __future__ import annotations

import hashlib
import json
from urllib.parse import SplitResult, urlsplit

from sandbox.runtime.network.message import Request

PORTS = {"http": 80, "https": 443}
TELLING = ("content-type", "git-protocol", "range")
"""Headers that make another request of the same address. What a client says about itself does not:
a newer curl is to get the same answer. See `Entry.accept` for what a client asks for."""


def key_of(request: Request) -> str:
    """The order of a query's parts is nobody's; everything else is."""
    url = urlsplit(request.url)
    parts = [
        request.method,
        url.scheme.lower(),
        (url.hostname or "").lower(),
        port_of(url),
        url.path or "/",
        sorted(url.query.split("&")) if url.query else [],
        [request.header(name) for name in TELLING],
        hashlib.sha256(request.body).hexdigest(),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def port_of(url: SplitResult) -> int:
    """Raises ValueError for what is no port."""
    return url.port or PORTS.get(url.scheme.lower(), 0)


def described(request: Request) -> str:
    """For people: `POST https://host/path (12 bytes, sha256 1a2b…)`."""
    if not request.body:
        return f"{request.method} {request.url}"
    digest = hashlib.sha256(request.body).hexdigest()[:12]
    return f"{request.method} {request.url} ({len(request.body)} bytes, sha256 {digest}…)"
