"""Where the engine listens, and a socket to it."""

import socket
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from sandbox.errors import RuntimeFault

DEFAULT_HOST = "unix:///var/run/docker.sock"
CONNECT_SECONDS = 30.0

Socket = socket.socket


@dataclass(frozen=True, slots=True)
class Address:
    """Where the engine listens: a Unix socket, or TCP without TLS."""

    host: str
    path: str = ""
    name: str = ""
    port: int = 0

    @classmethod
    def parse(cls, host: str) -> Self:
        parts = urlsplit(host)
        if parts.scheme == "unix" and parts.path:
            return cls(host, path=parts.path)
        if parts.scheme == "tcp" and parts.hostname and parts.port:
            return cls(host, name=parts.hostname, port=parts.port)
        raise RuntimeFault(
            f"DOCKER_HOST={host}: terminals need a plain socket, unix:// or tcp://",
            hint="forward one: ssh -NL /tmp/engine.sock:/var/run/docker.sock HOST, "
            "then DOCKER_HOST=unix:///tmp/engine.sock",
            retry=False,
        )


def connect(address: Address) -> Socket:
    if not address.path:
        return socket.create_connection((address.name, address.port), timeout=CONNECT_SECONDS)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(CONNECT_SECONDS)
        sock.connect(address.path)
    except OSError:
        sock.close()
        raise
    return sock
