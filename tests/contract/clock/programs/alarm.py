"""Signals that come after a time."""

import signal
import time
from contextlib import suppress

from tell import now, waits


def stop(number: int, frame: object) -> None:
    del number, frame
    now(time.time())
    raise TimeoutError


signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.2)
with waits(), suppress(TimeoutError):
    time.sleep(20)
signal.alarm(1)
with waits(1.0), suppress(TimeoutError):
    signal.pause()
with waits():
    signal.sigtimedwait([signal.SIGUSR1], 0.2)
