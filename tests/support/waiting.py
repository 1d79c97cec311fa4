"""Wait for what is bound to happen, no longer than it takes."""

import time
from collections.abc import Callable


def eventually(true: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
