"""One box of the embedded runtime, and its terminals."""

import contextlib
import fcntl
import itertools
import os
import signal
import socket
import struct
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import STATUS_BYTES, BoxSpec, ExecResult
from sandbox.runtime.embedded import wire
from sandbox.runtime.ready import readable

Ask = Callable[[dict[str, Any], list[int]], socket.socket]
"""Send a request and some descriptors; the answer comes on what is returned."""
_BLOCK = 1 << 16
_PIPE_BLOCKS = 16
_DYING_SECONDS = 1.0
"""Its channel may be closed a moment before it is dead."""
_TIMED_OUT: dict[str, Any] = {"timed_out": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Handles:
    """What the host holds of a box."""

    channel: socket.socket
    """To its first process; when it is closed, the box dies."""
    pid: int
    pidfd: int
    mounts: int
    """Its mount namespace: with it, files can be read after every process is dead."""


class EmbeddedPty:
    def __init__(self, master: int, reply: socket.socket) -> None:
        self._master = master
        self._reply: socket.socket | None = reply
        self._exit: int | None = None

    def fileno(self) -> int:
        return self._master

    def resize(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def wait(self, seconds: float) -> int | None:
        if self._reply is None:
            return self._exit
        if not readable([self._reply], seconds):
            return None
        message, _ = wire.receive(self._reply)
        self._exit = _status(message["exit"]) if message else 128 + signal.SIGKILL
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


class EmbeddedBox:
    def __init__(
        self,
        box_id: str,
        spec: BoxSpec,
        handles: Handles,
        ask_zygote: Ask,
        ran_out: Callable[[], bool],
        undo: list[Callable[[], None]],
    ) -> None:
        """`ran_out`: was anything in it killed for the memory it used? `undo`: what to do, last first, once every process is dead."""
        self.id = box_id
        self._spec = spec
        self._handles = handles
        self._ask_zygote = ask_zygote
        self._ran_out = ran_out
        self._undo = undo
        self._lock = threading.RLock()
        self._stopped = self._gone = False

    def on_destroy(self, step: Callable[[], None]) -> None:
        self._undo.insert(0, step)

    def open_pty(
        self, argv: Sequence[str], *, rows: int = 40, cols: int = 160, cwd: str | None = None
    ) -> EmbeddedPty:
        reply = self._ask(self._message(argv, None, cwd) | {"pty": [rows, cols]}, [])
        message, fds = wire.receive(reply)
        if message is None or "error" in message:
            reply.close()
            raise RuntimeFault(f"cannot start {argv[0]} in the box: {_said(message)}")
        return EmbeddedPty(fds[0], reply)

    def exec(
        self,
        argv: Sequence[str],
        *,
        seconds: float,
        input: bytes = b"",  # noqa: A002 - subprocess calls it so
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        output_bytes: int = STATUS_BYTES,
    ) -> ExecResult:
        out, err = _Stream(output_bytes), _Stream(output_bytes)
        with tempfile.TemporaryFile() as source:
            source.write(input)
            source.seek(0)
            try:
                fds = [source.fileno(), out.write_end, err.write_end]
                reply = self._ask(self._message(argv, env, cwd), fds)
            finally:
                os.close(out.write_end)
                os.close(err.write_end)
        with reply:
            message = _follow(reply, (out, err), seconds)
        if message is _TIMED_OUT:
            self.stop()
            return ExecResult(
                exit_code=None,
                stdout=bytes(out.kept),
                stderr=bytes(err.kept),
                truncated=out.truncated or err.truncated,
            )
        if message is None and self._ran_out():
            # The kernel chose the first process: it was the largest. The program did that.
            message = {"exit": -signal.SIGKILL}
        if message is None or "error" in message:
            raise RuntimeFault(f"cannot run {argv[0]} in the box: {_said(message)}")
        return ExecResult(
            exit_code=_status(message["exit"]),
            stdout=bytes(out.kept),
            stderr=bytes(err.kept),
            truncated=out.truncated or err.truncated,
        )

    def put(self, archive: bytes, folder: str) -> None:
        with tempfile.TemporaryFile() as source:
            source.write(archive)
            source.seek(0)
            reply = self._ask({"op": "put", "folder": folder}, [source.fileno()])
        with reply:
            message, _ = wire.receive(reply)
        if message is None or message.get("exit") != 0:
            raise RuntimeFault(f"cannot unpack files in {folder} of the box: {_said(message)}")

    def get(self, path: str) -> Iterator[bytes]:
        with self._lock:
            if self._gone:
                raise RuntimeFault("the box is gone")
            read_end, write_end = os.pipe()
            try:
                reply = self._ask_zygote(
                    {"op": "get", "path": path}, [self._handles.mounts, write_end]
                )
            except OSError as e:
                os.close(read_end)
                raise RuntimeFault(f"cannot read {path} of the box: {e}") from e
            finally:
                os.close(write_end)
        blocks = _blocks(path, read_end, reply)
        # Begin now: a path that is not there is told here, not at the first use.
        return itertools.chain([next(blocks)], blocks)

    def stop(self) -> None:
        with self._lock:
            if self._gone:
                return
            self._stopped = True
            # The kernel ends a process namespace with its first process, and tells us of that
            # one only when all others are dead.
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handles.pidfd, signal.SIGKILL)
            if not readable([self._handles.pidfd], 30):
                raise RuntimeFault(f"box {self.id} does not die (process {self._handles.pid})")

    def lost(self) -> bool:
        with self._lock:
            if self._gone or self._stopped:
                return self._gone
            ended = readable([self._handles.pidfd], _DYING_SECONDS)
            return bool(ended) and not self._ran_out()

    def destroy(self) -> None:
        with self._lock:
            if self._gone:
                return
            self.stop()
            self._gone = True
            self._handles.channel.close()
            os.close(self._handles.pidfd)
            os.close(self._handles.mounts)
        for step in reversed(self._undo):
            step()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def _message(
        self, argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None
    ) -> dict[str, Any]:
        return {
            "op": "spawn",
            "argv": list(argv),
            "env": self._spec.environment | dict(env or {}),
            "cwd": cwd or self._spec.workdir,
        }

    def _ask(self, message: dict[str, Any], fds: list[int]) -> socket.socket:
        """Send a request to the box's first process; the answers come on what is returned."""
        ours, theirs = wire.pair()
        try:
            with self._lock, theirs:
                if self._gone:
                    raise RuntimeFault("the box is gone")
                wire.send(self._handles.channel, message, [theirs.fileno(), *fds])
        except OSError as e:
            ours.close()
            raise RuntimeFault(f"the box is gone: {e}") from e
        except BaseException:
            ours.close()
            raise
        return ours


class _Stream:
    """One output stream of a program: its beginning is kept, the rest is counted and dropped."""

    def __init__(self, limit: int) -> None:
        self.read_end, self.write_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.read_end, False)
        self.kept = bytearray()
        self.truncated = False
        self._limit = limit

    def take(self) -> bool:
        """Read what is there; False at the end of the stream."""
        try:
            block = os.read(self.read_end, _BLOCK)
        except BlockingIOError:
            return True
        room = max(self._limit - len(self.kept), 0)
        self.kept += block[:room]
        self.truncated |= len(block) > room
        return bool(block)

    def take_rest(self) -> None:
        """What is in the pipe now, but no more than it can hold: a writer may still be there."""
        for _ in range(_PIPE_BLOCKS):
            if not readable([self.read_end], 0) or not self.take():
                return

    def close(self) -> None:
        os.close(self.read_end)


def _follow(
    reply: socket.socket, streams: tuple[_Stream, ...], seconds: float
) -> dict[str, Any] | None:
    """Read the streams until the program has ended, whoever else holds them open."""
    until = time.monotonic() + seconds
    waiting: dict[int, _Stream] = {s.read_end: s for s in streams}
    try:
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return _TIMED_OUT
            watched: list[socket.socket | int] = [reply, *waiting]
            ready = readable(watched, left)
            for fd in ready:
                if isinstance(fd, int) and not waiting[fd].take():
                    del waiting[fd]
            if reply in ready:
                message, _ = wire.receive(reply)
                for stream in waiting.values():
                    stream.take_rest()
                return message
    finally:
        for stream in streams:
            stream.close()


def _blocks(path: str, read_end: int, reply: socket.socket) -> Iterator[bytes]:
    with os.fdopen(read_end, "rb") as f, reply:
        while block := f.read(_BLOCK):
            yield block
        message, _ = wire.receive(reply)
    if message is None or "error" in message:
        raise RuntimeFault(f"cannot read {path} of the box: {_said(message)}")
    if "missing" in message:
        raise FileNotFoundError(path)


def _status(code: int) -> int:
    """As a shell says it: 128 + n for signal n."""
    return code if code >= 0 else 128 - code


def _said(message: dict[str, Any] | None) -> str:
    if message is None:
        return "the box is gone"
    return str(message.get("error", f"exit code {message.get('exit')}"))
