"""A terminal in a box, and the pipes beside it: the host's ends."""

import fcntl
import os
import select
import signal
import socket
import struct
import termios
import time
from contextlib import ExitStack, suppress
from typing import cast

from sandbox.runtime import foreground
from sandbox.runtime.base import Doing, Foreground
from sandbox.runtime.embedded import wire
from sandbox.runtime.embedded.streams import status
from sandbox.runtime.ready import readable, writable

_TIOCGSID = 0x5429
_BLOCK = 1 << 18
_PIPE_BYTES = 1 << 18
"""Of what a command prints: fewer, longer reads."""


class EmbeddedPty:
    def __init__(
        self, master: int, reply: socket.socket, wires: "EmbeddedWires | None" = None
    ) -> None:
        self._master = master
        self._reply: socket.socket | None = reply
        self.wires = wires
        self._exit: int | None = None

    def fileno(self) -> int:
        return self._master

    def foreground(self) -> Foreground | None:
        try:
            leader = struct.unpack("i", fcntl.ioctl(self._master, _TIOCGSID, b"\0" * 4))[0]
        except OSError:  # nobody has it any more
            return None
        found = foreground.look(leader, self.wires.control if self.wires else "none")
        if found is None:
            return None
        doing, command, trace = found
        return Foreground(doing=cast("Doing", doing), command=command, trace=trace)

    def resize(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def wait(self, seconds: float) -> int | None:
        if self._reply is None:
            return self._exit
        if not readable([self._reply], seconds):
            return None
        message, _ = wire.receive(self._reply)
        self._exit = status(message["exit"]) if message else 128 + signal.SIGKILL
        self._reply.close()
        self._reply = None
        return self._exit

    def close(self) -> None:
        if self._master >= 0:
            os.close(self._master)
            self._master = -1
        if self._reply:
            self._reply.close()
            self._reply = None
        if self.wires:
            self.wires.close()


class EmbeddedWires:
    lossless = True

    def __init__(self, owner: tuple[int, int]) -> None:
        """`owner`: who opens /dev/stdout in the box, which is a pipe of ours, opens it anew."""
        with ExitStack() as undo:
            pipes = [_pipe(undo) for _ in range(3)]
            theirs_control, self._control = pipes[0]
            self._output, theirs_output = pipes[1]
            self._status, theirs_status = pipes[2]
            self.theirs = [theirs_control, theirs_output, theirs_status]
            self.control = f"pipe:[{os.fstat(theirs_control).st_ino}]"
            """What the box's /proc says its descriptor is."""
            for fd in self.theirs:
                os.fchown(fd, *owner)
            for fd in (self._control, self._output, self._status):
                os.set_blocking(fd, False)
            undo.pop_all()
        with suppress(OSError):  # a user who has too many
            fcntl.fcntl(self._output, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def started(self) -> None:
        """The program has its ends."""
        while self.theirs:
            os.close(self.theirs.pop())

    def filenos(self) -> tuple[int, ...]:
        return self._status, self._output, self._control

    def send(self, data: bytes, seconds: float) -> bool:
        until = time.monotonic() + seconds
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._control, left) :]
            except BlockingIOError:
                if not writable(self._control, until - time.monotonic()):
                    return False
            except OSError:  # nobody reads it any more
                return False
        return True

    def receive(self) -> tuple[bytes, bytes]:
        if self._control < 0:
            raise EOFError
        said, printed = _read(self._status), _read(self._output)
        if not said and not printed and self._is_over():
            raise EOFError
        return printed, said

    def _is_over(self) -> bool:
        poll = select.poll()
        poll.register(self._control, 0)
        return bool(poll.poll(0))  # an error: it has no reader

    def close(self) -> None:
        self.started()
        for fd in (self._control, self._output, self._status):
            if fd >= 0:
                os.close(fd)
        self._control = self._output = self._status = -1


def _pipe(undo: ExitStack) -> tuple[int, int]:
    ends = os.pipe2(os.O_CLOEXEC)
    for fd in ends:
        undo.callback(os.close, fd)
    return ends


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _BLOCK)
    except BlockingIOError:
        return b""
