"""The clock of a box, begun in its first process: which then answers for it, in threads of its own.

It starts while the box is built; in one that is made ahead of time, when somebody takes that: until
then its first process has rights which it gives up before anything of the box's runs.
"""

import ctypes
import errno
import os
import platform
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

from sandbox.runtime.embedded import kernel, privileges, wire

LATER = "later"
"""In place of options: they come when somebody takes the box."""
UPTIME_SECONDS = 100
"""How long a box's machine seems to have run when its clock starts."""
_SECOND = 1_000_000_000
_REALTIME_COARSE = 5
"""What files are dated by; Python does not name it."""
_CLOCK_GETTIME = {"x86_64": 228, "aarch64": 113}
_SYS_PTRACE = 1 << 19
_library: list[ctypes.CDLL] = []
"""Loaded in the zygote: what it forks shares its pages, and takes no time for it."""


@dataclass(frozen=True, slots=True)
class Birth:
    """When a first process began to make its box."""

    real_ns: int
    boot_ns: int


def birth() -> Birth:
    boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return Birth(time.clock_gettime_ns(_REALTIME_COARSE), boot)


def load(path: str) -> None:
    """In the zygote. What was forked before does not have it."""
    library = ctypes.CDLL(path)
    library.still_mono0.restype = library.still_real0.restype = ctypes.c_int64
    _library.append(library)


def begin(options: str, born: Birth, *, own_users: bool) -> dict[str, Any]:
    """Start the clock, and be confined. Returns what the host has to know. Raises OSError.

    `own_users`: root in the box is nobody outside. Then its first process may keep the right to
    look at any process of the box, of whichever user; what it starts can never have that.
    """
    shift = _own_time(born)
    privileges.confine(_SYS_PTRACE if own_users else 0)
    _check(_library[0].still_begin(f"{options} since={born.real_ns}".encode()))
    axis = {
        "real0_ns": _library[0].still_real0(),
        "mono0_ns": _library[0].still_mono0() - (shift or 0),
        "since_ns": born.real_ns,
    }
    return {"axis": axis, "own_time": shift is not None}


def begin_when_told(channel: socket.socket, born: Birth, *, own_users: bool) -> bool:
    """False: nobody wants it, or it failed."""
    request, fds = wire.receive(channel)
    if request is None or not fds:
        return False
    with socket.socket(fileno=fds[0]) as reply:
        try:
            wire.send(reply, begin(request["options"], born, own_users=own_users))
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


def _own_time(born: Birth) -> int | None:
    """A machine that was started a while ago. By how much its monotonic time differs from ours.

    None where the kernel has no such thing: then the box sees how long this machine has run.
    """
    try:
        kernel.unshare(kernel.CLONE_NEWTIME)
    except OSError:
        return None
    kernel.show_memory()  # who hides it does not own the files of /proc about itself
    boot, mono = time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.monotonic_ns()
    # This process must not be older than the machine.
    up = max(UPTIME_SECONDS * _SECOND, boot - born.boot_ns + _SECOND)
    lines = [
        f"{name} {(up - now) // _SECOND} {(up - now) % _SECOND}"
        for name, now in (("monotonic", mono), ("boottime", boot))
    ]
    kernel.write("/proc/self/timens_offsets", "\n".join(lines))
    fd = os.open("/proc/self/ns/time_for_children", os.O_RDONLY | os.O_CLOEXEC)
    try:
        kernel.join_namespace(fd, kernel.CLONE_NEWTIME)
    finally:
        os.close(fd)
    return up - mono


def _check(result: int) -> None:
    if result < 0:
        why = errno.errorcode.get(-result, str(-result))
        raise OSError(-result, f"the clock does not start: {why}: {os.strerror(-result)}")
