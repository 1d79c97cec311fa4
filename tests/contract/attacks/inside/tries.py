"""Runs in a box: how an attack is tried, and what became of it."""

import ctypes
import errno
import json
import os
import signal
import sys
from collections.abc import Callable
from collections.abc import Set as AbstractSet

LIBC = ctypes.CDLL(None, use_errno=True)
REFUSED = {
    "EPERM",
    "ENOSYS",
    "EACCES",
    "EAFNOSUPPORT",
    "EROFS",
    "ESRCH",
    "ENOENT",
    "ENODEV",
    "ENXIO",
}
"""What a wall answers. EINVAL or EFAULT would only say that the attack was not a good one."""
Try = Callable[[], str]


def call(number: int, *arguments: object) -> str:
    """A system call by its number (x86_64), as the error's name, or OK."""
    passed = [
        a if isinstance(a, bytes) else ctypes.c_long(a) if isinstance(a, int) else a
        for a in arguments
    ]
    ctypes.set_errno(0)
    if LIBC.syscall(ctypes.c_long(number), *passed) >= 0:
        return "OK"
    return errno.errorcode[ctypes.get_errno()]


def attempt(act: Callable[..., object], *arguments: object) -> str:
    try:
        act(*arguments)
    except OSError as e:
        return errno.errorcode.get(e.errno or 0, repr(e))
    return "OK"


def verdict(said: dict[str, str], also: AbstractSet[str] = frozenset()) -> str:
    """`held` when every one of the tries was refused; otherwise those that were not."""
    open_ = {name: result for name, result in said.items() if result not in REFUSED | also}
    return "held" if not open_ else f"not held: {open_}"


def apart(act: Callable[[], str], seconds: int = 20) -> str:
    """In a process of its own, which may die of it."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(seconds)
        try:
            os.write(write, act().encode()[:60000])
        except BaseException as e:
            os.write(write, f"error: {e!r}".encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        said = f.read().decode()
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return f"killed by signal {os.WTERMSIG(status)}"
    return said


def report(tries: dict[str, Try]) -> None:
    """Print what became of each, as JSON."""
    found = {}
    for name, act in tries.items():
        found[name] = apart(act)
    json.dump(found, sys.stdout)
