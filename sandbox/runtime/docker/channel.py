"""Our end of the connection to a container's first process: commands in, output and ends out.

No thread of its own: of those that wait for a program, one reads for all, and hands over when
what it waits for is there. What comes from the box is bounded and checked like anybody's.
"""

import contextlib
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sandbox.errors import RuntimeFault
from sandbox.runtime.docker import server
from sandbox.runtime.docker.main import PLAIN
from sandbox.runtime.docker.wire import FRAME_HEADER

BLOCK = 1 << 17
INPUT_BLOCK = 1 << 16
READER_MS = 50
CLOSE_SECONDS = 5.0
MOST_FRAME = 1 << 20
STDOUT = 1


@dataclass(eq=False, slots=True)
class Call:
    """Something that the box was asked for, and what has come of it."""

    number: int
    keep: int = 0
    give: memoryview = field(default_factory=lambda: memoryview(b""))
    """Input that is still to be sent."""
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    kind: int = 0
    """Of the frame that ended it."""
    answer: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    user: tuple[int, int]
    input: bytes
    output_bytes: int


class Channel:
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._changed = threading.Condition()
        self._out = bytearray()
        """What is still to be sent."""
        self._reading = False
        self._numbers = 0
        self._calls: dict[int, Call] = {}
        self._frames = _Frames()
        self.broken = False
        """The box, or the way to it, is gone."""

    def ready(self, seconds: float) -> bool:
        """Wait for the first sign of life. False: it is no server, use the engine's own exec.

        Raises RuntimeFault when there is none in time.
        """
        call = Call(0)
        with self._changed:
            self._calls[0] = call
        if self.wait(call, time.monotonic() + seconds):
            return True
        if self._frames.plain:
            return False
        raise RuntimeFault("the box's first process does not answer")

    def run(self, command: Command) -> Call:
        call = self._call(command.output_bytes, memoryview(command.input))
        words = [
            str(command.output_bytes),
            *map(str, command.user),
            command.cwd,
            str(int(bool(command.input))),
            str(len(command.argv)),
            *command.argv,
            *(f"{name}={value}" for name, value in command.env.items()),
        ]
        if any("\0" in word for word in words):
            raise RuntimeFault("an argument with a zero byte cannot be passed on", retry=False)
        request = "\0".join(words).encode("utf-8", "surrogateescape")
        if len(request) > server.MOST_FRAME:
            raise RuntimeFault("cannot start the program: Argument list too long", retry=False)
        self.send(_frame(server.RUN, call.number, request) + self._next_input(call))
        return call

    def ask(self, kind: int, content: bytes = b"", *, keep: int = 0) -> Call:
        """Of the server itself; `keep` as much as this of what is printed meanwhile."""
        call = self._call(keep, memoryview(b""))
        self.send(_frame(kind, call.number, content))
        return call

    def wait(self, call: Call, deadline: float) -> bool:
        """Until it is answered. False: not in time, or never, as the channel is broken."""
        while not self._turn(call, deadline):
            try:
                self._read(call, deadline)
            finally:
                with self._changed:
                    self._reading = False
                    self._changed.notify_all()
        with self._changed:
            self._calls.pop(call.number, None)
        return call.kind != 0

    def close(self) -> None:
        with self._changed:
            self.broken = True
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        with self._changed:  # whoever reads is woken by that; its descriptor must not be another's
            self._changed.wait_for(lambda: not self._reading, CLOSE_SECONDS)
            self._sock.close()

    def _call(self, keep: int, give: memoryview) -> Call:
        with self._changed:
            self._numbers = self._numbers % 0xFFFF_FFFE + 1
            call = Call(self._numbers, keep, give)
            self._calls[call.number] = call
        return call

    def _turn(self, call: Call, deadline: float) -> bool:
        """Wait while somebody else reads. False: nobody does, it is for the caller to do."""
        with self._changed:
            while True:
                if call.kind or self.broken or self._frames.plain:
                    return True
                if (left := deadline - time.monotonic()) <= 0:
                    return True
                if not self._reading:
                    self._reading = True
                    return False
                self._changed.wait(min(left, threading.TIMEOUT_MAX))

    def _read(self, call: Call, deadline: float) -> None:
        poll = select.poll()
        try:
            poll.register(self._sock, select.POLLIN)
            while not (call.kind or self.broken or self._frames.plain):
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                wanted = 0 if self._flush() else select.POLLOUT
                poll.modify(self._sock, select.POLLIN | wanted)
                for _, events in poll.poll(min(left, 3600.0) * 1000):
                    if events & ~select.POLLOUT:
                        self._receive()
        except (OSError, ValueError):  # the connection broke, or what came is no frame
            self._break()

    def _receive(self) -> None:
        block = self._sock.recv(BLOCK)
        if not block:
            self._break()
        for kind, number, content in self._frames.feed(block):
            self._take(kind, number, content)

    def _break(self) -> None:
        with self._changed:
            self.broken = True
            self._changed.notify_all()

    def _take(self, kind: int, number: int, content: bytes) -> None:
        with self._changed:
            call = self._calls.get(number)
        if call is None:
            return
        if kind == server.OUT:
            call.stdout += content[: call.keep - len(call.stdout)]
        elif kind == server.ERR:
            call.stderr += content[: call.keep - len(call.stderr)]
        elif kind == server.MORE:
            with self._changed:
                self._out += self._next_input(call)
        else:
            with self._changed:
                call.answer, call.kind = content, kind
                self._changed.notify_all()

    def _next_input(self, call: Call) -> bytes:
        """A block at a time, each when the one before has been taken; an empty one is the end."""
        if not call.give:
            return b""
        block, call.give = call.give[:INPUT_BLOCK], call.give[INPUT_BLOCK:]
        end = b"" if call.give else _frame(server.INPUT, call.number, b"")
        return _frame(server.INPUT, call.number, bytes(block)) + end

    def send(self, data: bytes) -> None:
        """Whole frames only. Raises RuntimeFault when the box cannot be reached.

        Never waits for the box to take it unless somebody reads: a connection that does one thing
        at a time, as Podman's, would wait for us to read. What is left, whoever reads sends.
        """
        with self._changed:
            self._out += data
        poll = select.poll()
        try:
            poll.register(self._sock, select.POLLOUT)
            while not self._flush() and self._reading and not self.broken:
                poll.poll(READER_MS)
        except (OSError, ValueError) as e:
            self._break()
            raise RuntimeFault(f"the box cannot be reached: {e}") from e

    def _flush(self) -> bool:
        """Send as much as is taken at once; was that all of it?"""
        with self._changed:
            while self._out:
                try:
                    sent = self._sock.send(bytes(self._out[:BLOCK]), socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return False
                del self._out[:sent]
        return True


class _Frames:
    """The server's frames, in the engine's frames of its output."""

    def __init__(self) -> None:
        self._outer = bytearray()
        self._inner = bytearray()
        self._begun = False
        self.plain = False

    def feed(self, block: bytes) -> list[tuple[int, int, bytes]]:
        """Those that are complete now. Raises ValueError for what cannot be one."""
        self._outer += block
        while len(self._outer) >= FRAME_HEADER:
            end = FRAME_HEADER + int.from_bytes(self._outer[4:FRAME_HEADER], "big")
            if len(self._outer) < end:
                break
            if self._outer[0] == STDOUT:
                self._inner += self._outer[FRAME_HEADER:end]
            del self._outer[:end]
        if self._inner and not self._begun:
            self._begun, self.plain = True, self._inner.startswith(PLAIN)
        return [] if self.plain else self._complete()

    def _complete(self) -> list[tuple[int, int, bytes]]:
        found = []
        while len(self._inner) >= server.HEAD:
            length = int.from_bytes(self._inner[:4], "big")
            if length > MOST_FRAME:
                raise ValueError("a frame that is too long")
            end = server.HEAD + length
            if len(self._inner) < end:
                break
            number = int.from_bytes(self._inner[5 : server.HEAD], "big")
            found.append((self._inner[4], number, bytes(self._inner[server.HEAD : end])))
            del self._inner[:end]
        return found


def _frame(kind: int, number: int, content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + bytes((kind,)) + number.to_bytes(4, "big") + content
