"""Waiting for what a command does: its end, its need of input, silence, or the end of our time."""

from collections.abc import Callable
from enum import Enum, auto

from sandbox.model.step import Until
from sandbox.runtime.terminal import lines
from sandbox.runtime.terminal.exchange import Exchange
from sandbox.runtime.terminal.shell import OUTPUT_BYTES, Shell
from sandbox.runtime.terminal.watcher import Watcher

_QUIET_SECONDS = 0.3
_MARK_SECONDS, _STOPPED_SECONDS = 2.0, 0.3
_LAST_SECONDS, _TURN_SECONDS = 0.5, 0.02
CONTINUE = b"\x11"
"""^Q: an output that ^S has stopped goes on."""
_PATIENCE_SECONDS = 0.5
"""A shell that waits for its next command has reported the last; on a busy machine, a while ago."""


class Came(Enum):
    """What it was that came."""

    END = auto()
    DEATH = auto()
    """Of the shell; or it is as good as dead: it waits for a command and did not report the last."""
    FULL = auto()
    """It has printed more than anybody may."""
    TEXT = auto()
    INPUT = auto()
    """It waits for somebody to type."""
    QUIET = auto()
    TIME = auto()


class Follower:
    """Of one exchange in one shell."""

    def __init__(self, shell: Shell, exchange: Exchange, clock: Callable[[], float]) -> None:
        self._shell = shell
        self._exchange = exchange
        self._clock = clock
        self._asked = 0.0
        """When the mark at the end was asked for again."""
        self._waited = 0.0
        """Since when it has been waited for."""
        self._continued = False
        self._mended = False
        self._dead = False
        self._gone = 0.0
        """Since when the shell is known to be."""
        self._heard_out = False
        """All that it said before has come, or will not."""
        self._watcher = Watcher(shell.foreground, 0.0)

    @property
    def awaits_input(self) -> bool:
        """As it was seen last."""
        return self._watcher.seen == "input"

    def follow(
        self, until: float, want: Until, *, text: bytes = b"", enough: int = OUTPUT_BYTES
    ) -> Came:
        """Until that comes, or the clock says `until`; `enough`: bytes of output."""
        shell, exchange, clock = self._shell, self._exchange, self._clock
        self._watcher = watcher = Watcher(shell.foreground, clock())
        exchange.look_for(text)
        while True:
            now = clock()
            gone = self._dead or shell.ended
            if gone:
                self._hear_out(now)
            elif exchange.unmarked or exchange.unsure:
                self._ask_for_mark(now)
            elif exchange.report and not exchange.over:
                self._wait_for_mark(now)
            came = self._came(watcher, now, until, want, enough)
            if came is not None:
                return came
            if gone:
                shell.pump(_TURN_SECONDS)
            elif shell.pump(min(until, watcher.due) - now):
                watcher.heard(clock())
            elif (now := clock()) >= watcher.due:
                watcher.look(now)
                self._check_shell(watcher, now)

    def _came(
        self, watcher: Watcher, now: float, until: float, want: Until, enough: int
    ) -> Came | None:
        """The first that holds."""
        awaited, exchange, gone = want != "exit", self._exchange, self._gone
        signs = (
            (Came.END, exchange.over),
            (Came.DEATH, self._heard_out),
            (Came.FULL, exchange.total > enough),
            (Came.TEXT, exchange.found),
            (Came.INPUT, awaited and watcher.seen == "input"),
            (Came.QUIET, want == "quiet" and watcher.quiet(now) >= _QUIET_SECONDS),
            (Came.TIME, not (gone or now < until)),  # what is no number never is
        )
        return next((came for came, holds in signs if holds), None)

    def _hear_out(self, now: float) -> None:
        """A shell that is gone says no more; what it said comes by more ways than one.

        A command that it reported was done, whatever ended the shell then: the next action tells.
        """
        self._gone = self._gone or now
        reported = self._exchange.report is not None
        patience = _LAST_SECONDS if self._exchange.begun and not reported else _MARK_SECONDS
        if self._shell.silent or now - self._gone > patience:
            self._heard_out = True
            if reported:
                self._exchange.close()

    def _check_shell(self, watcher: Watcher, now: float) -> None:
        shell = self._shell
        if shell.exit_code() is not None:
            shell.read_rest()
            self._dead = True
        elif watcher.seen == "control" and watcher.quiet(now) >= _PATIENCE_SECONDS:
            self._dead = self._mended
            self._mended = True
            shell.send(lines.mend(self._exchange.nonce))
            watcher.heard(now)

    def _wait_for_mark(self, now: float) -> None:
        """It is on its way, unless bash cannot write it, for somebody has typed ^S."""
        if not self._waited:
            self._waited = now
        elif now - self._waited > _MARK_SECONDS:
            self._exchange.close()
        elif now - self._waited > _STOPPED_SECONDS and not self._continued:
            self._continued = True
            self._shell.type(CONTINUE, 0.0)

    def _ask_for_mark(self, now: float) -> None:
        exchange = self._exchange
        if not self._asked:
            self._asked = now
            if exchange.unsure:
                self._shell.send(lines.show_after(exchange.nonce, tty=exchange.tty))
            else:
                exchange.doubt()
                self._shell.send(lines.show_end(exchange.nonce, tty=exchange.tty))
        elif now - self._asked > _MARK_SECONDS:
            exchange.close()  # the terminal does not take it
