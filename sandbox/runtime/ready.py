"""Waiting for descriptors, with poll: select refuses those from 1,024 on, and a big run has them."""

import math
import select
from collections.abc import Iterable
from typing import Protocol, TypeVar

_MOST_SECONDS = 2_000_000.0
"""A poll's milliseconds have 31 bits. Who waits for longer asks again."""


class HasDescriptor(Protocol):
    def fileno(self) -> int: ...


T = TypeVar("T", bound=int | HasDescriptor)


def readable(items: Iterable[T], seconds: float) -> list[T]:
    """Those that can be read, or are at their end, after `seconds` at most."""
    return _wait(items, select.POLLIN, seconds)


def writable(item: int | HasDescriptor, seconds: float) -> bool:
    """Can it be written to, or is its reader gone?"""
    return bool(_wait([item], select.POLLOUT, seconds))


def _wait(items: Iterable[T], event: int, seconds: float) -> list[T]:
    poll = select.poll()
    by_number: dict[int, T] = {}
    for item in items:
        number = item if isinstance(item, int) else item.fileno()
        by_number[number] = item
        poll.register(number, event)
    # In this order: what is no number compares as neither less nor more.
    seconds = min(max(0.0, seconds), _MOST_SECONDS)
    return [by_number[n] for n, _ in poll.poll(math.ceil(seconds * 1000))]
