"""The terminal of a person who takes the agent's place: raw, followed, and given back whole."""

import os
import signal
import stat
import termios
import threading
import tty
from contextlib import suppress
from types import FrameType
from typing import Any, Self

from sandbox.formats.controls import (
    INPUT_RESTORED,
    MAIN_SCREEN,
    OTHER_SCREEN,
    RESTORED,
    Screens,
)
from sandbox.runtime.ready import writable

ROWS, COLS = 40, 160
"""When nobody says how large it is."""
_ERRORS = 2
_LAST_SECONDS = 1.0


class Seat:
    """Use it in a `with`, in the main thread if signals are to be heard.

    Every key goes to the box, ^C too. While we are stopped, as by `kill -TSTP`, the terminal is as
    it was; when we go on, it is the box's again. It may go away at any time, even after the end of the
    `with`: then what we would print goes nowhere, and the rollout goes on to its verdict.
    """

    def __init__(self, keyboard: int, screen: int) -> None:
        self.keyboard, self.screen = keyboard, screen
        self.gone = False
        self.screens = Screens()
        self._mine = {fd for fd in (keyboard, screen, _ERRORS) if os.isatty(fd)}
        self.person = keyboard in self._mine
        """Is it one that types, or a file or pipe?"""
        self._before: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._inside = False
        self._size = (0, 0)

    def __enter__(self) -> Self:
        self._wake, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._out = _own_way(self.screen)
        self._inside = True
        self._size = self.window()
        try:
            if threading.current_thread() is threading.main_thread():
                self._listen()
            if self.person:
                self._before = termios.tcgetattr(self.keyboard)
                # What was typed ahead is for the box.
                tty.setraw(self.keyboard, termios.TCSANOW)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._inside = False
        try:
            self._give_back()
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            for fd in {self._wake, self._waker, self._out} - {self.screen}:
                os.close(fd)

    @property
    def wake(self) -> int:
        """Can be read when there is something new: see `resized` and `gone`."""
        return self._wake

    @property
    def out(self) -> int:
        """What to write to. It does not make us wait, where that can be had."""
        return self._out

    def window(self) -> tuple[int, int]:
        """Rows and columns. Environment variables say how it was; some terminals do not know."""
        for fd in (self.screen, self.keyboard):
            with suppress(OSError):
                cols, rows = os.get_terminal_size(fd)
                return rows or ROWS, cols or COLS
        return ROWS, COLS

    def resized(self) -> tuple[int, int] | None:
        """Its new size, once, after `wake`."""
        with suppress(BlockingIOError):
            os.read(self._wake, 4096)
        size = self.window()
        if size == self._size or self.gone:
            return None
        self._size = size
        return size

    def leave(self, *broken: int) -> None:
        """The person is gone: nothing can be shown or asked any more, nor written to `broken`."""
        if self.gone:
            return
        self.gone = True
        self._calm()
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd in {*self._mine, *broken}:
            os.dup2(nowhere, fd)
        os.close(nowhere)

    def _listen(self) -> None:
        def changed(number: int, frame: FrameType | None) -> None:
            del number, frame
            self._nudge()

        def stopped(number: int, frame: FrameType | None) -> None:
            del frame
            self._give_back()
            handler = signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)  # in here, until somebody lets us go on
            signal.signal(number, handler)
            self._take_again()  # nobody would, if we have no shell, and so we were not stopped

        def continued(number: int, frame: FrameType | None) -> None:
            del number, frame
            self._take_again()

        def hung_up(number: int, frame: FrameType | None) -> None:
            del number, frame
            self.leave()
            self._nudge()

        self._handlers[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, changed)
        if self.person and signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
            self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, stopped)
            self._handlers[signal.SIGCONT] = signal.signal(signal.SIGCONT, continued)
        if self._mine and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            signal.signal(signal.SIGHUP, hung_up)  # for good: judging comes after

    def _nudge(self) -> None:
        if self._inside:
            with suppress(BlockingIOError):
                os.write(self._waker, b"!")

    def _give_back(self) -> None:
        if not self.gone:
            self._say((MAIN_SCREEN if self.screens.other else "") + RESTORED + INPUT_RESTORED)
            self._calm()

    def _take_again(self) -> None:
        """A shell has set it to its liking meanwhile, and its size may be another."""
        if self.gone or not self._inside or self._before is None:
            return
        # In the background this stops us, and fails: the next to let us go on tries again.
        with suppress(termios.error):
            tty.setraw(self.keyboard, termios.TCSANOW)
        if self.screens.other:
            self._say(OTHER_SCREEN)
        self._nudge()

    def _say(self, codes: str) -> None:
        if self.screen in self._mine and os.environ.get("TERM", "dumb") != "dumb":
            with suppress(OSError):
                if writable(self._out, _LAST_SECONDS):
                    os.write(self._out, codes.encode())

    def _calm(self) -> None:
        """Keys are lines again. Tried even if it seems to be gone."""
        if self._before is not None:
            with suppress(termios.error):
                # What was meant for the box is not for the shell that we were called from.
                termios.tcflush(self.keyboard, termios.TCIFLUSH)
            with suppress(termios.error):
                termios.tcsetattr(self.keyboard, termios.TCSANOW, self._before)


def _own_way(screen: int) -> int:
    """The screen, opened anew: that writing does not wait must not be so for others who have it."""
    kind = os.fstat(screen).st_mode
    if os.isatty(screen) or stat.S_ISFIFO(kind):
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        with suppress(OSError):
            return os.open(f"/proc/self/fd/{screen}", flags)
    return screen
