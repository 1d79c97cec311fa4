"""A certificate authority of one run: it vouches for every host, and only in its own box.

Its key stays in the memory of the process that answers. Its certificates span 2000 to 3000,
so that a box whose clock stands in 2024 takes them.
"""

from __future__ import annotations

import ssl
import threading
from collections import OrderedDict
from ipaddress import ip_address

import trustme

_REMEMBERED = 256
"""Hosts whose certificates are kept: a box may ask for any number."""
NOBODY = "localhost"
"""Whose certificate is shown to a client that does not say whom it wants."""


class Authority:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._ca = trustme.CA(
            organization_name="Stillroom", organization_unit_name="recorded network of one box"
        )
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def certificate(self) -> bytes:
        """PEM: what a box has to trust."""
        return self._ca.cert_pem.bytes()

    def context(self, host: str) -> ssl.SSLContext:
        """To be `host` with. Raises ValueError for what is no host."""
        with self._lock:
            found = self._contexts.pop(host, None) or self._made(host)
            self._contexts[host] = found
            while len(self._contexts) > _REMEMBERED:
                self._contexts.popitem(last=False)
            return found

    def _made(self, host: str) -> ssl.SSLContext:
        names = [host, "127.0.0.1", "::1"] if host == NOBODY else [host]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        self._ca.issue_cert(*names, common_name=host[:64]).configure_cert(context)
        return context


def is_host(name: str) -> bool:
    """A name or address as it may stand in an address: what we let a box talk about."""
    if not 0 < len(name) <= 253:
        return False
    try:
        ip_address(name)
    except ValueError:
        return all(_is_label(label) for label in name.removesuffix(".").split("."))
    return "%" not in name


def _is_label(label: str) -> bool:
    plain = label.replace("-", "a").replace("_", "a")
    return 0 < len(label) <= 63 and plain.isascii() and plain.isalnum()
