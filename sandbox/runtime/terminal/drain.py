"""Reads from terminals that nobody looks at, so that what runs in them can go on printing."""

import select
import threading
from collections.abc import Callable


class Drain:
    """One thread for all terminals of the process, started with the first."""

    def __init__(self) -> None:
        self._poll: select.epoll | None = None
        self._lock = threading.Lock()
        self._turns: dict[int, tuple[Callable[[], None], threading.Lock]] = {}

    def add(self, fd: int, read: Callable[[], None], lock: threading.Lock) -> None:
        """Call `read`, with the lock held, whenever there is something at `fd`."""
        with self._lock:
            self._turns[fd] = read, lock
            if self._poll is None:
                self._poll = select.epoll()
                work = threading.Thread(
                    target=self._work, args=(self._poll,), name="terminals", daemon=True
                )
                work.start()
            self._poll.register(fd, select.EPOLLIN)

    def remove(self, fd: int) -> None:
        """Not to be read any more, from when the lock has been held once."""
        with self._lock:
            if self._turns.pop(fd, None) and self._poll:
                self._poll.unregister(fd)

    def _work(self, poll: select.epoll) -> None:
        while True:
            for fd, _ in poll.poll():
                turn = self._turns.get(fd)
                if turn is None:
                    continue
                read, lock = turn
                with lock:
                    if self._turns.get(fd) is turn:
                        read()


DRAIN = Drain()
"""The one of this process."""
