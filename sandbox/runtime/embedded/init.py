"""The first process of a box: starts programs on request, reaps them, and dies with the zygote.

It holds no privilege beyond the box's own and nothing worth reading; it cannot be traced.
"""

import contextlib
import fcntl
import os
import resource
import select
import signal
import socket
import struct
import tarfile
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sandbox.runtime.embedded import cgroup, filesystem, kernel, seccomp, wire

_CAPABILITIES = {
    "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7,
    "NET_BIND_SERVICE": 10, "SYS_CHROOT": 18,
}  # fmt: skip
_KEEP = sum(1 << n for n in _CAPABILITIES.values())
_OPEN_FILES, _STACK_BYTES, _ANY = 65536, 8 << 20, resource.RLIM_INFINITY
_RESOURCES = {
    resource.RLIMIT_NOFILE: (_OPEN_FILES, _OPEN_FILES),
    resource.RLIMIT_STACK: (_STACK_BYTES, _ANY),
    resource.RLIMIT_CORE: (0, 0),
    resource.RLIMIT_AS: (_ANY, _ANY),
    resource.RLIMIT_CPU: (_ANY, _ANY),
    resource.RLIMIT_DATA: (_ANY, _ANY),
    resource.RLIMIT_FSIZE: (_ANY, _ANY),
    resource.RLIMIT_NPROC: (_ANY, _ANY),
}
_FOR_PROGRAMS = [s for s in signal.Signals if s not in (signal.SIGKILL, signal.SIGSTOP)]
"""Python, and the zygote, ignore some signals; what runs in the box should not inherit that."""
_LOW_PORTS = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
_SIOCGIFFLAGS_UP = 0x1 | 0x40
_SIOCSIFFLAGS = 0x8914
_TIOCGPTN, _TIOCSPTLCK = 0x8004_5430, 0x4004_5431


@dataclass(frozen=True, slots=True)
class Setup:
    """What the zygote was asked for."""

    layout: filesystem.Layout
    groups: list[str]
    hostname: str
    workdir: str


def run(setup: Setup, control: int, user_namespace: int | None) -> None:
    """Become the box's first process. Never returns normally."""
    kernel.die_with_parent()
    kernel.hide_memory()
    kernel.set_name("init")
    _set_limits()
    cgroup.join(setup.groups)
    kernel.unshare(kernel.CLONE_NEWCGROUP)
    _network()
    filesystem.build(setup.layout, user_namespace)
    kernel.set_hostname(setup.hostname)
    os.setsid()
    os.umask(0o022)
    _give_up_privileges(user_namespace)
    os.makedirs(setup.workdir, mode=0o755, exist_ok=True)
    channel = socket.socket(fileno=control)
    wire.send(channel, {"ready": True})
    _serve(channel)


def _set_limits() -> None:
    """Not those of whoever started us: a verdict must not depend on their `ulimit`."""
    for limit, values in _RESOURCES.items():
        try:
            resource.setrlimit(limit, values)
        except ValueError:  # in a container that may not raise it: as far as it goes
            hard = resource.getrlimit(limit)[1]
            soft = hard if values[0] == _ANY else min(values[0], hard)
            resource.setrlimit(limit, (soft, hard))


def _network() -> None:
    """A loopback that is up, and on which root in the box may use the low ports."""
    with open(_LOW_PORTS, "w", encoding="ascii") as f:
        f.write("0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh", b"lo", _SIOCGIFFLAGS_UP) + b"\0" * 16
        fcntl.ioctl(s, _SIOCSIFFLAGS, request)


def _give_up_privileges(user_namespace: int | None) -> None:
    if user_namespace is not None:
        kernel.join_namespace(user_namespace, kernel.CLONE_NEWUSER)
        os.close(user_namespace)
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    kernel.no_new_privileges()
    kernel.bound_capabilities(_KEEP)
    kernel.set_capabilities(_KEEP)
    # Changing credentials resets both of these.
    kernel.hide_memory()
    kernel.die_with_parent()
    kernel.load_seccomp(seccomp.program())


def _serve(channel: socket.socket) -> None:
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    running: dict[int, socket.socket] = {}
    watched: list[socket.socket | int] = [channel, wake_read]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if wake_read in ready:
            _drain(wake_read)
            for pid, status in _ended():
                if reply := running.pop(pid, None):
                    _tell(reply, {"exit": os.waitstatus_to_exitcode(status)})
                    reply.close()
        if channel in ready:
            request, fds = wire.receive(channel)
            if request is None:
                return  # the host let go of the box; our end is the end of everything in it
            _answer(request, fds, running)


def _answer(request: dict[str, Any], fds: list[int], running: dict[int, socket.socket]) -> None:
    reply = socket.socket(fileno=fds.pop(0))
    try:
        if request["op"] == "put":
            pid = _unpack(fds[0], request["folder"])
        elif request.get("pty"):
            pid = _spawn_on_terminal(request, reply)
        else:
            pid = _spawn(request, [(os.POSIX_SPAWN_DUP2, fd, i) for i, fd in enumerate(fds)])
    except OSError as e:
        _tell(reply, {"error": f"{e.strerror}: {e.filename}" if e.filename else str(e)})
        reply.close()
    else:
        running[pid] = reply
    finally:
        for fd in fds:
            os.close(fd)


def _spawn(request: dict[str, Any], actions: list[tuple[Any, ...]]) -> int:
    os.chdir(request["cwd"])
    # The search for the program goes by our own PATH, not by the one it is given.
    os.environ["PATH"] = request["env"].get("PATH", os.defpath)
    try:
        return os.posix_spawnp(
            request["argv"][0],
            request["argv"],
            request["env"],
            file_actions=actions,
            setsid=True,
            setsigmask=[],
            setsigdef=_FOR_PROGRAMS,
        )
    finally:
        os.chdir("/")


def _spawn_on_terminal(request: dict[str, Any], reply: socket.socket) -> int:
    master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        number = struct.unpack("i", fcntl.ioctl(master, _TIOCGPTN, b"\0" * 4))[0]
        fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *request["pty"], 0, 0))
        # The session leader's first open of a terminal makes it the controlling one.
        opened: list[tuple[Any, ...]] = [
            (os.POSIX_SPAWN_OPEN, 0, f"/dev/pts/{number}", os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        ]
        pid = _spawn(request, opened)
        wire.send(reply, {"terminal": True}, [master])
        return pid
    finally:
        os.close(master)


def _unpack(archive: int, folder: str) -> int:
    """Unpack a tar in a child, so that a bad archive cannot take init down."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.makedirs(folder, exist_ok=True)
        with os.fdopen(archive, "rb") as f, tarfile.open(fileobj=f, mode="r|") as tar:
            tar.extraction_filter = lambda member, _: member
            for member in tar:
                _place(tar, member, folder)
        status = 0
    finally:
        os._exit(status)


def _place(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: str) -> None:
    """One member, owned by root. What is in its place gives way: a link is never written through."""
    if member.name.startswith("/") or ".." in member.name.split("/"):
        raise PermissionError(f"{member.name} leads out of the folder")
    target = os.path.join(folder, member.name)
    if os.path.lexists(target) and (os.path.islink(target) or not os.path.isdir(target)):
        os.unlink(target)
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    tar.extract(member, folder, numeric_owner=True)


def _ended() -> Iterator[tuple[int, int]]:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


def _drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(fd, 512):
            pass


def _tell(reply: socket.socket, message: dict[str, Any]) -> None:
    """Whoever asked may be gone: that is no trouble of ours."""
    with contextlib.suppress(OSError):
        wire.send(reply, message)
