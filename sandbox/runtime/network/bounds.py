"""What a box may use of the process that answers it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

CONNECTIONS = 160
"""At one time: a little more than `wire` makes."""
HEADER_BYTES = 64 << 10
TARGET_BYTES = 16 << 10
BODY_BYTES = 32 << 20
"""Of one request."""
HELD_BYTES = 96 << 20
"""Of all requests together."""
IDLE_SECONDS = 60.0
"""Without a byte."""
REQUESTS = 10_000
"""On one connection."""


class TooLarge(Exception):
    """A request's body is more than is held."""


class Held:
    """Bytes of bodies in memory. Safe to use from several threads."""

    def __init__(self, most: int = HELD_BYTES) -> None:
        self._left = most
        self._lock = threading.Lock()

    @contextmanager
    def body(self, most: int = BODY_BYTES) -> Iterator[Body]:
        """Room for one body, given back at the end."""
        body = Body(self, most)
        try:
            yield body
        finally:
            self.give(body.taken)

    def take(self, size: int) -> bool:
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give(self, size: int) -> None:
        with self._lock:
            self._left += size


class Body:
    """One body as it comes in."""

    def __init__(self, held: Held, most: int) -> None:
        self._held = held
        self._most = most
        self._data = bytearray()
        self.taken = 0

    def add(self, data: bytes) -> None:
        """Raises TooLarge."""
        if len(self._data) + len(data) > self._most or not self._held.take(len(data)):
            raise TooLarge
        self.taken += len(data)
        self._data += data

    def __bytes__(self) -> bytes:
        return bytes(self._data)
