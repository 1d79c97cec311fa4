"""The stream of a running program: the one part of the engine's API that is not plain HTTP.

The SDK reads the answer's headers through a buffer, and what a quick program printed may stay
in it. Here the headers are read to their last byte, so the socket begins with the first byte
of output, and its file descriptor can be handed out.
"""

import json

from sandbox.errors import RuntimeFault
from sandbox.runtime.docker.address import CONNECT_SECONDS, Address, Socket, connect

HEAD_BYTES = 1 << 16
FRAME_HEADER = 8
STDERR = 2
OK, SWITCHING = 200, 101


def start_exec(address: Address, version: str, exec_id: str, *, tty: bool) -> Socket:
    """Start a prepared program; its input and output are the socket's."""
    body = json.dumps({"Detach": False, "Tty": tty}).encode()
    request = (
        f"POST /v{version}/exec/{exec_id}/start HTTP/1.1\r\n"
        "Host: docker\r\n"
        "Connection: Upgrade\r\n"
        "Upgrade: tcp\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    return _hijack(address, request)


def attach(address: Address, version: str, container: str) -> Socket:
    """The input and output of a container's first process, which need not run yet."""
    request = (
        f"POST /v{version}/containers/{container}/attach?stream=1&stdin=1&stdout=1 HTTP/1.1\r\n"
        "Host: docker\r\n"
        "Connection: Upgrade\r\n"
        "Upgrade: tcp\r\n"
        "Content-Length: 0\r\n\r\n"
    ).encode()
    return _hijack(address, request)


def read_until(sock: Socket, end: bytes, limit: int) -> bytes:
    """Up to and including `end`, and not one byte more. Shorter when the stream is over."""
    seen = bytearray()
    while not seen.endswith(end) and len(seen) < limit:
        byte = sock.recv(1)
        if not byte:
            break
        seen += byte
    return bytes(seen)


def _hijack(address: Address, request: bytes) -> Socket:
    sock = connect(address)
    try:
        sock.settimeout(None)
        sock.sendall(request)
        head = _read_head(sock)
        _check(sock, head)
    except BaseException:
        sock.close()
        raise
    return sock


def _read_head(sock: Socket) -> bytes:
    return read_until(sock, b"\r\n\r\n", HEAD_BYTES)


def _check(sock: Socket, head: bytes) -> None:
    if _status(head) not in {OK, SWITCHING}:
        raise RuntimeFault(f"cannot start the program: {_refusal(sock, head)}")


def _status(head: bytes) -> int:
    words = head.split(b" ", 2)
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def _refusal(sock: Socket, head: bytes) -> str:
    """The engine's words in the body of an error."""
    if not head:
        return "the engine closed the connection"
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    sock.settimeout(CONNECT_SECONDS)
    body = b""
    while len(body) < min(length, HEAD_BYTES) and (block := sock.recv(4096)):
        body += block
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return head.split(b"\r\n", 1)[0].decode(errors="replace")


class Demultiplexer:
    """Sorts the engine's frames into two streams; keeps the beginning of each."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._header = bytearray()
        self._left = 0
        """Bytes of the current frame that are still to come."""
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.truncated = False

    def feed(self, block: bytes) -> None:
        view = memoryview(block)
        while view:
            if self._left == 0:
                view = self._feed_header(view)
                continue
            part, view = view[: self._left], view[self._left :]
            self._left -= len(part)
            self._store(part)

    def _feed_header(self, view: memoryview) -> memoryview:
        """Take what is missing of a header: stream, three zeros, length in four bytes."""
        if len(self._header) == FRAME_HEADER:
            self._header.clear()
        missing = FRAME_HEADER - len(self._header)
        self._header += view[:missing]
        if len(self._header) == FRAME_HEADER:
            self._left = int.from_bytes(self._header[4:], "big")
        return view[missing:]

    def _store(self, part: memoryview) -> None:
        stream = self.stderr if self._header[0] == STDERR else self.stdout
        room = self._keep - len(stream)
        stream += part[:room]
        self.truncated = self.truncated or len(part) > room
