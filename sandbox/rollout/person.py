"""A person in the agent's place: their terminal, connected to a shell in the box."""

import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from sandbox.runtime.base import Box, Pty
from sandbox.runtime.ready import readable

_BLOCK = 1 << 16
_WAIT_SECONDS = 0.2


def sit_down(box: Box, workdir: str) -> None:
    """Pass keys and output back and forth, raw, until the shell ends or the input does."""
    cols, rows = shutil.get_terminal_size((160, 40))
    shell = ["bash", "--norc", "--noprofile", "-i"]
    terminal = box.open_pty(shell, rows=rows, cols=cols, cwd=workdir)
    try:
        with _raw_input(terminal):
            _pass_through(terminal)
    finally:
        terminal.close()


def _pass_through(terminal: Pty) -> None:
    master, keyboard = terminal.fileno(), sys.stdin.fileno()
    listening = [master]  # the shell's first word says that it is ready for keys
    prompted = False
    while True:
        ready = readable(listening, _WAIT_SECONDS)
        if master in ready:
            shown = _read(master)
            if not shown:
                return
            os.write(sys.stdout.fileno(), shown)
            if not prompted:
                prompted = True
                listening.append(keyboard)
        elif terminal.wait(0) is not None:
            return
        if keyboard in ready:
            typed = _read(keyboard)
            if not typed:  # end of a file or pipe: say so to the shell, then only listen
                listening.remove(keyboard)
                typed = b"\x04"
            os.write(master, typed)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _BLOCK)
    except OSError:  # a terminal whose other end is closed
        return b""


@contextmanager
def _raw_input(terminal: Pty) -> Iterator[None]:
    """Every key goes to the box, ^C too, and the window's size follows ours."""
    if not sys.stdin.isatty():
        yield
        return

    def resized(number: int, frame: FrameType | None) -> None:
        del number, frame
        cols, rows = shutil.get_terminal_size()
        terminal.resize(rows, cols)

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    handler = signal.signal(signal.SIGWINCH, resized)
    tty.setraw(fd, termios.TCSADRAIN)  # what was typed ahead is for the box
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, handler)
