"""Every packet in a box's network, seen from outside: by a socket of ours in its namespace."""

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sandbox.runtime.embedded import kernel

_EVERYTHING = 3  # ETH_P_ALL
_IPV4, _IPV6 = 0x0800, 0x86DD
_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Packet:
    interface: str
    destination: str
    """Empty when it is no packet of the internet protocol."""


class Capture:
    def __init__(self, taps: socket.socket) -> None:
        self._socket = taps

    def packets(self) -> Iterator[Packet]:
        """Those that came since this was last asked."""
        while True:
            try:
                data, (interface, protocol, *_) = self._socket.recvfrom(_MOST_BYTES)
            except BlockingIOError:
                return
            yield Packet(interface, _destination(protocol, data))


@contextmanager
def capture(pid: int) -> Iterator[Capture]:
    """`pid`: on this machine, of a process in the box."""
    made: list[socket.socket | OSError] = []

    def join() -> None:
        namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            kernel.join_namespace(namespace, kernel.CLONE_NEWNET)  # of this thread only
            made.append(
                socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_EVERYTHING))
            )
        except OSError as e:
            made.append(e)
        finally:
            os.close(namespace)

    thread = threading.Thread(target=join)
    thread.start()
    thread.join()
    tap = made[0]
    if isinstance(tap, OSError):
        raise tap
    with tap:
        tap.setblocking(False)  # noqa: FBT003
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        yield Capture(tap)


def _destination(protocol: int, data: bytes) -> str:
    if protocol == _IPV4:
        return socket.inet_ntop(socket.AF_INET, struct.unpack_from("4s", data, 16)[0])
    if protocol == _IPV6:
        return socket.inet_ntop(socket.AF_INET6, struct.unpack_from("16s", data, 24)[0])
    return ""
