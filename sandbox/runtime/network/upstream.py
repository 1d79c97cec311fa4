"""Asks the real network, for a box that may: while recording, or with `network: open`.

A box must not come by this way to where only its host gets: addresses that are not public are
refused, after the name is resolved and for the very address that is then connected to.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import socket
import ssl
import threading
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import urllib3

from sandbox.runtime.network.answers import NoAnswer
from sandbox.runtime.network.asked import port_of
from sandbox.runtime.network.entry import kept
from sandbox.runtime.network.message import Headers, Request, Response

CONNECT_SECONDS, READ_SECONDS = 10.0, 60.0
MOST_BYTES = 4 << 30
"""Of one answer."""
_POOLS, _BLOCK = 32, 1 << 20
_NOT_SENT = frozenset(
    {
        *("connection", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade", "content-length", "expect", "host"),
        "accept-encoding",  # what is recorded should be readable, and the same for all clients
    }
)


class Upstream:
    """Safe to use from several threads. Bodies go to files in `spool`, named by nothing."""

    def __init__(
        self, spool: Path, *, instead: Mapping[str, str] | None = None, ca_file: str = ""
    ) -> None:
        """`instead`: `host:port` → `host:port` that is asked in its place, wherever that is."""
        self._spool = spool
        self._instead = dict(instead or {})
        self._tls = ssl.create_default_context(cafile=ca_file or None)
        self._pools: dict[tuple[str, str, int, str], Any] = {}
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Response:
        """Raises NoAnswer. Never follows a redirection, and never asks twice."""
        url = urlsplit(request.url)
        try:
            pool = self._pool(url)
            response = pool.urlopen(
                request.method,
                (url.path or "/") + (f"?{url.query}" if url.query else ""),
                body=request.body or None,
                headers=_sent(request, url),
                redirect=False,
                retries=False,
                assert_same_host=False,
                preload_content=False,
                decode_content=False,
            )
            with response:
                body = self._keep(response)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as e:
            raise NoAnswer(f"cannot be asked of the real network: {e}") from e
        headers = tuple((str(k), str(v)) for k, v in response.headers.items())
        return Response(status=response.status, headers=kept(headers, request.method), body=body)

    def _pool(self, url: SplitResult) -> Any:
        host, port = url.hostname or "", port_of(url)
        other = self._instead.get(f"{host}:{port}")
        if not other and (proxy := _proxy(url.scheme, host)):
            _refuse_private(host)
            manager = urllib3.ProxyManager(proxy, ssl_context=self._tls)
            return manager.connection_from_host(host, port, url.scheme)
        address, to = _split(other) if other else (public_address(host, port), port)
        with self._lock:
            key = (url.scheme, address, to, host)
            if key not in self._pools:
                while len(self._pools) >= _POOLS:
                    self._pools.pop(next(iter(self._pools)))
                self._pools[key] = self._made(url.scheme, address, to, host)
            return self._pools[key]

    def _made(self, scheme: str, address: str, port: int, host: str) -> Any:
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        if scheme == "http":
            return urllib3.HTTPConnectionPool(address, port, timeout=timeout, maxsize=8)
        return urllib3.HTTPSConnectionPool(
            address,
            port,
            timeout=timeout,
            maxsize=8,
            ssl_context=self._tls,
            server_hostname=host,
            assert_hostname=host,
        )

    def _keep(self, response: Any) -> Path:
        path = self._spool / secrets.token_hex(16)
        size = 0
        with path.open("wb") as out:
            for block in response.stream(_BLOCK, decode_content=False):
                size += len(block)
                if size > MOST_BYTES:
                    raise OSError(f"the answer is larger than {MOST_BYTES >> 30} GiB")
                out.write(block)
        return path


def public_address(host: str, port: int) -> str:
    """One that everybody can reach. Raises OSError when there is none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(at[4][0]) for at in found]
    for address in addresses:
        _refuse_private(address)
    if not addresses:
        raise OSError(f"{host} has no address")
    return addresses[0]


def _refuse_private(host: str) -> None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    real = getattr(address, "ipv4_mapped", None) or address
    if not real.is_global or real.is_multicast:
        raise OSError(f"{host} is no public address, and a box is not to reach its host's network")


def _proxy(scheme: str, host: str) -> str | None:
    """This machine's own way out, if it has one."""
    if urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(scheme)


def _split(place: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    return host.strip("[]"), int(port)


def _sent(request: Request, url: SplitResult) -> urllib3.HTTPHeaderDict:
    named = {n.strip().lower() for n in request.header("connection").split(",")}
    headers = urllib3.HTTPHeaderDict({"Host": url.netloc, "Accept-Encoding": "identity"})
    for name, value in _passed(request.headers, named):
        headers.add(name, value)
    if not request.header("user-agent"):
        headers["User-Agent"] = urllib3.util.SKIP_HEADER
    return headers


def _passed(headers: Headers, named: set[str]) -> Headers:
    return tuple(
        (n, v) for n, v in headers if n.lower() not in _NOT_SENT and n.lower() not in named
    )


def digest_of_file(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()
