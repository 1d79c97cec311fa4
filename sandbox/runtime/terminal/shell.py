"""One bash in a box: its terminal, the pipes beside it, and what they bring."""

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from pexpect import EOF
from pexpect.fdpexpect import fdspawn
from pexpect.spawnbase import SpawnBase

from sandbox.errors import RuntimeFault, TerminalFault
from sandbox.runtime.base import Box, Foreground, Pty, Wires
from sandbox.runtime.ready import writable
from sandbox.runtime.terminal import lines
from sandbox.runtime.terminal.drain import DRAIN
from sandbox.runtime.terminal.exchange import Exchange, without_marks
from sandbox.runtime.terminal.sink import HeadTail
from sandbox.runtime.terminal.tape import Tape

_READ_BYTES = 1 << 18
_START_SECONDS, _SEND_SECONDS = 30.0, 30.0
_ASIDE_BYTES = 8192
_DRAWN_BYTES = 1 << 17
_TYPE_BYTES, _TYPE_SECONDS = 1024, 0.02
_MOST_SECONDS = 3600.0
_TURNS = 64
OUTPUT_BYTES = 1 << 30
"""Of one command. What prints more is ended, or waits until somebody ends it."""


class Line(fdspawn):  # type: ignore[type-arg]  # the class is not generic when it runs
    """The terminal, for pexpect. Who reads it has waited until there is something."""

    def read_nonblocking(self, size: int = 1, timeout: float | None = -1) -> bytes:
        del timeout
        data: bytes = SpawnBase.read_nonblocking(self, size)
        return data


def _no_room(make: Callable[[], select.epoll]) -> select.epoll:
    try:
        return make()
    except OSError as e:
        raise RuntimeFault(f"cannot read from a terminal: {e}") from e


class Shell:
    """Send it commands; `pump` reads what comes. Between actions it is drained by a thread."""

    def __init__(self, box: Box, cwd: str, *, rows: int, cols: int, tape: Tape) -> None:
        """Raises RuntimeFault, or TerminalFault when there is no bash to start."""
        self.exchange: Exchange | None = None
        self.aside = HeadTail(_ASIDE_BYTES)
        """What others than the command have printed since this was last taken."""
        self.drawn = bytearray()
        """What was printed on the terminal last: the screen is drawn from it."""
        self.pid = 0
        """In the box."""
        self.cwd = cwd
        self.ended = False
        """The terminal has no other end any more, or bash does not take commands from us."""
        self._tape = tape
        self._lock = threading.Lock()
        self._said = b""
        self._failed: Exception | None = None
        with ExitStack() as undo:
            self._pty: Pty = box.open_pty(
                ["bash", "-c", lines.BOOT], rows=rows, cols=cols, cwd=cwd, wires=True
            )
            undo.callback(self._pty.close)
            assert self._pty.wires  # noqa: S101 - for the type checker: they were asked for
            self._wires: Wires = self._pty.wires
            fd = self._pty.fileno()
            os.set_blocking(fd, False)
            self._line = Line(fd, maxread=_READ_BYTES, timeout=None)
            self._poll = undo.enter_context(_no_room(select.epoll))
            self._watched = [fd, *self._wires.filenos()]
            self._open = set(self._watched)
            for number in self._watched:
                self._poll.register(number, select.EPOLLIN)
            self._greet()
            undo.pop_all()

    def send(self, text: bytes) -> bool:
        """To bash's own input. False: it does not take it."""
        return self._wires.send(text, _SEND_SECONDS)

    def type(self, data: bytes, seconds: float) -> int:
        """On the terminal, as fast as it is taken; what is printed meanwhile is read.

        Returns how many bytes were taken in time.
        """
        fd, left, until = self._pty.fileno(), memoryview(data), time.monotonic() + seconds
        while left and not self.ended:
            try:
                left = left[os.write(fd, left[:_TYPE_BYTES]) :]
            except BlockingIOError:
                if not time.monotonic() < until or self._full:
                    break
                if not writable(fd, 0):
                    self.pump(_TYPE_SECONDS)
            except OSError:
                break
        typed = len(data) - len(left)
        self._tape.typed(data[:typed])
        return typed

    def pump(self, seconds: float) -> bool:
        """Read what is there, or comes within `seconds`. Was there anything?"""
        ready = self._poll.poll(min(max(seconds, 0.0), _MOST_SECONDS))
        if not ready:
            return False
        with self._lock:
            return self._read([fd for fd, _ in ready])

    def _read(self, ready: list[int]) -> bool:
        terminal = self._watched[0]
        printed, said = self._from_wires() if ready != [terminal] else (b"", b"")
        shown = self._from_terminal() if terminal in ready else b""
        exchange = self.exchange
        if exchange is None:
            self.put_aside(without_marks(shown))
            self.put_aside(without_marks(printed))
        else:
            if said:
                exchange.from_status(said)
            if printed:
                exchange.from_output(printed)
            if shown:
                exchange.from_terminal(shown)
        self._said = said
        return bool(printed or shown or said)

    def drain(self, *, on: bool) -> None:
        """Have a thread read while nobody else does."""
        if not on:
            DRAIN.remove(self._poll.fileno())
            with self._lock:
                pass  # it has read to the end of its turn
            if self._failed:
                raise self._failed
        elif not self.ended:
            DRAIN.add(self._poll.fileno(), self._read_by_thread, self._lock)

    def foreground(self) -> Foreground | None:
        return self._pty.foreground()

    def exit_code(self, seconds: float = 0.0) -> int | None:
        """None while it lives."""
        return self._pty.wait(seconds)

    def resize(self, rows: int, cols: int) -> None:
        self._tape.resized(rows, cols)
        self._pty.resize(rows, cols)

    def take_aside(self) -> str:
        aside, self.aside = self.aside, HeadTail(_ASIDE_BYTES)
        return aside.text()

    def put_aside(self, data: bytes) -> None:
        """Output of others, or of programs that write past the pipe."""
        if data:
            self.aside.write(data)
            self._draw(data)

    def printed(self, data: bytes) -> None:
        """Output of the command."""
        if self.exchange is None or self.exchange.tty:
            self._draw(data)
        else:
            self._tape.output(data.replace(b"\n", b"\r\n"))

    def read_rest(self, pause: float = 0.0) -> None:
        """What is there now, but not for ever: others may go on printing."""
        for _ in range(_TURNS):
            if not self.pump(pause):
                return

    def close(self) -> None:
        self._failed = None
        self.drain(on=False)
        self._poll.close()
        self._pty.close()

    def _greet(self) -> None:
        nonce = lines.fresh_nonce()
        until = _START_SECONDS
        said = b""
        self.send(lines.setup(nonce))
        while not said.endswith(b"\n"):
            if not self.pump(until) or self.ended:
                words = self.take_aside().strip() or "no answer"
                raise TerminalFault(f"the shell did not start: {words}")
            said += self._said
        found = lines.parse_setup(said[:-1], nonce)
        if found is None:
            raise TerminalFault(f"the shell did not start: it said {said[:200]!r}")
        self.pid, self.cwd = found

    def _from_wires(self) -> tuple[bytes, bytes]:
        try:
            return self._wires.receive()
        except EOFError:
            self.ended = True
            for fd in self._watched[1:]:
                self._forget(fd)
            return b"", b""

    def _from_terminal(self) -> bytes:
        try:
            return self._line.read_nonblocking(_READ_BYTES)
        except BlockingIOError:
            return b""
        except (EOF, OSError):
            self.ended = True
            self._forget(self._watched[0])
            return b""

    @property
    def silent(self) -> bool:
        """Nothing can come any more, from anywhere."""
        return not self._open

    @property
    def heard_all(self) -> bool:
        """Nothing can come any more, and nothing that was said is lost."""
        return self.silent and self._wires.lossless

    def _forget(self, fd: int) -> None:
        self._open.discard(fd)
        with suppress(OSError, ValueError):
            self._poll.unregister(fd)

    def _drained(self) -> None:
        self._read([fd for fd, _ in self._poll.poll(0)])
        if self.ended or self._full:
            DRAIN.remove(self._poll.fileno())

    @property
    def _full(self) -> bool:
        return self.exchange is not None and self.exchange.total > OUTPUT_BYTES

    def _read_by_thread(self) -> None:
        """Whatever goes wrong here is this terminal's trouble, and told with its next action."""
        try:
            self._drained()
        except Exception as e:  # noqa: BLE001 - the thread's boundary: all terminals share it
            self._failed = e
            DRAIN.remove(self._poll.fileno())

    def _draw(self, data: bytes) -> None:
        self._tape.output(data)
        self.drawn += data[-_DRAWN_BYTES:]
        if len(self.drawn) > 2 * _DRAWN_BYTES:
            del self.drawn[:-_DRAWN_BYTES]
