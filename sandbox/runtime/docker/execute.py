"""Run a program in a box to its end: which is its own end, not that of its pipes."""

import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from sandbox.runtime.docker.wire import Demultiplexer

BLOCK = 1 << 17
LOOK_SECONDS = (0.01, 1.0)
"""How soon the engine is asked whether the program runs; the pause grows to the second."""
QUIET_SECONDS = 0.2
DRAIN_SECONDS = 1.0
"""When a program is over and a child of it holds its pipes: what is under way still arrives."""


@dataclass(frozen=True, slots=True)
class Output:
    stdout: bytes
    stderr: bytes
    truncated: bool
    in_time: bool


class Looks:
    """When to ask whether the program runs: often at first, then less and less."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._pause = LOOK_SECONDS[0]
        self.at = time.monotonic() + self._pause

    def due(self) -> bool:
        """Is it time? If so the next time is set."""
        if time.monotonic() < self.at:
            return False
        self._pause = min(self._pause * 1.5, LOOK_SECONDS[1])
        self.at = time.monotonic() + self._pause
        return True


def attend(
    sock: socket.socket,
    *,
    give: bytes,
    over: Callable[[bool], bool],
    seconds: float,
    output_bytes: int,
) -> Output:
    """Feed the program its input and keep its output until it ends or its time is up.

    `over` asks whether it has ended; it is told whether the stream is still open.
    """
    sock.setblocking(False)  # noqa: FBT003
    deadline = time.monotonic() + seconds
    talk = _Talk(sock, give, Demultiplexer(output_bytes))
    looks = Looks()
    ended = False
    while not ended and time.monotonic() < deadline:
        was_open = talk.open
        talk.step(min(looks.at, deadline) - time.monotonic())
        if was_open and not talk.open:  # nearly always its end: look at once, and soon again
            looks.restart()
            ended = over(talk.open)
        elif looks.due():
            ended = over(talk.open)
    if ended:
        _drain(talk)
    kept = talk.kept
    return Output(bytes(kept.stdout), bytes(kept.stderr), kept.truncated, ended)


def _drain(talk: "_Talk") -> None:
    """A child may print for ever: stop at the first quiet moment, or after a second of it."""
    end = time.monotonic() + DRAIN_SECONDS
    while talk.open and time.monotonic() < end:
        if not talk.step(QUIET_SECONDS):
            return


class _Talk:
    def __init__(self, sock: socket.socket, give: bytes, kept: Demultiplexer) -> None:
        self.kept = kept
        self.open = True
        self._sock = sock
        self._give = memoryview(give)
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN | (select.POLLOUT if give else 0))

    def step(self, seconds: float) -> bool:
        """Move some bytes, waiting at most so long for them. False: there were none."""
        if not self.open:  # it closed its output and goes on: only time can pass
            time.sleep(max(0.0, seconds))
            return False
        events = self._poll.poll(max(0.0, seconds) * 1000)
        if not events:
            return False
        _, what = events[0]
        if what & select.POLLOUT:
            self._send()
        if what & ~select.POLLOUT:
            self._receive()
        return True

    def _send(self) -> None:
        try:
            self._give = self._give[self._sock.send(self._give[:BLOCK]) :]
        except BlockingIOError:
            return
        except OSError:  # it ended without reading everything; that is its own affair
            self._give = self._give[:0]
        if not self._give:
            self._poll.modify(self._sock, select.POLLIN)
            try:
                self._sock.shutdown(socket.SHUT_WR)
            except OSError:
                return

    def _receive(self) -> None:
        try:
            block = self._sock.recv(BLOCK)
        except BlockingIOError:
            return
        except ConnectionError:
            block = b""
        if block:
            self.kept.feed(block)
        else:
            self.open = False
            self._poll.unregister(self._sock)
