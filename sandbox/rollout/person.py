"""A person in the agent's place: their terminal, connected to a shell in the box."""

import hashlib
import os
import select
import sys
import time

from sandbox.formats.asciicast import Cast
from sandbox.rollout.run import Attempt
from sandbox.rollout.seat import Seat
from sandbox.runtime.base import Box, Pty

_SHELL = ["bash", "--norc", "--noprofile", "-i"]
_BLOCK = 1 << 16
_HELD_BYTES = 1 << 20
"""What is read ahead, in each direction, when the other side is slow."""
_WAIT_SECONDS, _STUCK_SECONDS = 0.2, 0.002
_LAST_SECONDS = 1.0
"""For what is still to be shown when the shell is over: what it left running may print for ever."""
_END = b"\x04"
_GIVEN_UP = select.POLLERR | select.POLLHUP | select.POLLNVAL


def sit_down(attempt: Attempt, box: Box) -> None:
    """Pass keys and output back and forth, raw, until the shell ends or the person is gone."""
    with (
        Seat(sys.stdin.fileno(), sys.stdout.fileno()) as seat,
        attempt.folder.events(attempt.watch.elapsed, attempt.watch.started) as events,
    ):
        rows, cols = seat.window()
        events.person("begin", rows=rows, cols=cols)
        with attempt.recorded(rows, cols) as cast:
            cast.marker("begin")
            terminal = box.open_pty(_SHELL, rows=rows, cols=cols, cwd=attempt.task.workdir)
            between = Between(terminal, seat, cast)
            try:
                between.pass_through()
            finally:
                terminal.close()
                cast.marker("end")
                events.person(
                    "end",
                    exit_code=between.exit_code,
                    bytes=between.total,
                    sha256=between.digest.hexdigest() if between.total else "",
                )


class Between:
    """What is on its way from the person to the box and back. Nobody waits for anybody."""

    def __init__(self, terminal: Pty, seat: Seat, cast: Cast) -> None:
        self._terminal, self._seat, self._cast = terminal, seat, cast
        self._master = terminal.fileno()
        self._to_box, self._to_person = bytearray(), bytearray()
        self._prompted = False  # the shell's first word says that it is ready for keys
        self._typing = True
        self._begun = False
        """Is a line begun that needs its end?"""
        self._printing = True
        self._stuck_until = 0.0
        self._said_end = 0.0
        self._ended_at: float | None = None
        self._last_output = time.monotonic()
        self.exit_code: int | None = None
        self.total = 0
        self.digest = hashlib.sha256()

    def pass_through(self) -> None:
        os.set_blocking(self._master, False)
        looked = 0.0
        while not self._seat.gone:
            ready = self._wait()
            now = time.monotonic()
            if self._seat.wake in ready and (size := self._seat.resized()):
                self._terminal.resize(*size)
                self._cast.resized(*size)
            if self._master in ready:
                self._exchange(ready[self._master], now)
            if ready.get(self._seat.keyboard):
                self._listen(now)
            if self._to_person and ready.get(self._seat.out):
                self._show()
            if now - looked >= _WAIT_SECONDS or not self._printing:
                looked = now
                if self._is_over(now):
                    return
            self._end_again(now)

    def _wait(self) -> dict[int, int]:
        poll = select.poll()
        poll.register(self._seat.wake, select.POLLIN)
        now = time.monotonic()
        seconds = _WAIT_SECONDS
        wanted = 0
        if self._printing and len(self._to_person) < _HELD_BYTES:
            wanted |= select.POLLIN
        if self._to_box:
            if now < self._stuck_until:
                seconds = self._stuck_until - now
            else:
                wanted |= select.POLLOUT
        if self._printing and wanted:
            poll.register(self._master, wanted)
        if self._prompted and self._typing and len(self._to_box) < _HELD_BYTES:
            poll.register(self._seat.keyboard, select.POLLIN)
        if self._to_person:
            poll.register(self._seat.out, select.POLLOUT)
        return dict(poll.poll(max(1, int(seconds * 1000))))

    def _exchange(self, ready: int, now: float) -> None:
        if ready & (select.POLLIN | _GIVEN_UP) and len(self._to_person) < _HELD_BYTES:
            try:
                shown = os.read(self._master, _BLOCK)
            except BlockingIOError:
                pass
            except OSError:  # a terminal whose other end is closed
                self._printing = False
            else:
                self._printing = bool(shown)
                self._take(shown, now)
        if self._to_box and self._printing and ready & (select.POLLOUT | _GIVEN_UP):
            try:
                del self._to_box[: os.write(self._master, self._to_box[:_BLOCK])]
            except BlockingIOError:
                self._stuck_until = now + _STUCK_SECONDS
            except OSError:
                self._to_box.clear()  # reading will tell

    def _take(self, shown: bytes, now: float) -> None:
        if shown:
            self._prompted = True
            self._last_output = now
            self.total += len(shown)
            self.digest.update(shown)
            self._cast.output(shown)
            self._seat.screens.see(shown)
            self._to_person += shown

    def _listen(self, now: float) -> None:
        try:
            typed = os.read(self._seat.keyboard, _BLOCK)
        except BlockingIOError:
            return
        except OSError:
            typed = b""
        if typed:
            self._cast.afresh()
            self._begun = typed[-1:] not in b"\r\n"
            self._to_box += typed
        elif self._seat.person:  # hung up: in raw mode there is no other end
            self._seat.leave()
        else:
            self._typing = False
            self._said_end = now
            # A last line needs no end in a file; and amid a line the shell would not hear of it.
            self._to_box += b"\n" + _END if self._begun else _END

    def _show(self) -> None:
        try:
            del self._to_person[: os.write(self._seat.out, self._to_person[:_BLOCK])]
        except BlockingIOError:
            return
        except OSError:
            self._seat.leave(self._seat.screen)

    def _is_over(self, now: float) -> bool:
        """The shell has ended, and what was printed by then has been shown."""
        if self._ended_at is None:
            self.exit_code = self._terminal.wait(0 if self._printing else _LAST_SECONDS)
            if self.exit_code is None and self._printing:
                return False
            self._ended_at = now
        if not self._printing:
            return not self._to_person
        quiet = now - self._last_output >= _WAIT_SECONDS and not self._to_person
        if quiet or now - self._ended_at >= _LAST_SECONDS:
            self._printing = False  # the rest is of programs that were left running
        return not self._printing and not self._to_person

    def _end_again(self, now: float) -> None:
        """When input has ended: what took the first ^D may have been a program in the shell."""
        if not self._typing and not self._to_box and now - self._said_end >= 1:
            self._said_end = now
            self._to_box += _END
