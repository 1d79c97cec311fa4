"""What boxes share of an image is in memory before one of them looks.

Boxes of one image have its files in the same page cache, and a program can tell whether what it
reads was there already. So a page that one box read first was a bit for all that come later: for
the other box of a verdict, for the plain run, for the next agent. What is in memory to begin with,
and cannot be put out of it (see `policy.IGNORED`), says nothing.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

_SECONDS = 10.0
"""So long what was read is taken to be there: a machine that needs its memory may put it out."""
_STEP = 1 << 17
"""Bytes. Of what a kernel is advised of at once, it reads what its device takes at once, and no more."""
_MOST = 1 << 30
"""Bytes of a file. A larger one may be nothing but holes, which would take memory as well."""
_read: dict[Path, float] = {}


def read_in(folders: Iterable[Path], ticks: Callable[[], float] = time.monotonic) -> None:
    """Begin to read all of them, in the kernel. What cannot be read is left out."""
    for folder in folders:
        began = ticks()
        if began - _read.get(folder, -_SECONDS) < _SECONDS:
            continue
        for path in _files(folder):
            with suppress(OSError):
                _read_file(path)
        # Not before: who comes meanwhile would begin with a part of it.
        _read[folder] = began


def _read_file(path: str) -> None:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        for at in range(0, min(os.fstat(file).st_size, _MOST), _STEP):
            os.posix_fadvise(file, at, _STEP, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(file)


@lru_cache(maxsize=256)
def _files(folder: Path) -> tuple[str, ...]:
    """Of a layer or a seed, which never changes."""
    return tuple(_regular(str(folder)))


def _regular(top: str) -> Iterator[str]:
    for folder, _, names in os.walk(top):
        for name in names:
            path = f"{folder}/{name}"
            with suppress(OSError):
                if stat.S_ISREG(os.lstat(path).st_mode):
                    yield path
