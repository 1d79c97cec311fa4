"""The clock of a box, begun in its first process: which then answers for it, in threads of its own.

It starts when the box is built; in one that is made ahead of time, when somebody takes that: until
then its first process has rights which it gives up before anything of the box's runs.
"""

import ctypes
import errno
import os
import platform
import socket
import struct
import time
from typing import Any

from sandbox.runtime.embedded import privileges, wire

LATER = b"later"
"""In place of options: they come when somebody takes the box."""
UPTIME_SECONDS = 86_400
"""How long a box's machine seems to have run when its clock starts."""
_SECOND = 1_000_000_000
_CLOCK_GETTIME = {"x86_64": 228, "aarch64": 113}
_SYS_PTRACE = 1 << 19
_library: list[ctypes.CDLL] = []
"""Loaded in the zygote: what it forks shares its pages, and takes no time for it."""


def load(path: str) -> None:
    """In the zygote. What was forked before does not have it."""
    library = ctypes.CDLL(path)
    for name in ("still_mono0", "still_real0", "still_shift"):
        getattr(library, name).restype = ctypes.c_int64
    library.still_uptime.argtypes = [ctypes.c_int64]
    _library.append(library)


def prepare(wanted: dict[str, Any], *, own_users: bool) -> bool:
    """Be a machine that was started a while ago, and confined. False: the kernel has no such thing.

    `own_users`: root in the box is nobody outside. Then its first process may keep the right to
    look at any process of the box, of whichever user; what it starts can never have that.
    """
    own_time = bool(_library[0].still_uptime(wanted["up_ns"]) == 0)
    privileges.confine(_SYS_PTRACE if own_users else 0)
    return own_time


def begin(wanted: dict[str, Any], *, own_time: bool) -> dict[str, Any]:
    """Start the clock, in the finished box. Returns what the host has to know. Raises OSError."""
    library = _library[0]
    _check(library.still_begin(wanted["options"].encode()))
    mono0 = library.still_mono0() - library.still_shift()
    return {"real0_ns": library.still_real0(), "mono0_ns": mono0, "own_time": own_time}


def begin_when_told(channel: socket.socket, *, own_users: bool) -> bool:
    """False: nobody wants it, or it failed."""
    request, fds = wire.receive(channel)
    if request is None or not fds:
        return False
    with socket.socket(fileno=fds[0]) as reply:
        try:
            own_time = prepare(request["clock"], own_users=own_users)
            wire.send(reply, begin(request["clock"], own_time=own_time))
        except OSError as e:
            wire.tell_error(reply, e)
            return False
    return True


def join() -> None:
    """In a process that has come into a box from outside: the clock is that of the box."""
    _check(_library[0].still_join())


def now_ns() -> int:
    """What the clock says, which counts as a read. Python itself would not ask the kernel."""
    found = ctypes.create_string_buffer(16)
    ctypes.CDLL(None).syscall(_CLOCK_GETTIME[platform.machine()], time.CLOCK_REALTIME, found)
    seconds, rest = struct.unpack("qq", found.raw)
    return int(seconds) * _SECOND + int(rest)


def _check(result: int) -> None:
    if result < 0:
        why = errno.errorcode.get(-result, str(-result))
        raise OSError(-result, f"the clock does not start: {why}: {os.strerror(-result)}")
