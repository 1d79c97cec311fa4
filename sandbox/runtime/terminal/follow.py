"""Waiting for what a command does: its end, its need of input, silence, or the end of our time."""

from collections.abc import Callable
from enum import Enum, auto

from sandbox.model.step import Until
from sandbox.runtime.terminal import lines
from sandbox.runtime.terminal.exchange import Exchange
from sandbox.runtime.terminal.shell import OUTPUT_BYTES, Shell
from sandbox.runtime.terminal.watcher import Watcher

_QUIET_SECONDS = 0.3
_MARK_SECONDS = 2.0
_PATIENCE_SECONDS = 0.5
"""A shell that waits for its next command has reported the last one; on a busy machine, a while ago."""


class Came(Enum):
    """What it was that came."""

    END = auto()
    INPUT = auto()
    """It waits for somebody to type."""
    QUIET = auto()
    TEXT = auto()
    TIME = auto()
    FULL = auto()
    """It has printed more than anybody may."""
    DEATH = auto()
    """Of the shell; or it is as good as dead: it waits for a command and did not report the last."""


class Follower:
    """Of one exchange in one shell."""

    def __init__(self, shell: Shell, exchange: Exchange, clock: Callable[[], float]) -> None:
        self._shell = shell
        self._exchange = exchange
        self._clock = clock
        self._asked = 0.0
        """When the mark at the end was asked for again."""
        self._mended = False

    def follow(
        self, until: float, want: Until, *, text: bytes = b"", enough: int = OUTPUT_BYTES
    ) -> Came:
        """Until that comes, or the clock says `until`; `enough`: bytes of output."""
        shell, exchange, clock = self._shell, self._exchange, self._clock
        watcher = Watcher(shell.foreground, clock())
        exchange.look_for(text)
        while True:
            now = clock()
            if (came := self._came(now)) is not None:
                return came
            if exchange.sink.total > enough:
                return Came.FULL
            if exchange.found:
                return Came.TEXT
            if want == "quiet" and watcher.quiet(now) >= _QUIET_SECONDS:
                return Came.INPUT if watcher.seen == "input" else Came.QUIET
            if want != "exit" and watcher.seen == "input":
                return Came.INPUT
            if not now < until:  # what is no number never is
                return Came.INPUT if watcher.seen == "input" and want != "exit" else Came.TIME
            if shell.pump(min(until, watcher.due) - now):
                watcher.heard(clock())
            elif (now := clock()) >= watcher.due:
                watcher.look(now)
                if shell.exit_code() is not None:
                    shell.read_rest()
                    return Came.END if exchange.over else Came.DEATH
                if watcher.seen == "control" and watcher.quiet(now) >= _PATIENCE_SECONDS:
                    if self._mended:
                        return Came.DEATH
                    self._mended = True
                    shell.send(lines.mend(exchange.nonce))
                    watcher.heard(now)

    def _came(self, now: float) -> Came | None:
        exchange = self._exchange
        if exchange.unmarked:
            if not self._asked:
                self._asked = now
                exchange.begin()
                self._shell.send(lines.show_end(exchange.nonce, tty=exchange.tty))
            elif now - self._asked > _MARK_SECONDS:
                exchange.close()  # the terminal does not take it
        if exchange.over:
            return Came.END
        return Came.DEATH if self._shell.ended else None
