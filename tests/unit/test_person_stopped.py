"""A person's terminal while we are stopped and afterwards: real terminal, real shell with jobs."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox.runtime.ready import readable
from tests.support.localpty import LocalPty

SEAT = """
import os, select
from sandbox.rollout.seat import Seat
with Seat(0, 1) as seat:
    seat.screens.see(b"\\x1b[?1049h")
    os.write(1, b"pid=%d;" % os.getpid())
    poll = select.poll()
    for fd in (0, seat.wake):
        poll.register(fd, select.POLLIN)
    while not seat.gone:
        for fd, _ in poll.poll():
            if fd == seat.wake:
                os.write(1, f"size={seat.resized()};".encode())
            elif fd == 0 and (key := os.read(0, 100)):
                os.write(1, f"key={key!r};".encode())
                if key == b"q":
                    raise SystemExit
"""


class Shell:
    """With us as a job."""

    def __init__(self, folder: Path) -> None:
        script = folder / "seat.py"
        script.write_text(SEAT)
        self.terminal = LocalPty(["bash", "--norc", "--noprofile", "-i"], folder, 24, 80)
        self.seen = b""
        self.types(f"PYTHONPATH={Path.cwd()} {sys.executable} {script}\r")
        self.until("pid=")
        self.pid = int(self.until(";"))

    def types(self, text: str) -> None:
        os.write(self.terminal.fileno(), text.encode())

    def until(self, text: str) -> str:
        """What came before it."""
        end = time.monotonic() + 30
        while text.encode() not in self.seen:
            assert time.monotonic() < end, self.seen
            if readable([self.terminal.fileno()], 0.1):
                self.seen += os.read(self.terminal.fileno(), 1 << 16)
        before, _, self.seen = self.seen.partition(text.encode())
        return before.decode("utf-8", "replace")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.terminal.close()
    with suppress(ProcessLookupError):
        os.kill(made.pid, signal.SIGKILL)


def test_stopped_it_gives_the_terminal_back_and_takes_it_again(shell: Shell):
    os.kill(shell.pid, signal.SIGTSTP)
    assert "\x1b[?1049l" in shell.until("Stopped")
    shell.terminal.resize(50, 100)
    shell.types("echo a''live; fg\r")
    shell.until("alive")
    assert "\x1b[?1049h" in shell.until("size=(50, 100);")
    shell.types("\x03")
    shell.until(r"key=b'\x03';")
    # And once more.
    os.kill(shell.pid, signal.SIGTSTP)
    shell.until("Stopped")
    shell.types("fg\r")
    shell.until("size=None;")
    shell.types("\x03")
    shell.until(r"key=b'\x03';")
    shell.types("q")
    shell.until("\x1b[?2004l")  # it is given back
    shell.until("\x1b[?2004h")  # and bash has it
    shell.types("echo do''ne\r")
    shell.until("done")


def test_while_it_is_stopped_what_is_typed_is_for_the_shell_as_lines(shell: Shell):
    os.kill(shell.pid, signal.SIGTSTP)
    shell.until("Stopped")
    shell.types("stty -a < /dev/tty; echo all-o''f-them\r")
    modes = shell.until("all-of-them").split()
    assert {"icanon", "isig", "echo"} <= {mode.rstrip(";") for mode in modes}


def test_stopped_in_a_way_that_it_cannot_hear_it_takes_the_terminal_again(shell: Shell):
    os.kill(shell.pid, signal.SIGSTOP)
    shell.until("Stopped")
    shell.types("stty sane; fg\r")
    shell.until("size=None;")
    shell.types("\x03")
    shell.until(r"key=b'\x03';")
    shell.types("q")


def test_in_the_background_it_waits_for_its_turn(shell: Shell):
    os.kill(shell.pid, signal.SIGTSTP)
    shell.until("Stopped")
    shell.types("bg; sleep 0.3; jobs; echo o''k; fg\r")
    shell.until("ok")
    shell.until("size=None;")
    shell.types("\x03")
    shell.until(r"key=b'\x03';")
    shell.types("q")
