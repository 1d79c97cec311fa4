"""Answers of the engine that are being read.

While it tells what is in a container, it does nothing else with it: neither ends nor removes it, and
meanwhile it removes no image either. So an answer that nobody reads to its end has to be cut off.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator

import requests


class Readings:
    """Of one container. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()

    @contextlib.contextmanager
    def of(self, answer: requests.Response) -> Iterator[None]:
        """While it is read; at its end, or when reading ends early, so does the answer."""
        # Only the connection can be ended by another thread; this is a descriptor of our own.
        sock = socket.socket(fileno=os.dup(answer.raw.fileno()))
        with self._lock:
            self._open.add(sock)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(sock)
                sock.close()
            answer.close()

    def cut(self) -> bool:
        """End them all: whoever reads gets an error. Were there any?"""
        with self._lock:
            found = len(self._open)
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        return found > 0
