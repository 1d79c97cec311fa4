"""What a terminal's window shows, from what was printed on it."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyte

from sandbox.model.step import Screen

_FRESH = re.compile(rb"\x1b(?:c|\[[23]?J|\[\?1049[hl])")
"""From here on, what was there before shows no more, or not before it is put back."""


def drawn(printed: bytes, rows: int, cols: int) -> Screen:
    """Drawing is slow, so it begins where the screen was last emptied."""
    begin = max((found.start() for found in _FRESH.finditer(printed)), default=0)
    screen = pyte.Screen(cols, rows)
    for event in pyte.Stream.events:
        setattr(screen, event, _forgiving(getattr(screen, event)))
    stream = pyte.ByteStream(screen)
    stream.feed(printed[begin:])
    return Screen(
        lines=tuple(line.rstrip() for line in screen.display),
        row=screen.cursor.y,
        col=min(screen.cursor.x, cols - 1),
        cols=cols,
    )


def _forgiving(event: Callable[..., Any]) -> Callable[..., None]:
    """Pass over what makes no sense, as terminals do; pyte raises for it, in many ways."""

    def call(*arguments: Any, **options: Any) -> None:
        with suppress(Exception):
            event(*arguments, **options)

    return call
