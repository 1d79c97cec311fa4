"""A program's output while it runs: the host's ends."""

import os
import socket
import time
from typing import Any

from sandbox.runtime.embedded import wire
from sandbox.runtime.ready import readable

_BLOCK = 1 << 16
_PIPE_BLOCKS = 16
TIMED_OUT: dict[str, Any] = {"timed_out": True}


class Stream:
    """One output stream of a program: its beginning is kept, the rest is counted and dropped."""

    def __init__(self, limit: int) -> None:
        self.read_end, self.write_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.read_end, False)
        self.kept = bytearray()
        self.truncated = False
        self._limit = limit

    def take(self) -> bool:
        """Read what is there; False at the end of the stream."""
        try:
            block = os.read(self.read_end, _BLOCK)
        except BlockingIOError:
            return True
        room = max(self._limit - len(self.kept), 0)
        self.kept += block[:room]
        self.truncated |= len(block) > room
        return bool(block)

    def take_rest(self) -> None:
        """What is in the pipe now, but no more than it can hold: a writer may still be there."""
        for _ in range(_PIPE_BLOCKS):
            if not readable([self.read_end], 0) or not self.take():
                return

    def close(self) -> None:
        os.close(self.read_end)


def follow(
    reply: socket.socket, streams: tuple[Stream, ...], seconds: float
) -> dict[str, Any] | None:
    """Read the streams until the program has ended, whoever else holds them open."""
    until = time.monotonic() + seconds
    waiting: dict[int, Stream] = {s.read_end: s for s in streams}
    try:
        while True:
            left = until - time.monotonic()
            if not left > 0:  # what is no number never is
                return TIMED_OUT
            watched: list[socket.socket | int] = [reply, *waiting]
            ready = readable(watched, left)
            for fd in ready:
                if isinstance(fd, int) and not waiting[fd].take():
                    del waiting[fd]
            if reply in ready:
                message, _ = wire.receive(reply)
                for stream in waiting.values():
                    stream.take_rest()
                return message
    finally:
        for stream in streams:
            stream.close()


def status(code: int) -> int:
    """As a shell says it: 128 + n for signal n."""
    return code if code >= 0 else 128 - code
