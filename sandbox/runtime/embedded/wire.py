"""Messages between host, zygote and init: one JSON object and some descriptors a datagram."""

import array
import contextlib
import json
import socket
from typing import Any

MAX_BYTES = 1 << 18
_MAX_FDS = 8


def pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a channel that keeps message boundaries and tells when the other end is gone."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_BYTES * 2)
    return ends


def send(end: socket.socket, message: dict[str, Any], fds: list[int] | None = None) -> None:
    data = json.dumps(message).encode()
    if len(data) > MAX_BYTES:
        raise ValueError(f"a request of {len(data)} bytes is too long (limit {MAX_BYTES})")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    end.sendmsg([data], rights)


def receive(end: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """The next message, or None when the other end is gone. The descriptors are the caller's."""
    data, rights, _, _ = end.recvmsg(
        MAX_BYTES, socket.CMSG_SPACE(4 * _MAX_FDS), socket.MSG_CMSG_CLOEXEC
    )
    fds = array.array("i")
    for level, kind, payload in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
    return (json.loads(data) if data else None), list(fds)


def tell_error(end: socket.socket, error: BaseException) -> None:
    """Whoever asked may be gone: that is no trouble of ours."""
    with contextlib.suppress(OSError):
        send(end, {"error": str(error) or type(error).__name__})
