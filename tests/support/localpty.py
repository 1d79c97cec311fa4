"""A terminal of this machine with a program in it, as a runtime's boxes have them."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sandbox.runtime.base import Foreground, Wires


class LocalPty:
    def __init__(self, argv: Sequence[str], folder: Path, rows: int = 40, cols: int = 160) -> None:
        self._master, slave = pty.openpty()
        self.resize(rows, cols)
        self._process = subprocess.Popen(
            ["setsid", "-c", *argv],
            cwd=folder,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={"PATH": os.environ["PATH"], "TERM": "xterm", "HOME": str(folder)},
        )
        os.close(slave)
        self._closed = False

    @property
    def wires(self) -> Wires | None:
        return None

    def fileno(self) -> int:
        return self._master

    def foreground(self) -> Foreground | None:
        return None

    def resize(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def wait(self, seconds: float) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        os.close(self._master)
        until = time.monotonic() + 5
        while self._process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
