"""Starting a program in a box, from a process that is in it already."""

import fcntl
import os
import signal
import struct
import termios
from typing import Any

from sandbox.runtime.base import CONTROL, OUTPUT, STATUS
from sandbox.runtime.embedded.privileges import FOR_PROGRAMS

_TIOCGPTN, _TIOCSPTLCK = 0x8004_5430, 0x4004_5431
_ERROR_BYTES = 4096
ROOT = "0:0"


def with_streams(request: dict[str, Any], fds: list[int]) -> int:
    """The process id of a program with these as its first descriptors. Raises OSError."""
    if request["user"] == ROOT:
        return _spawn(request, [(os.POSIX_SPAWN_DUP2, fd, i) for i, fd in enumerate(fds)])
    return _fork(request, dict(enumerate(fds)), None)


def on_terminal(request: dict[str, Any], wires: list[int]) -> tuple[int, int]:
    """The process id of a program on a new terminal, and the host's end of that.

    `wires`: what is to be its CONTROL, OUTPUT and STATUS, or nothing.
    """
    numbers = dict(zip((CONTROL, OUTPUT, STATUS), wires, strict=False))
    master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        number = struct.unpack("i", fcntl.ioctl(master, _TIOCGPTN, b"\0" * 4))[0]
        fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *request["pty"], 0, 0))
        path = f"/dev/pts/{number}"
        if request["user"] != ROOT:
            os.chown(path, _numbers(request["user"])[0], -1)
            return _fork(request, numbers, path), master
        # The session leader's first open of a terminal makes it the controlling one.
        opened: list[tuple[Any, ...]] = [
            (os.POSIX_SPAWN_OPEN, 0, path, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
            *((os.POSIX_SPAWN_DUP2, fd, number) for number, fd in numbers.items()),
        ]
        return _spawn(request, opened), master
    except BaseException:
        os.close(master)
        raise


def become(request: dict[str, Any], fds: dict[int, int], terminal: str | None = None) -> None:
    """Turn this process into the program, with these descriptors by number. Raises OSError."""
    os.setsid()
    os.umask(request["umask"])
    signal.set_wakeup_fd(-1)
    for one in FOR_PROGRAMS:
        if signal.getsignal(one) != signal.SIG_DFL:
            signal.signal(one, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if terminal is not None:
        fds = dict.fromkeys(range(3), os.open(terminal, os.O_RDWR)) | fds
    # First above the numbers they are to have: one may be in the place of another.
    above = max(fds) + 1
    high = {number: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) for number, fd in fds.items()}
    for number, fd in high.items():
        os.dup2(fd, number)
    uid, gid = _numbers(request["user"])
    if (uid, gid) != (0, 0):
        os.setgroups([gid])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    os.chdir(request["cwd"])
    os.execvpe(  # noqa: S606 - it takes this process over
        request["argv"][0], request["argv"], request["env"]
    )


def _spawn(request: dict[str, Any], actions: list[tuple[Any, ...]]) -> int:
    try:
        os.umask(request["umask"])
        os.chdir(request["cwd"])
        # The search for the program goes by our own PATH, not by the one it is given.
        os.environ["PATH"] = request["env"].get("PATH", os.defpath)
        return os.posix_spawnp(
            request["argv"][0],
            request["argv"],
            request["env"],
            file_actions=actions,
            setsid=True,
            setsigmask=[],
            setsigdef=FOR_PROGRAMS,
        )
    except ValueError as e:  # a NUL byte, which no argument of a program can have
        raise OSError(str(e)) from e
    finally:
        os.chdir("/")


def _fork(request: dict[str, Any], fds: dict[int, int], terminal: str | None) -> int:
    """For another user: posix_spawn cannot change who somebody is."""
    said, say = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
    except OSError:  # the box is full
        os.close(said)
        os.close(say)
        raise
    if pid == 0:
        try:
            become(request, fds, terminal)
        except BaseException as e:  # noqa: BLE001 - the child's boundary: say it, then end
            os.write(say, str(e).encode())
        finally:
            os._exit(1)
    os.close(say)
    try:
        if error := os.read(said, _ERROR_BYTES):
            raise OSError(error.decode())
    finally:
        os.close(said)
    return pid


def _numbers(user: str) -> tuple[int, int]:
    uid, _, gid = user.partition(":")
    return int(uid), int(gid)
