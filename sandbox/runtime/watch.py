"""Holds boxes to their disk limit: measures each of them every second, and tells it when over.

A kernel holds back memory and processes; of a folder on a shared file system it knows no limit.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Protocol

from sandbox.errors import Fault

LOOK_SECONDS = 1.0
SHARE = 0.05
"""Of the time, spent on measuring: boxes with many files are measured less often."""

ALARM_BYTES = 256 << 20
"""When the disk has so much less left than at the last look, the next one does not wait."""

Clock = Callable[[], float]


class Watched(Protocol):
    """A box with a limit. What it raises as a Fault or OSError means that it is gone, or busy."""

    def disk_bytes(self) -> int: ...

    def over_disk(self, used: int) -> None:
        """It uses more than it may: `used` bytes. Told once; it is watched no longer."""
        ...


class Watch:
    """Its thread lives as long as there is a box to watch. Safe to use from several threads."""

    def __init__(self, clock: Clock = time.monotonic, free: Callable[[], int] = lambda: 0) -> None:
        """`free`: the bytes that are left on the disk.

        A box with so many files that it is measured rarely could fill all of it in between.
        """
        self._clock = clock
        self._free = free
        self._left = 0
        self._changed = threading.Condition()
        self._boxes: dict[int, tuple[Watched, int]] = {}
        self._thread: threading.Thread | None = None

    def add(self, box: Watched, limit_bytes: int) -> None:
        with self._changed:
            self._boxes[id(box)] = box, limit_bytes
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="disk watch", daemon=True)
                self._thread.start()

    def remove(self, box: Watched) -> None:
        """Harmless the second time, and for a box that was never added."""
        with self._changed:
            self._boxes.pop(id(box), None)
            self._changed.notify_all()

    def close(self) -> None:
        """Watch nothing any more; the thread is over when this returns."""
        with self._changed:
            self._boxes.clear()
            thread = self._thread
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    @property
    def running(self) -> bool:
        with self._changed:
            return self._thread is not None

    def look(self) -> float:
        """Measure every box once; returns how many seconds to rest."""
        with self._changed:
            boxes = list(self._boxes.values())
        self._left = self._free()
        began = self._clock()
        for box, limit in boxes:
            self._measure(box, limit)
        return max(LOOK_SECONDS, (self._clock() - began) * (1 / SHARE - 1))

    def _measure(self, box: Watched, limit: int) -> None:
        with contextlib.suppress(Fault, OSError):
            used = box.disk_bytes()
            if used > limit and self._taken(box):
                box.over_disk(used)

    def _taken(self, box: Watched) -> bool:
        """Watch it no longer; False when nobody did. Before it is told: then it may come again."""
        with self._changed:
            return self._boxes.pop(id(box), None) is not None

    def _run(self) -> None:
        rest = LOOK_SECONDS
        while self._rested(rest):
            rest = self.look()

    def _rested(self, seconds: float) -> bool:
        """False when there is nothing left to watch."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._boxes, min(seconds, LOOK_SECONDS))
                if not self._boxes:
                    self._thread = None
                    return False
            seconds -= LOOK_SECONDS
            if seconds <= 0 or self._free() < self._left - ALARM_BYTES:
                return True
