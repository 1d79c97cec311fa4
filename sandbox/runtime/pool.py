"""Boxes that are ready before they are asked for."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sandbox.errors import Fault
from sandbox.runtime.spec import BoxSpec

T = TypeVar("T")
MOST_BOXES = 32
MOST_BYTES = 512 << 20
_REST_SECONDS = 0.02
TRIES = 2
"""A machine may be short of something for a moment."""


@dataclass(slots=True)
class _Shelf(Generic[T]):
    """The ready boxes of one spec. A spec cannot be hashed, so they are found by comparison."""

    spec: BoxSpec
    wanted: int
    ready: list[T] = field(default_factory=list)
    failed: int = 0
    """How often in a row none could be made."""


class Pool(Generic[T]):
    """Made by one thread in the background, so that filling up never takes more than one processor.

    Bounded in number and in the memory that the ready ones use: specs that were asked for longest
    ago give way.
    """

    def __init__(
        self,
        make: Callable[[BoxSpec], T],
        drop: Callable[[T], None],
        weigh: Callable[[T], int],
        *,
        most_boxes: int = MOST_BOXES,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`weigh`: the bytes of memory a ready one uses."""
        self._make, self._drop, self._weigh = make, drop, weigh
        self._most_boxes, self._most_bytes = most_boxes, most_bytes
        self._changed = threading.Condition()
        self._shelves: list[_Shelf[T]] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    def keep(self, spec: BoxSpec, count: int) -> None:
        """Have so many ready from now on; 0: no more, and drop those there are."""
        with self._changed:
            if self._closed:
                return
            shelf = self._shelf(spec) or _Shelf(spec, 0)
            shelf.wanted = min(count, self._most_boxes)
            self._shelves = [s for s in self._shelves if s is not shelf] + [shelf]
            surplus = self._give_way()
            if self._thread is None and shelf.wanted:
                self._thread = threading.Thread(target=self._fill, name="warm boxes", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        for box in surplus:
            self._drop(box)

    def take(self, spec: BoxSpec) -> T | None:
        """A ready box that nobody has used, or None. Another takes its place soon."""
        with self._changed:
            shelf = self._shelf(spec)
            if shelf is None or not shelf.ready:
                return None
            self._changed.notify_all()
            return shelf.ready.pop(0)

    def full(self, spec: BoxSpec, seconds: float) -> bool:
        """Wait until all that are wanted are ready. False when they are not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_full(spec), seconds)

    def close(self, drop: Callable[[T], object] | None = None) -> None:
        """Drop them all, in another way if there is one. Harmless the second time."""
        with self._changed:
            self._closed = True
            for shelf in self._shelves:
                shelf.wanted = 0
            self._changed.notify_all()
            thread, self._thread = self._thread, None
        if thread:
            thread.join()
        for shelf in self._shelves:
            while shelf.ready:
                (drop or self._drop)(shelf.ready.pop())

    def _shelf(self, spec: BoxSpec) -> _Shelf[T] | None:
        return next((s for s in self._shelves if s.spec is spec or s.spec == spec), None)

    def _is_full(self, spec: BoxSpec) -> bool:
        shelf = self._shelf(spec)
        return shelf is None or len(shelf.ready) >= shelf.wanted

    def _give_way(self) -> list[T]:
        """Boxes that are one too many, taken off their shelves; empty shelves go."""
        surplus: list[T] = []
        over = sum(s.wanted for s in self._shelves) - self._most_boxes
        for shelf in self._shelves[:-1]:
            if over <= 0:
                break
            over -= shelf.wanted
            shelf.wanted = max(0, -over)
        for shelf in self._shelves:
            surplus += shelf.ready[shelf.wanted :]
            del shelf.ready[shelf.wanted :]
        self._shelves = [s for s in self._shelves if s.wanted]
        return surplus

    def _lacking(self) -> _Shelf[T] | None:
        return next((s for s in reversed(self._shelves) if len(s.ready) < s.wanted), None)

    def _fill(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._lacking())
                # Whoever took one is about to use it: let them have the processor first.
                self._changed.wait_for(lambda: self._closed, _REST_SECONDS)
                shelf = self._lacking()
                if self._closed:
                    return
            if shelf is None:  # it is wanted no more
                continue
            try:
                box = self._make(shelf.spec)
            except Exception as e:  # noqa: BLE001 - the thread must go on, for other specs
                # Whoever asks for a box hears why; here it would be tried for ever.
                shelf.failed += 1
                if not getattr(e, "retry", False) or shelf.failed >= TRIES:
                    self._want_less(shelf, 0)
                continue
            shelf.failed = 0
            self._shelve(shelf, box)

    def _shelve(self, shelf: _Shelf[T], box: T) -> None:
        weight = 0
        with suppress(Fault):
            weight = self._weigh(box)
        with self._changed:
            wanted = len(shelf.ready) < shelf.wanted
            if wanted:
                shelf.ready.append(box)
                self._changed.notify_all()
            there = sum(len(s.ready) for s in self._shelves)
        if not wanted:
            self._drop(box)
        elif weight * there > self._most_bytes:
            self._want_less(shelf, len(shelf.ready))

    def _want_less(self, shelf: _Shelf[T], count: int) -> None:
        with self._changed:
            shelf.wanted = min(shelf.wanted, count)
            self._changed.notify_all()
