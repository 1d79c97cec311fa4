"""The zygote, seen from the user's process, and the blanks it keeps ready."""

import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.runtime.embedded import kernel, wire
from sandbox.runtime.embedded.clock import Birth
from sandbox.runtime.embedded.machine import PACKAGE
from sandbox.runtime.ready import readable

_DEAD_SECONDS = 30.0
_READY = 2
"""Blanks that are made before they are needed."""


class Zygote:
    """The process that makes boxes. One per runtime, used from any thread."""

    def __init__(self, name: str, run: Path, groups: list[str]) -> None:
        self._socket, theirs = wire.pair()
        self._lock = threading.Lock()
        # The program comes by standard input and the name is ours: the first process of a box
        # shows its command line to everyone in it. Without its own name, Python has to be told
        # where its library is.
        with theirs:
            self._process = subprocess.Popen(
                [name, "-P", "-s", "-S", "-B", "-"],
                executable=sys.executable,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env={"PYTHONHOME": f"{sys.base_prefix}:{sys.base_exec_prefix}"},
                cwd="/",
                close_fds=True,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                # Before it starts its program: whom it may look at depends on who it was then.
                preexec_fn=kernel.become_root_of_own if os.geteuid() else None,  # noqa: PLW1509
            )
            assert self._process.stdin  # noqa: S101 - for the type checker: PIPE was asked for
            self._process.stdin.write(_program(theirs.fileno(), str(run), groups))
            self._process.stdin.close()
        _OPEN.add(self)

    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, message: dict[str, Any], fds: list[int]) -> socket.socket:
        """Send a request; the answer comes on what is returned."""
        ours, theirs = wire.pair()
        try:
            with theirs, self._lock:
                wire.send(self._socket, message, [theirs.fileno(), *fds])
        except BaseException:
            ours.close()
            raise
        return ours

    def let_go(self) -> None:
        """Have no part in its life: it ends when nobody holds this."""
        self._socket.close()

    def close(self) -> None:
        """It removes what is left of the run, then ends."""
        self._socket.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_OPEN: weakref.WeakSet[Zygote] = weakref.WeakSet()


@dataclass(slots=True, kw_only=True)
class Blank:
    """A first process that waits to be told which box to become."""

    name: str
    folder: Path
    owner: int
    channel: socket.socket
    """To it; when this is closed, it ends."""
    born: Birth
    can_be_still: bool = False
    """Was it forked with what a clock needs?"""
    pid: int = 0
    pidfd: int = -1
    mounts: int = -1
    """Its mount namespace: with it, files can be read after every process is dead."""

    def hear(self) -> tuple[dict[str, Any], list[int]]:
        """The next of what it says until it serves. Raises OSError when that is an error."""
        message, fds = wire.receive(self.channel)
        if message is None or "error" in message:
            raise OSError((message or {}).get("error", "the box's first process died at once"))
        return message, fds

    def kill(self) -> None:
        """For one that never became a box."""
        if self.pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
            readable([self.pidfd], _DEAD_SECONDS)
        self.close()

    def close(self) -> None:
        self.channel.close()
        for fd in (self.pidfd, self.mounts):
            if fd >= 0:
                os.close(fd)
        self.pidfd = self.mounts = -1


class Blanks:
    """Ordered ahead of time: joining control groups takes longer than all the rest of a box."""

    def __init__(
        self,
        order: Callable[[bool], tuple[Blank, socket.socket]],
        hurry: Callable[[], None],
        discard: Callable[[Blank], None],
    ) -> None:
        """`order`: ask for one, which may be for later; its answer comes on the socket.

        `hurry`: what was for later is wanted now. `discard`: one that went wrong.
        """
        self._order = order
        self._hurry = hurry
        self._discard = discard
        self._lock = threading.Lock()
        self._ordered: deque[tuple[Blank, socket.socket]] = deque()

    def take(self) -> Blank:
        """The one that was ordered first, as soon as it is there. Raises OSError."""
        with self._lock:
            ordered = self._ordered.popleft() if self._ordered else None
        if ordered is None:
            return self._delivered(*self._order(False))  # noqa: FBT003 - see the constructor
        if not readable([ordered[1]], 0):
            self._hurry()
        return self._delivered(*ordered)

    def order(self) -> None:
        """Have some made for those who come next: called when a box is finished."""
        with self._lock:
            if len(self._ordered) < _READY:
                self._ordered.append(self._order(True))  # noqa: FBT003 - see the constructor

    def close(self) -> list[Blank]:
        """Those that nobody took: they are the caller's to destroy."""
        with self._lock:
            left = []
            if self._ordered:
                with suppress(OSError):
                    self._hurry()
            while self._ordered:
                with suppress(OSError):
                    left.append(self._delivered(*self._ordered.popleft()))
            return left

    def _delivered(self, blank: Blank, reply: socket.socket) -> Blank:
        try:
            with reply:
                answer, fds = wire.receive(reply)
            if answer is None or "error" in answer:
                raise OSError((answer or {}).get("error", "the process that makes boxes has died"))
            blank.pid = answer["pid"]
            blank.pidfd, blank.mounts = fds
            blank.hear()  # that it is staged
        except BaseException:
            self._discard(blank)
            raise
        return blank


def _let_go() -> None:
    """In a child that the user's process has forked, and which may live on when that is gone."""
    for zygote in list(_OPEN):
        zygote.let_go()


os.register_at_fork(after_in_child=_let_go)


def _program(control: int, run: str, groups: list[str]) -> bytes:
    lines = [
        "import os, sys",
        "os.environ.clear()",
        f"sys.path.append({PACKAGE!r})",
        f"os.dup2({control}, 3)",
        f"{control} == 3 or os.close({control})",
        "from sandbox.runtime.embedded import zygote",
        f"zygote.main({run!r}, {groups!r})",
    ]
    return "\n".join(lines).encode()
