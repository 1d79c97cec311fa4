"""A recording, played: what to write, and how long to wait before it."""

import os
import re
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sandbox.formats.asciicast import Recording
from sandbox.formats.controls import MAIN_SCREEN, RESTORED, Screens, harmless

_SIZE = re.compile(r"([0-9]{1,6})x([0-9]{1,6})")


def frames(recording: Recording, *, speed: float, max_wait: float) -> Iterator[tuple[float, str]]:
    """Seconds to wait, then what to write; whatever the box printed, it is harmless.

    Only output: what was typed shows by its echo.
    """
    held, last, waited = "", 0.0, 0.0
    for event in recording.events:
        waited += min(max(event.time - last, 0.0), max_wait)
        last = max(event.time, last)
        if event.code != "o":
            continue
        text, held = harmless(event.data, held)
        if text:
            yield waited / speed, text
            waited = 0.0


def play(
    recording: Recording,
    *,
    speed: float,
    max_wait: float,
    ticks: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """On standard output: in its time on a terminal, at once into anything else."""
    timed = sys.stdout.isatty()
    due, screens = ticks(), Screens()
    with _quiet_keys(), _given_back(screens, timed=timed):
        for seconds, text in frames(recording, speed=speed, max_wait=max_wait):
            due += seconds
            if timed and (left := due - ticks()) > 0:
                sleep(left)
            screens.see(text.encode("utf-8", "replace"))
            _write(text, flush=timed)


def _write(text: str, *, flush: bool) -> None:
    # Bytes: what the recording has may be no part of the terminal's character set.
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    if flush:
        sys.stdout.buffer.flush()


@contextmanager
def _given_back(screens: Screens, *, timed: bool) -> Iterator[None]:
    """However it ends, and with ^C it ends anywhere."""
    try:
        yield
    finally:
        if screens.other:
            _write(MAIN_SCREEN, flush=timed)
        if timed:
            _write(f"{RESTORED}\r\n", flush=True)


@contextmanager
def _quiet_keys() -> Iterator[None]:
    """What is typed meanwhile does not show in the picture; ^C still stops it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield
        return
    fd = sys.stdin.fileno()
    before: list[Any] = termios.tcgetattr(fd)
    quiet = [*before]
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(fd, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcflush(fd, termios.TCIFLUSH)
            termios.tcsetattr(fd, termios.TCSANOW, before)


def too_small(recording: Recording) -> str:
    """What to tell whoever watches in a window in which it will not look as it did."""
    sizes = [(recording.header.width, recording.header.height)]
    resized = (_SIZE.fullmatch(event.data) for event in recording.events if event.code == "r")
    sizes += [(int(size[1]), int(size[2])) for size in resized if size]
    cols, rows = (max(numbers) for numbers in zip(*sizes, strict=True))
    try:
        here = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return ""
    if not here.columns or (here.columns >= cols and here.lines >= rows):
        return ""
    return f"recorded in a window of {cols}x{rows}; in this one of {here.columns}x{here.lines} it may look odd"
