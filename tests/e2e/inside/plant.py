"""Runs in a box: leaves a token in every place it can write to, and says which these are."""

import ctypes
import json
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

TOKEN = sys.argv[1]
"""15 characters, so that it fits into a process's name; hex digits after the first six."""
NUMBER = int(TOKEN[6:13], 16)
LIBC = ctypes.CDLL(None, use_errno=True)
ADD_KEY = {"x86_64": 248, "aarch64": 217}.get(platform.machine(), -1)
RINGS = {"thread": -1, "process": -2, "session": -3, "user": -4, "user session": -5}
NOT_FILES = ("/proc", "/sys")
CREATE = 0o1666


def kept(number: int) -> int:
    if number < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return number


def folders() -> Iterator[str]:
    for top, below, _ in os.walk("/"):
        below[:] = [b for b in below if os.path.join(top, b) not in NOT_FILES]
        yield top


def files() -> int:
    """A file in every folder, and its name is the token, too."""
    count = 0
    for folder in folders():
        try:
            with open(os.path.join(folder, f".{TOKEN}"), "w") as f:
                f.write(f"{TOKEN} in a file\n")
            count += 1
        except OSError:
            continue
    return kept(count - 20)


def additions() -> None:
    """What is there already, with more in it; the ways in which programs start most of all."""
    homes = ("/etc/profile", "/etc/environment", "/etc/hosts", "/etc/passwd", "/root/.bashrc")
    for path in (
        *homes,
        "/root/.bash_history",
        "/root/.gitconfig",
        ".git/config",
        ".git/info/exclude",
    ):
        try:
            with open(path, "a") as f:
                f.write(f"\n# {TOKEN}\n")
        except OSError:
            continue


def attributes() -> int:
    count = 0
    for path in ("/", "/usr/bin/python3", "/etc/passwd", "/tmp", "/root", "words.py", os.getcwd()):
        for space in ("user", "trusted"):
            try:
                os.setxattr(path, f"{space}.stray", TOKEN.encode())
                count += 1
            except OSError:
                continue
    return kept(count - 1)


def links() -> None:
    os.symlink(f"/{TOKEN}", "/tmp/a-link")
    os.mkfifo(f"/tmp/fifo-{TOKEN}")


def times() -> None:
    for path in ("/etc/passwd", "/usr/bin", "/tmp", "words.py"):
        os.utime(path, (NUMBER, NUMBER))


def git(*arguments: str) -> bytes:
    given = TOKEN.encode()
    return subprocess.run(("git", *arguments), input=given, check=True, capture_output=True).stdout


def objects() -> None:
    blob = git("hash-object", "-w", "--stdin").decode().strip()
    git("tag", f"tag-{TOKEN}", blob)
    git("config", "--global", "stray.token", TOKEN)


def shared_memory() -> None:
    number = kept(LIBC.shmget(NUMBER, 4096, CREATE))
    LIBC.shmat.restype = ctypes.c_void_p
    ctypes.memmove(LIBC.shmat(number, None, 0), TOKEN.encode(), len(TOKEN))


def message_queue() -> None:
    class Message(ctypes.Structure):
        _fields_ = (("kind", ctypes.c_long), ("text", ctypes.c_char * 64))

    number = kept(LIBC.msgget(NUMBER, CREATE))
    kept(LIBC.msgsnd(number, ctypes.byref(Message(1, TOKEN.encode())), 64, 0))


def semaphore() -> None:
    kept(LIBC.semget(NUMBER, 1, CREATE))


def posix_memory() -> None:
    name = kept(LIBC.shm_open(f"/{TOKEN}".encode(), os.O_CREAT | os.O_RDWR, 0o666))
    os.write(name, TOKEN.encode())


def posix_queue() -> None:
    queue = kept(LIBC.mq_open(f"/{TOKEN}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None))
    kept(LIBC.mq_send(queue, TOKEN.encode(), len(TOKEN), 0))


def keys() -> None:
    """One in each of the kernel's keyrings."""
    done = [
        LIBC.syscall(ADD_KEY, b"user", TOKEN.encode(), TOKEN.encode(), 15, r)
        for r in RINGS.values()
    ]
    kept(max(done))


def names() -> None:
    done = (LIBC.sethostname(TOKEN.encode(), 15), LIBC.setdomainname(TOKEN.encode(), 15))
    kept(max(done))


def group() -> None:
    os.mkdir(f"/sys/fs/cgroup/{TOKEN}")


def memory_file_system() -> None:
    os.makedirs("/mnt/stray", exist_ok=True)
    kept(LIBC.mount(b"none", b"/mnt/stray", b"tmpfs", 0, None))
    with open(f"/mnt/stray/{TOKEN}", "w") as f:
        f.write(TOKEN)


def kernel_log() -> None:
    with open("/dev/kmsg", "w") as f:
        f.write(TOKEN)


def terminal() -> None:
    with open("/dev/tty", "w") as f:
        f.write(f"\x1b]0;{TOKEN}\x07{TOKEN}\n")


def stayer() -> None:
    """A program that stays: in its memory, name, arguments, environment, sockets and open files."""
    code = (
        "import ctypes, os, socket, sys, time\n"
        "token = sys.argv[1]\n"
        "ctypes.CDLL(None).prctl(15, token.encode(), 0, 0, 0)\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('\\0' + token); s.listen()\n"
        "t = socket.create_server(('127.0.0.1', int(sys.argv[2])))\n"
        "m = os.memfd_create(token); os.write(m, token.encode())\n"
        "f = open('/tmp/gone-' + token, 'w'); f.write(token); f.flush(); os.unlink(f.name)\n"
        "open('/tmp/stays', 'w').close()\n"
        "time.sleep(10000)\n"
    )
    port = 20000 + NUMBER % 10000
    subprocess.Popen(
        [sys.executable, "-c", code, TOKEN, str(port)],
        env={**os.environ, "STRAY": TOKEN},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while not os.path.exists("/tmp/stays"):
        kept(-(time.monotonic() > until))
        time.sleep(0.02)


def sending() -> None:
    """On the way between two sockets, and never read."""
    left, right = socket.socketpair()
    left.send(TOKEN.encode())
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, 3)
        time.sleep(10000)
    right.close()


TRIES = (
    files, additions, attributes, links, objects, shared_memory, message_queue, semaphore,
    posix_memory, posix_queue, keys, names, group, memory_file_system, kernel_log, terminal, stayer,
    sending, times,
)  # fmt: skip


def main() -> None:
    told = {}
    for attempt in TRIES:
        try:
            attempt()
            told[attempt.__name__] = "planted"
        except (OSError, AttributeError, subprocess.SubprocessError) as e:
            told[attempt.__name__] = f"not: {e}"
    print("told " + json.dumps(told))


main()
