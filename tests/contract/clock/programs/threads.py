"""Threads that wait for each other with a timeout."""

import queue
import threading
from contextlib import suppress

from tell import waits

with waits():
    threading.Event().wait(0.2)
with waits(), (condition := threading.Condition()):
    condition.wait(0.2)
with waits():
    threading.Semaphore(0).acquire(timeout=0.2)
with waits():
    (lock := threading.Lock()).acquire()
    lock.acquire(timeout=0.2)
with waits(), suppress(queue.Empty):
    queue.Queue().get(timeout=0.2)
with waits():
    (timer := threading.Timer(0.2, print, [], {"end": ""})).start()
    timer.join()
