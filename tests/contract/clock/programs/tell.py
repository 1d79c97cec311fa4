"""What the Python programs here say, and for how long they wait."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

WANTED = 0.2


def now(at: float) -> None:
    print(f"now {at:.6f}")


def file(path: str) -> None:
    ns = os.stat(path).st_mtime_ns
    print(f"file {ns // 10**9}.{ns % 10**9:09}")


@contextmanager
def waits(wanted: float = WANTED) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"waited {time.monotonic() - began:.3f} {wanted}")
    sys.stdout.flush()
