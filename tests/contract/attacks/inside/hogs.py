"""Runs in a box: takes all it can get of one thing, and prints how much that was."""

import ctypes
import errno
import os
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)


def forks() -> int:
    """Again and again for two seconds, each child trying too."""
    end, most = time.monotonic() + 2, 0
    while time.monotonic() < end:
        try:
            if os.fork() == 0:
                most = 0
        except OSError:
            most += 1
    return most


def memory() -> int:
    held, taken = [], 0
    while taken < 2048:
        held.append(bytearray(b"x") * (8 << 20))
        taken += 8
    return taken


def shared_files() -> int:
    return _write("/dev/shm/fill", 512)


def segments() -> int:
    """System V shared memory belongs to no process."""
    taken = 0
    LIBC.shmat.restype = ctypes.c_void_p
    while taken < 1024:
        number = LIBC.shmget(0, 8 << 20, 0o1600)
        if number < 0 or (place := LIBC.shmat(number, None, 0)) in (
            None,
            ctypes.c_void_p(-1).value,
        ):
            break
        ctypes.memset(place, 1, 8 << 20)
        taken += 8
    return taken


def queues() -> int:
    made = 0
    try:
        while made < 2000:
            os.close(os.open(f"/dev/mqueue/{made}", os.O_CREAT | os.O_RDWR))
            made += 1
    except OSError:
        pass
    return made


def disk() -> int:
    return _write("/root/fill", 512)


def inodes() -> int:
    made = 0
    try:
        while made < 200_000:
            if made % 1000 == 0:
                os.mkdir(f"/root/{made}")
            os.close(os.open(f"/root/{made // 1000 * 1000}/{made}", os.O_CREAT | os.O_WRONLY))
            made += 1
    except OSError:
        pass
    return made


def terminals() -> int:
    return _open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY, 1500)


def files() -> int:
    return _open("/dev/null", os.O_RDONLY, 100_000)


def _open(path: str, flags: int, most: int) -> int:
    held: list[int] = []
    try:
        while len(held) < most:
            held.append(os.open(path, flags))
    except OSError as e:
        if e.errno == errno.EMFILE and path != "/dev/null":
            raise
    return len(held)


def _write(path: str, most: int) -> int:
    """MiB."""
    fd, written = os.open(path, os.O_CREAT | os.O_WRONLY), 0
    try:
        while written < most << 20:
            written += os.write(fd, b"x" * (1 << 18))
    except OSError:
        pass
    return written >> 20


print(globals()[sys.argv[1]](), flush=True)
