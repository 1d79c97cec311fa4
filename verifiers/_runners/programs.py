"""Programs that a runner starts: each in a session of its own, bounded, and gone when it is over.

What they print goes to the log, bounded; what they tell goes through a pipe that is descriptor 3 of
theirs, a line a record. A program is over when its first process is, whoever still holds a pipe; then all that it started is ended.
"""

import contextlib
import ctypes
import json
import os
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

RECORDS = 3
"""The descriptor on which a program tells its records. One digit: dash knows no others."""
_CHUNK = 1 << 16
_LINE_BYTES = 1 << 16
_LOG_BYTES = 1 << 18
_RECORD_BYTES, _RECORDS = 16 << 20, 100_000
"""Of one program: one that tells more is ended."""
_LAST_WORDS = 2000
_FOREVER = float("inf")
_FILES = 1 << 16
_ADOPT = 36  # PR_SET_CHILD_SUBREAPER
_ROUNDS = 200

Heard = Callable[[bytes], None]
"""Is given a line without its end, cut where it is too long."""
Limit = Callable[[], float]
"""By when it has to have ended, as far as is known now: a moment of time.monotonic."""


def nothing(line: bytes) -> None:
    del line


def parsed(line: bytes) -> Any:
    """What a line of JSON holds; None for anything else."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def within(seconds: float | None) -> Limit:
    """So long from now on, or without a limit."""
    end = _FOREVER if seconds is None else time.monotonic() + seconds
    return lambda: end


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    status: int | None
    """Its exit code; -n when signal n ended it; None when its time was up."""
    seconds: float
    words: str
    """The last that it printed."""

    @property
    def how(self) -> str:
        if self.status is None:
            return f"it was stopped after {self.seconds:.1f} s"
        if self.status < 0:
            return f"signal {-self.status} ended it"
        return f"it ended with exit code {self.status}"


@dataclass(slots=True)
class _Lines:
    """Bytes in, lines out. Of a line that is too long, the beginning."""

    heard: Heard
    size: int = 0
    """Of all that came."""
    count: int = 0
    _rest: bytes = b""
    _skips: bool = False

    def feed(self, data: bytes) -> None:
        self.size += len(data)
        *whole, rest = (self._rest + data).split(b"\n")
        self.count += len(whole)
        for line in whole:
            if not self._skips:
                self.heard(line[:_LINE_BYTES])
            self._skips = False
        if len(rest) > _LINE_BYTES:
            if not self._skips:
                self.heard(rest[:_LINE_BYTES])
            self._skips, rest = True, b""
        self._rest = rest

    def end(self) -> None:
        if self._rest and not self._skips:
            self.heard(self._rest)
        self._rest = b""


@dataclass(slots=True)
class _Log:
    """What all programs print, as far as it is kept."""

    left: int = _LOG_BYTES
    last: bytes = b""

    def add(self, data: bytes) -> None:
        kept, self.left = data[: self.left], max(0, self.left - len(data))
        if kept:
            sys.stderr.buffer.write(kept)
            sys.stderr.buffer.flush()
        self.last = (self.last + data)[-_LAST_WORDS:]


_log = _Log()


def run(
    program: Sequence[str] | Callable[[], None],
    *,
    limit: Limit,
    cwd: str = ".",
    env: Mapping[str, str] | None = None,
    printed: Heard = nothing,
    told: Heard = nothing,
) -> Ended:
    """To its end. A function runs in a copy of this process. `printed`, `told`: given each line."""
    began = time.monotonic()
    # Who loses its parent becomes a child of this process, and is found.
    ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    pid, out, records = _start(program, cwd, env)
    text, told_lines = _Lines(printed), _Lines(told)
    _log.last = b""

    def hear(data: bytes) -> None:
        _log.add(data)
        text.feed(data)

    def bound() -> float:
        few = told_lines.size < _RECORD_BYTES and told_lines.count < _RECORDS
        return limit() if few else -_FOREVER

    try:
        status = _follow(pid, {out: hear, records: told_lines.feed}, bound)
    finally:
        os.close(out)
        os.close(records)
    text.end()
    told_lines.end()
    words = _log.last.decode("utf-8", "backslashreplace").strip()
    return Ended(status, time.monotonic() - began, words)


def _start(
    program: Sequence[str] | Callable[[], None], cwd: str, env: Mapping[str, str] | None
) -> tuple[int, int, int]:
    out, out_end = os.pipe()
    records, records_end = os.pipe()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _be(program, cwd, env, out_end, records_end)
    os.close(out_end)
    os.close(records_end)
    return pid, out, records


def _be(
    program: Sequence[str] | Callable[[], None],
    cwd: str,
    env: Mapping[str, str] | None,
    out: int,
    records: int,
) -> NoReturn:
    """In the new process. It has nothing of this one's but the two pipes."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (out, 1), (out, 2), (records, RECORDS)):
            os.dup2(source, target)
            os.set_inheritable(target, True)  # noqa: FBT003 - it has no name
        os.closerange(RECORDS + 1, _FILES)
        # Python ignores them, and what is ignored stays so in what is started.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(cwd)
        if callable(program):
            sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
            program()
            sys.stdout.flush()
            os._exit(0)
        os.execvpe(program[0], list(program), os.environ if env is None else env)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(127)


def _follow(pid: int, hear: Mapping[int, Heard], limit: Limit) -> int | None:
    """Until the process is over or its time is; then all of its session's group is."""
    ended, over = os.pidfd_open(pid), False
    with selectors.DefaultSelector() as ready:
        for fd in (ended, *hear):
            ready.register(fd, selectors.EVENT_READ)
        while not over and (left := limit() - time.monotonic()) > 0:
            for key, _ in ready.select(None if left == _FOREVER else left):
                if key.fd == ended:
                    over = True
                elif not _hear(key.fd, hear[key.fd]):
                    ready.unregister(key.fd)
    _kill(pid)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(ended)
    _end_children()
    for fd, heard in hear.items():
        _drain(fd, heard)
    return status if over else None


def _hear(fd: int, heard: Heard) -> bool:
    data = os.read(fd, _CHUNK)
    heard(data)
    return bool(data)


def _drain(fd: int, heard: Heard) -> None:
    """What was written before the end, and no more: somebody may still be writing."""
    os.set_blocking(fd, False)
    for _ in range(64):
        try:
            if not _hear(fd, heard):
                return
        except BlockingIOError:
            return


def _kill(pid: int) -> None:
    """It is there until it is waited for; its group, from when it has made one."""
    for kill in (os.kill, os.killpg):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _end_children() -> None:
    """Those that the program left behind, in whatever session, as long as it can be kept up with."""
    for _ in range(_ROUNDS):
        children = _children()
        for child in children:
            with contextlib.suppress(ProcessLookupError, ChildProcessError, PermissionError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        if not children:
            return


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as f:
            return [int(pid) for pid in f.read().split()]
    except OSError:
        return []
