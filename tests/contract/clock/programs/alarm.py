"""Signals that come after a time."""

import signal
import time

from tell import now, waits


def stop(number: int, frame: object) -> None:
    del number, frame
    now(time.time())
    raise TimeoutError


signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.2)
with waits():
    try:
        time.sleep(20)
    except TimeoutError:
        pass
signal.alarm(1)
with waits(1.0):
    try:
        signal.pause()
    except TimeoutError:
        pass
with waits():
    signal.sigtimedwait([signal.SIGUSR1], 0.2)
