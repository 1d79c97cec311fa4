"""Which of the machine's processors a box with a clock of its own runs on: as many as it may use.

A program asks how many it may run on, and starts as many threads: the answer must not depend on
the machine. Never more than that has: one that is not there cannot be asked for by number.
"""

import os
import threading
from math import ceil


class Processors:
    """Those that the fewest boxes of this run have."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boxes = dict.fromkeys(sorted(os.sched_getaffinity(0)), 0)

    def take(self, cpus: float) -> list[int]:
        with self._lock:
            by_load = sorted(self._boxes, key=lambda number: self._boxes[number])
            taken = sorted(by_load[: max(1, ceil(cpus))])
            for number in taken:
                self._boxes[number] += 1
        return taken

    def give_back(self, taken: list[int]) -> None:
        with self._lock:
            for number in taken:
                self._boxes[number] -= 1
