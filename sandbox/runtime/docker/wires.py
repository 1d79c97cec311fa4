"""Three pipes beside a terminal: the streams of a second program, which only holds them open.

The program on the terminal opens them by the holder's folder in /proc; then the holder lets go of
them and stands still. The engine closes its end when the holder has ended and nobody has the pipes
any more, or soon after; so the box's server kills it when the program has ended.
"""

import contextlib
import select
import socket
import time
from typing import TYPE_CHECKING

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import CONTROL, OUTPUT, STATUS
from sandbox.runtime.docker.server import EASIER_TO_KILL
from sandbox.runtime.docker.wire import FRAME_HEADER, STDERR

if TYPE_CHECKING:
    from sandbox.runtime.docker.address import Socket

HOLD = (
    f"{{ echo {EASIER_TO_KILL} > /proc/self/oom_score_adj; printf wires > /proc/self/comm; }} "
    "2> /dev/null; trap '' HUP INT TERM; trap 'exec <&- >&- 2>&-' USR1; "
    "echo $$; while kill -STOP $$; do :; done"
)
"""Run by sh. A stopped process costs nothing, takes no signal that is meant for others, and does
not bear the name of a program that somebody would kill by name."""
OPEN = (
    f"read -r h && exec {CONTROL}< /proc/$h/fd/0 {OUTPUT}> /proc/$h/fd/1 {STATUS}> /proc/$h/fd/2"
    " && kill -USR1 $h && { while [ -e /proc/$h/fd/0 ]; do kill -CONT $h; done; } 2> /dev/null"
    f' && unset h && echo "+$(readlink /proc/$$/fd/{CONTROL})"'
)
"""Run by bash on the terminal, where the holder's process id is typed. A signal that is sent just
before the holder stops would wait for ever: so it is woken until it has let go."""
OPENED = b"+"
"""Begins the line that says so, with the name of the pipe that is CONTROL."""
BLOCK = 1 << 18


class DockerWires:
    """Bytes that are received are moved twice: out of the socket, and past the frames' headers."""

    lossless = False
    """The engine may end the stream of a program that ends before it has read all of it."""

    def __init__(self, sock: "Socket") -> None:
        sock.setblocking(False)  # noqa: FBT003
        self._sock: Socket | None = sock
        self._sorter = Sorter()

    def filenos(self) -> tuple[int, ...]:
        return () if self._sock is None else (self._sock.fileno(),)

    def send(self, data: bytes, seconds: float) -> bool:
        """That the program is gone is known when the engine has closed the connection."""
        if self._sock is None:
            return False
        deadline = time.monotonic() + seconds
        view = memoryview(data)
        poll = select.poll()
        try:
            poll.register(self._sock, select.POLLOUT)
            while view:
                try:
                    view = view[self._sock.send(view) :]
                except BlockingIOError:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        return False
                    poll.poll(left * 1000)
        except (OSError, ValueError, AttributeError):  # it is gone, or closed meanwhile
            return False
        return True

    def receive(self) -> tuple[bytes, bytes]:
        if self._sock is None:
            raise EOFError
        try:
            block = self._sock.recv(BLOCK)
        except BlockingIOError:
            return b"", b""
        except OSError as e:
            raise EOFError from e
        if not block:
            raise EOFError
        return self._sorter.feed(block)

    def first_line(self, seconds: float) -> bytes:
        """What comes until there is a line of output; all of it when there is none."""
        deadline = time.monotonic() + seconds
        seen = said = b""
        poll = select.poll()
        poll.register(self.filenos()[0], select.POLLIN)
        try:
            while not seen.endswith(b"\n") and (left := deadline - time.monotonic()) > 0:
                poll.poll(left * 1000)
                output, status = self.receive()
                seen, said = seen + output, said + status
        except EOFError:
            pass
        return seen if seen.endswith(b"\n") else seen + said

    def close(self) -> None:
        if self._sock is None:
            return
        sock, self._sock = self._sock, None
        with contextlib.suppress(OSError):  # whoever polls it is woken by that
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()


class Sorter:
    """Sorts the engine's frames into what came by OUTPUT and by STATUS; keeps no content."""

    def __init__(self) -> None:
        self._header = b""
        """The part of it that has come; whole while there is more of its frame to come."""
        self._left = 0

    def feed(self, block: bytes) -> tuple[bytes, bytes]:
        output: list[memoryview] = []
        status: list[memoryview] = []
        view, at, size = memoryview(block), 0, len(block)
        while at < size:
            if self._left == 0:
                missing = FRAME_HEADER - len(self._header) % FRAME_HEADER
                begun = self._header if missing < FRAME_HEADER else b""
                self._header = begun + block[at : at + missing]
                at += missing
                if len(self._header) == FRAME_HEADER:
                    self._left = int.from_bytes(self._header[4:], "big")
                continue
            part = view[at : at + self._left]
            at += len(part)
            self._left -= len(part)
            (status if self._header[0] == STDERR else output).append(part)
        return b"".join(output), b"".join(status)


def pid_of(holder: DockerWires, seconds: float) -> int:
    """The id of the holder's process, in the box: the one line that it prints."""
    line = holder.first_line(seconds).strip()
    if not line.isdigit():
        raise RuntimeFault(f"cannot open a terminal: {line.decode(errors='replace')}")
    return int(line)
