"""Waiting for descriptors, with poll: select refuses those from 1,024 on, and a big run has them."""

import math
import select
from collections.abc import Iterable
from typing import Protocol, TypeVar


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
    return [by_number[n] for n, _ in poll.poll(math.ceil(max(seconds, 0.0) * 1000))]
