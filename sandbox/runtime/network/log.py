"""network.jsonl: what a box asked the network for, and what it was told. Bounded, as boxes are not."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Self

MOST_BYTES = 32 << 20
MOST_TEXT = 2000
"""Characters of one value."""


class NetworkLog:
    """One line per event, whole. Safe to use from several threads."""

    def __init__(
        self, path: Path, *, most: int = MOST_BYTES, ticks: Callable[[], float] = time.monotonic
    ) -> None:
        self._file: IO[bytes] = path.open("ab", buffering=0)
        self._left = most
        self._ticks = ticks
        self._began = ticks()
        self._lock = threading.Lock()

    def add(self, event: str, **more: object) -> None:
        """`event`: served, recorded, passed, refused, name or broken."""
        seconds = round(self._ticks() - self._began, 4)
        fields = {name: _short(value) for name, value in more.items()}
        line = json.dumps({"seconds": seconds, "event": event, **fields}).encode() + b"\n"
        with self._lock:
            if self._left < 0:
                return
            self._left -= len(line)
            if self._left < 0:
                line = json.dumps({"seconds": seconds, "event": "full"}).encode() + b"\n"
            self._file.write(line)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > MOST_TEXT:
        return value[:MOST_TEXT] + "…"
    return value
