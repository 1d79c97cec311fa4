"""What a request asks for, as an address: it may come in four forms, and from anybody."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from sandbox.runtime.network.asked import PORTS
from sandbox.runtime.network.authority import is_host
from sandbox.runtime.network.bounds import TARGET_BYTES


class Malformed(Exception):
    """It is no request that we understand, and why."""


@dataclass(frozen=True, slots=True)
class Place:
    """A host and port."""

    host: str
    port: int

    def text(self, scheme: str) -> str:
        """As in an address, without the port that is meant anyway."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if PORTS[scheme] == self.port else f"{host}:{self.port}"


def place_of(text: str, default_port: int) -> Place:
    """Of `host`, `host:port` or `[address]:port`. Raises Malformed."""
    try:
        url = urlsplit(f"//{text}")
        host, port = (url.hostname or "").removesuffix("."), url.port
    except ValueError as e:
        raise Malformed(f"{text!r} names no host: {e}") from None
    if url.path or url.query or url.fragment or "@" in text or not is_host(host) or port == 0:
        raise Malformed(f"{text!r} names no host")
    return Place(host, port or default_port)


def url_of(target: str, scheme: str, host_header: str, tunnel: Place | None) -> str:
    """`tunnel`: where a client has asked to be connected to. Raises Malformed."""
    if len(target) > TARGET_BYTES:
        raise Malformed("the address is too long")
    if not target.isascii() or not target.isprintable() or " " in target:
        raise Malformed("the address holds what no address can")
    if target.startswith("/"):
        place = tunnel or place_of(host_header, PORTS[scheme])
        return f"{scheme}://{place.text(scheme)}{target.partition('#')[0]}"
    scheme, colon, rest = target.partition("://")
    if not colon or scheme.lower() not in PORTS:
        raise Malformed(f"{target[:100]!r} is no address of the web")
    scheme = scheme.lower()
    rest = rest.partition("#")[0]
    end = min((rest.find(c) for c in "/?" if c in rest), default=len(rest))
    place = place_of(rest[:end], PORTS[scheme])
    path = rest[end:] if rest[end:].startswith("/") else "/" + rest[end:]
    return f"{scheme}://{place.text(scheme)}{path}"
