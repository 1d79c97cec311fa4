"""When to look at what runs, and what to believe of it."""

from collections.abc import Callable

from sandbox.runtime.base import Doing, Foreground

_FIRST_SECONDS, _MOST_SECONDS = 0.03, 1.0


class Watcher:
    """Looks while nothing is printed: soon at first, then less and less often."""

    def __init__(self, look: Callable[[], Foreground | None], now: float) -> None:
        self._look = look
        self._pause = _FIRST_SECONDS
        self._last: Foreground | None = None
        self._since = now
        """Nothing was printed since."""
        self.due = now + _FIRST_SECONDS
        self.seen: Doing = "other"
        """What two looks in a row have found the same."""

    def heard(self, now: float) -> None:
        """Something was printed."""
        self._since, self.seen, self._last = now, "other", None
        self._pause = _FIRST_SECONDS
        self.due = now + self._pause

    def quiet(self, now: float) -> float:
        """For how long nothing was printed, in seconds."""
        return now - self._since

    def look(self, now: float) -> None:
        found = self._look()
        same = found is not None and found == self._last
        self.seen = found.doing if found and same else "other"
        # A change is looked at again soon; what goes on as it was, less and less often.
        if found and found.doing != "other" and not same:
            self._pause = _FIRST_SECONDS
        else:
            self._pause = min(self._pause * 1.5, _MOST_SECONDS)
        self._last = found
        self.due = now + self._pause
