"""The processes that a container's first one starts: sent to the box and run there with `server`."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # see `server`
import os

from sandbox.runtime.foreground import look

RESET = [n for n in range(1, 32) if n not in (9, 19)]
"""Python ignores some signals; what runs in the box should not inherit that."""


def first_that_opens(paths: tuple[str, ...], flags: int = os.O_RDONLY) -> int:
    for path in paths:
        try:
            return os.open(path, flags)
        except OSError:
            continue
    return -1


def hide() -> None:
    """Have the kernel refuse others a look into this process, as after any change of user."""
    try:
        with open("/proc/self/comm", "wb") as f:
            f.write(b"init")
        os.setegid(65534)
        os.setegid(0)
    except OSError:
        pass


def spawn(argv: list[bytes], env: list[bytes], cwd: bytes, descriptors: list[int]) -> int:
    variables = dict(pair.split(b"=", 1) for pair in env)
    # The search for the program goes by our own PATH, not by the one it is given.
    os.environb[b"PATH"] = variables.get(b"PATH", b"/usr/bin:/bin")
    os.chdir(cwd)
    try:
        return os.posix_spawnp(
            argv[0],
            argv,
            variables,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate(descriptors)],
            setsid=True,
            setsigmask=[],
            setsigdef=list(RESET),
        )
    finally:
        os.chdir("/")


def spawn_as(
    owner: tuple[int, int], argv: list[bytes], env: list[bytes], cwd: bytes, descriptors: list[int]
) -> int:
    """As another user. A program that cannot be started says why over a pipe of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            for to, fd in enumerate(descriptors):
                os.dup2(fd, to)
            for number in RESET:
                signal.signal(number, signal.SIG_DFL)
            os.setgroups([])
            os.setgid(owner[1])
            os.setuid(owner[0])
            os.chdir(cwd)
            os.execvpe(argv[0], argv, dict(pair.split(b"=", 1) for pair in env))  # noqa: S606
        except OSError as e:
            os.write(write, b"%d" % (e.errno or 1))
        finally:
            os._exit(127)
    os.close(write)
    said = os.read(read, 16)
    os.close(read)
    if said:
        os.waitpid(pid, 0)
        raise OSError(int(said), os.strerror(int(said)), argv[0])
    return pid


def close_if_open(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        pass


def who_may_look(pid: int) -> tuple[int, int]:
    """Whose programs have the terminal of this one: to others the kernel does not show enough."""
    with open(f"/proc/{pid}/stat", "rb") as f:
        leader = int(f.read().rpartition(b")")[2].split()[5])
    try:
        found = os.stat(f"/proc/{leader}")
    except OSError:
        found = os.stat(f"/proc/{pid}")
    return found.st_uid, found.st_gid


def look_as(owner: tuple[int, int], pid: int, control: str, descriptors: list[int]) -> int:
    """Print what the foreground of a terminal does, as a user who may see that."""
    child = os.fork()
    if child == 0:
        try:
            signal.set_wakeup_fd(-1)
            os.dup2(descriptors[1], 1)
            for name in os.listdir("/proc/self/fd"):
                if name != "1":
                    close_if_open(int(name))
            if owner != (os.getuid(), os.getgid()):
                os.setgroups([])
                os.setgid(owner[1])
                os.setuid(owner[0])
            seen = look(pid, control)
            if seen is not None:
                os.write(1, "\0".join(seen).encode("utf-8", "surrogateescape"))
        finally:
            os._exit(0)
    return child
