"""Runs in a box: looks for a token in all that can be read there, and says where it was."""

import ctypes
import json
import os
import platform
import socket
import stat
import struct
import subprocess
import sys
import zlib

TOKEN = sys.argv[1][::-1]
"""It is given backwards: what this program is told by is no trace."""
NEEDLE, NUMBER = TOKEN.encode(), int(TOKEN[6:13], 16)
LIBC = ctypes.CDLL(None, use_errno=True)
REQUEST_KEY = {"x86_64": 249, "aarch64": 218}.get(platform.machine(), -1)
KEYCTL = {"x86_64": 250, "aarch64": 219}.get(platform.machine(), -1)
MOST_BYTES, MOST_MEMORY = 64 << 20, 256 << 20
FOUND: dict[str, list[str]] = {}
LOOKED: dict[str, int] = {}


def hit(kind: str, where: object) -> None:
    FOUND.setdefault(kind, []).append(str(where).replace(TOKEN, "TOKEN"))


def look(kind: str, where: str, data: bytes) -> None:
    LOOKED[kind] = LOOKED.get(kind, 0) + 1
    if NEEDLE in data:
        hit(kind, where)


def content(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return b""
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 20), b""))[:MOST_BYTES]
    except OSError:
        return b""
    finally:
        os.close(fd)


def files() -> None:
    for top, folders, names in os.walk("/"):
        folders[:] = [f for f in folders if os.path.join(top, f) not in ("/proc", "/sys")]
        for name in (*names, *folders):
            path = os.path.join(top, name)
            look("names", path, path.encode("utf-8", "surrogateescape"))
            one(path)


def one(path: str) -> None:
    try:
        status = os.lstat(path)
        attributes = [
            os.getxattr(path, a, follow_symlinks=False)
            for a in os.listxattr(path, follow_symlinks=False)
        ]
    except OSError:
        return
    look("attributes", path, b"\0".join(attributes))
    if NUMBER in (int(status.st_mtime), int(status.st_atime)):
        hit("times", path)
    if stat.S_ISLNK(status.st_mode):
        look("links", path, os.fsencode(os.readlink(path)))
    elif stat.S_ISREG(status.st_mode):
        data = content(path)
        look("files", path, data)
        if "/.git/objects/" in path and data[:1] == b"x":
            look("objects", path, zlib.decompress(data))


def objects() -> None:
    done = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"], capture_output=True, check=False
    )
    look("objects", "git", done.stdout)


def settings() -> None:
    """What /proc and /sys say; of each process, too."""
    for top, folders, names in os.walk("/proc/sys"):
        del folders
        for name in names:
            path = os.path.join(top, name)
            if os.stat(path).st_mode & 0o400:
                look("settings", path, content(path))
    for top, folders, _ in os.walk("/sys/fs"):
        for name in folders:
            look("settings", top, name.encode())
    for path in (
        "keys", "key-users", "mounts", "self/mountinfo", "net/unix", "net/tcp", "sysvipc/shm",
        "sysvipc/msg", "sysvipc/sem", "locks", "cgroups", "kmsg", "1/mountinfo", "consoles",
    ):  # fmt: skip
        look("settings", path, content(f"/proc/{path}"))
    look("settings", "uname", " ".join(os.uname()).encode())
    look("settings", "environment", repr(dict(os.environ)).encode())


def processes() -> None:
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        folder = f"/proc/{name}"
        for part in ("cmdline", "environ", "comm", "maps", "mountinfo"):
            look(f"process {part}", folder, content(f"{folder}/{part}"))
        try:
            open_files = [os.readlink(f"{folder}/fd/{n}") for n in os.listdir(f"{folder}/fd")]
        except OSError:
            open_files = []
        look("process fd", folder, "\0".join(open_files).encode("utf-8", "surrogateescape"))
        memory(folder)


def memory(folder: str) -> None:
    left = MOST_MEMORY
    try:
        fd = os.open(f"{folder}/mem", os.O_RDONLY)
    except OSError:
        return
    for line in content(f"{folder}/maps").decode("utf-8", "replace").splitlines():
        where, mode, *_ = line.split()
        start, end = (int(part, 16) for part in where.split("-"))
        if "w" not in mode or end - start > left:
            continue
        left -= end - start
        try:
            look("process memory", folder, os.pread(fd, end - start, start))
        except (OSError, OverflowError):
            continue
    os.close(fd)


def system_v() -> None:
    class Message(ctypes.Structure):
        _fields_ = (("kind", ctypes.c_long), ("text", ctypes.c_char * 64))

    LIBC.shmat.restype = ctypes.c_void_p
    if (number := LIBC.shmget(NUMBER, 0, 0)) >= 0:
        hit("shared memory", ctypes.string_at(LIBC.shmat(number, None, 0), 15))
    if (number := LIBC.msgget(NUMBER, 0)) >= 0:
        told = Message()
        LIBC.msgrcv(number, ctypes.byref(told), 64, 0, 0o4000)
        hit("message queue", told.text)
    if LIBC.semget(NUMBER, 0, 0) >= 0:
        hit("semaphore", NUMBER)


def posix() -> None:
    if LIBC.shm_open(f"/{TOKEN}".encode(), os.O_RDWR, 0) >= 0:
        hit("posix memory", TOKEN)
    if LIBC.mq_open(f"/{TOKEN}".encode(), os.O_RDWR) >= 0:
        hit("posix queue", TOKEN)


def sockets() -> None:
    with socket.socket(socket.AF_UNIX) as s:
        if s.connect_ex("\0" + TOKEN) == 0:
            hit("abstract socket", TOKEN)
    with socket.socket() as s:
        if s.connect_ex(("127.0.0.1", 20000 + NUMBER % 10000)) == 0:
            hit("port", NUMBER)


def keys() -> None:
    if LIBC.syscall(REQUEST_KEY, b"user", NEEDLE, None, 0) >= 0:
        hit("keys", "request_key")
    for ring in range(-5, 0):
        if LIBC.syscall(KEYCTL, 10, ring, b"user", NEEDLE, 0) >= 0:
            hit("keys", ring)


def kernel_log() -> None:
    said = ctypes.create_string_buffer(1 << 20)
    if (size := LIBC.klogctl(3, said, len(said))) > 0:
        look("kernel log", "klogctl", said.raw[:size])
    look("kernel log", "/dev/kmsg", content("/dev/kmsg"))


def terminals() -> None:
    """What a terminal that is left over would still have to say."""
    for name in os.listdir("/dev/pts"):
        if name.isdigit():
            path = f"/dev/pts/{name}"
            look("terminals", path, struct.pack("q", os.stat(path).st_rdev))


def main() -> None:
    for search in (
        files, objects, settings, processes, system_v, posix, sockets, keys, kernel_log, terminals,
    ):  # fmt: skip
        search()
    print("told " + json.dumps({"found": FOUND, "looked": LOOKED}))


main()
