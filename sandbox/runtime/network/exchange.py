"""One connection: requests in, answers out. The parsing is h11's."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import h11

from sandbox.runtime.network import bounds
from sandbox.runtime.network.answers import Outcome
from sandbox.runtime.network.asked import PORTS
from sandbox.runtime.network.bounds import Held, TooLarge
from sandbox.runtime.network.entry import kept
from sandbox.runtime.network.message import Request, Response
from sandbox.runtime.network.target import Malformed, Place, place_of, url_of

_BLOCK = 1 << 18
_HANDSHAKE = b"\x16"
"""The first byte of TLS."""
Answer = Callable[[Request], Outcome]
Tls = Callable[[socket.socket, str | None], ssl.SSLSocket]
"""A connection as the host that a client wants: the named one, or the one it will name."""


class Witness(Protocol):
    """Sees what was said."""

    def answering(self, request: Request, outcome: Outcome, size: int) -> None: ...

    def answered(self, outcome: Outcome) -> None: ...

    def complained(self, why: str) -> None: ...


class Exchange:
    """Speaks HTTP/1.1 on a socket until one of both sides has had enough."""

    def __init__(self, answer: Answer, tls: Tls, witness: Witness, held: Held) -> None:
        self._answer = answer
        self._tls = tls
        self._witness = witness
        self._held = held

    def direct(self, sock: socket.socket, scheme: str) -> None:
        """A client that believes that it speaks with the host itself."""
        if scheme == "https":
            sock = self._tls(sock, None)
        self._speak(sock, scheme, None)

    def proxy(self, sock: socket.socket) -> None:
        """A client that knows that it speaks with a proxy."""
        place = self._speak(sock, "http", None)
        if place is None:
            return
        if sock.recv(1, socket.MSG_PEEK) == _HANDSHAKE:
            self._speak(self._tls(sock, place.host), "https", place)
        else:
            self._speak(sock, "http", place)

    def _speak(self, sock: socket.socket, scheme: str, tunnel: Place | None) -> Place | None:
        """Returns where to, when the client asked to be connected through."""
        line = _Line(sock)
        try:
            for _ in range(bounds.REQUESTS):
                asked = line.request()
                if asked is None:
                    return None
                if asked.method == b"CONNECT":
                    return self._connect(line, asked)
                self._one(line, asked, scheme, tunnel)
                if not line.again():
                    return None
        except (Malformed, h11.RemoteProtocolError) as e:
            self._complain(line, 400, f"malformed request: {e}")
        except TooLarge:
            self._complain(line, 413, "the request is larger than is taken here")
        return None

    def _complain(self, line: _Line, status: int, why: str) -> None:
        self._witness.complained(why)
        line.complain(status, why)

    def _one(self, line: _Line, asked: h11.Request, scheme: str, tunnel: Place | None) -> None:
        headers = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in asked.headers)
        host = next((v for n, v in headers if n == "host"), "")
        url = url_of(asked.target.decode("latin-1"), scheme, host, tunnel)
        with self._held.body() as body:
            for data in line.body():
                body.add(data)
            request = Request(asked.method.decode("latin-1"), url, headers, bytes(body))
            outcome = self._answer(request)
            # Written down first: what a client has seen is in the log.
            self._witness.answering(request, outcome, size_of(outcome.response))
            try:
                line.respond(request, outcome)
            finally:
                self._witness.answered(outcome)

    def _connect(self, line: _Line, asked: h11.Request) -> Place | None:
        place = place_of(asked.target.decode("latin-1"), PORTS["https"])
        if line.trailing():
            raise Malformed("bytes after CONNECT, before its answer")
        line.connected()
        return place


class _Line:
    """A socket and where h11 is on it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._state = h11.Connection(h11.SERVER, max_incomplete_event_size=bounds.HEADER_BYTES)

    def request(self) -> h11.Request | None:
        event = self._next()
        return event if isinstance(event, h11.Request) else None

    def body(self) -> Iterator[bytes]:
        while isinstance(event := self._next(), h11.Data):
            yield bytes(event.data)

    def _next(self) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
        while True:
            event = self._state.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self._state.they_are_waiting_for_100_continue:
                self._say(h11.InformationalResponse(status_code=100, headers=[]))
            self._state.receive_data(self._sock.recv(_BLOCK))

    def trailing(self) -> bytes:
        for _ in self.body():
            pass
        return self._state.trailing_data[0]

    def connected(self) -> None:
        self._say(h11.Response(status_code=200, headers=[], reason=b"Connected"))

    def again(self) -> bool:
        """Is there to be another request?"""
        if self._state.our_state is not h11.DONE or self._state.their_state is not h11.DONE:
            return False
        self._state.start_next_cycle()
        return True

    def respond(self, request: Request, outcome: Outcome) -> None:
        response = outcome.response
        headers = list(kept(response.headers, request.method))
        if request.method != "HEAD" or not response.header("content-length"):
            headers.append(("Content-Length", str(size_of(response))))
        if response.status in (204, 304):
            headers = [(n, v) for n, v in headers if n.lower() != "content-length"]
        head = h11.Response(
            status_code=response.status,
            headers=[(n.encode("latin-1"), v.encode("latin-1")) for n, v in headers],
            reason=outcome.phrase.encode(),
        )
        # The head goes with the first block: two small packets would be waited for.
        said = self._state.send(head) or b""
        if request.method != "HEAD" and response.status not in (204, 304):
            for block in _blocks(response):
                self._sock.sendall(said + (self._state.send(h11.Data(data=block)) or b""))
                said = b""
        said += self._state.send(h11.EndOfMessage()) or b""
        if said:
            self._sock.sendall(said)

    def complain(self, status: int, text: str) -> None:
        """If it is not too late for that."""
        if self._state.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body = f"stillroom: {text}\n".encode("utf-8", "backslashreplace")
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close")]
        headers.append(("Content-Length", str(len(body))))
        self._say(h11.Response(status_code=status, headers=headers))
        self._say(h11.Data(data=body))
        self._say(h11.EndOfMessage())
        self._drain()

    def _drain(self) -> None:
        """Some of what still comes: closing before it is read would take our answer back."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
            left = 4 << 20
            while left > 0 and (data := self._sock.recv(_BLOCK)):
                left -= len(data)

    def _say(self, event: h11.Event) -> None:
        if data := self._state.send(event):
            self._sock.sendall(data)


def size_of(response: Response) -> int:
    body = response.body
    return body.stat().st_size if isinstance(body, Path) else len(body)


def _blocks(response: Response) -> Iterator[bytes]:
    if isinstance(response.body, bytes):
        if response.body:
            yield response.body
        return
    with response.body.open("rb") as f:
        while block := f.read(_BLOCK):
            yield block
