"""What a program finds around it: one fixed list, so that no verdict depends on the runtime."""

import json
import resource
from typing import Any

from sandbox.audit.conformance.bench import Bench, expect, hold, python
from sandbox.audit.conformance.registry import Group

GROUP = Group("facts")
_CAPABILITIES = sum(1 << n for n in (0, 1, 3, 4, 5, 6, 7, 10, 18))
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE, SYS_CHROOT."""
_LOOK = """
import json, os, resource, signal, socket, sys, time
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
mounts = {line.split()[1]: line.split() for line in open("/proc/mounts")}
def limit(name):
    return [("any" if n == resource.RLIM_INFINITY else n) for n in resource.getrlimit(getattr(resource, "RLIMIT_" + name))]
def options(path, *wanted):
    have = mounts[path][3].split(",") if path in mounts else []
    return sorted(set(wanted) & set(have))
def text(path):
    try:
        return open(path).read()
    except OSError as e:
        return type(e).__name__
umask = os.umask(0)
# Python ignores two signals itself; two more are the C library's own.
OWN = sum(1 << n - 1 for n in (signal.SIGPIPE, signal.SIGXFSZ, 32, 33))
def address(name):
    try:
        return socket.gethostbyname(name)
    except OSError as e:
        return type(e).__name__
print(json.dumps({
    "users": [os.getresuid(), os.getresgid(), sorted(set(os.getgroups()) - {0})],
    "umask": oct(umask),
    "directory": os.getcwd(),
    "host name": socket.gethostname(),
    "language": os.environ.get("LANG"),
    "time zone": [os.environ.get("TZ"), time.tzname],
    "home": os.environ.get("HOME"),
    "descriptors": sorted(int(n) for n in os.listdir("/proc/self/fd") if int(n) < 3),
    "more descriptors": len([n for n in os.listdir("/proc/self/fd") if int(n) > 2]) - 1,
    "leads its session": os.getsid(0) == os.getpid(),
    "niceness": os.nice(0),
    "scheduler": os.sched_getscheduler(0),
    "ignored signals": int(status["SigIgn"], 16) & ~OWN,
    "blocked signals": int(status["SigBlk"], 16),
    "no new privileges": int(status["NoNewPrivs"]),
    "seccomp": int(status["Seccomp"]),
    "capabilities": [int(status["Cap" + n], 16) for n in ("Prm", "Eff", "Bnd")],
    "capabilities passed on": [int(status["Cap" + n], 16) for n in ("Inh", "Amb")],
    "limits": {n: limit(n) for n in ("NOFILE", "STACK", "CORE", "AS", "CPU", "DATA", "FSIZE", "MEMLOCK")},
    "personality": int(text("/proc/self/personality") or "0", 16) if os.access("/proc/self/personality", os.R_OK) else 0,
    "file systems": {p: mounts[p][2] if p in mounts else None for p in ("/proc", "/dev", "/dev/pts", "/dev/shm", "/dev/mqueue", "/sys")},
    "devices": sorted(set(os.listdir("/dev")) - {"core", "console"}),
    "mount options": {
        "/proc": options("/proc", "nosuid", "nodev", "noexec"),
        "/dev": options("/dev", "nosuid"),
        "/dev/shm": options("/dev/shm", "nosuid", "nodev", "noexec"),
        "/sys": options("/sys", "ro", "nosuid", "nodev", "noexec"),
        "/proc/sys": options("/proc/sys", "ro"),
    },
    "shared memory MiB": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize >> 20,
    "localhost": address("localhost"),
    "its own name": address(socket.gethostname()),
    "resolvers": [line for line in text("/etc/resolv.conf").splitlines() if line.startswith("nameserver") and "127.0.0.1" not in line],
    "low ports": text("/proc/sys/net/ipv4/ip_unprivileged_port_start").strip(),
    "null device": oct(os.stat("/dev/null").st_mode),
}))
"""
_DEVICES = (
    "fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero".split()  # noqa: SIM905
)
_WANTED: dict[str, Any] = {
    "users": [[0, 0, 0], [0, 0, 0], []],
    "umask": "0o22",
    "directory": "/root",
    "host name": "box",
    "language": "C.UTF-8",
    "time zone": ["UTC", ["UTC", "UTC"]],
    "home": "/root",
    "descriptors": [0, 1, 2],
    "more descriptors": 0,
    "leads its session": True,
    "niceness": 0,
    "scheduler": 0,
    "ignored signals": 0,
    "blocked signals": 0,
    "no new privileges": 1,
    "seccomp": 2,
    "capabilities": [_CAPABILITIES] * 3,
    "capabilities passed on": [0, 0],
    "personality": 0,
    "file systems": {
        "/proc": "proc",
        "/dev": "tmpfs",
        "/dev/pts": "devpts",
        "/dev/shm": "tmpfs",
        "/dev/mqueue": "mqueue",
        "/sys": "sysfs",
    },
    "devices": _DEVICES,
    "mount options": {
        "/proc": ["nodev", "noexec", "nosuid"],
        "/dev": ["nosuid"],
        "/dev/shm": ["nodev", "noexec", "nosuid"],
        "/sys": ["nodev", "noexec", "nosuid", "ro"],
        "/proc/sys": ["ro"],
    },
    "shared memory MiB": 64,
    "localhost": "127.0.0.1",
    "its own name": "gaierror",
    "resolvers": [],
    "low ports": "0",
    "null device": "0o20666",
}


@GROUP.check()
def a_program_finds_the_same_world_in_every_runtime(bench: Bench) -> None:
    """Users, rights, limits, signals, devices, mounts, names: one fixed list."""
    with bench.box() as box:
        _compare(json.loads(python(box, _LOOK)), bench)


@GROUP.check()
def a_trusted_program_finds_it_too(bench: Bench) -> None:
    """What is verified is verified in the same world."""
    with bench.box() as box:
        _compare(json.loads(python(box, _LOOK, trusted=True)), bench)


def _compare(found: dict[str, Any], bench: Bench) -> None:
    # In a container of its own, the machine itself may not be able to give more.
    files = min(bench.spec.limits.open_files, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    most = bench.spec.limits.file_mib << 20
    limits = found.pop("limits")
    different = {
        name: f"wanted {_WANTED[name]!r}, found {value!r}"
        for name, value in found.items()
        if value != _WANTED[name]
    }
    hold(not different, f"one world; different: {different}")
    expect(limits["NOFILE"], [files, files], "limit of open files")
    expect(limits["FSIZE"], [most, most], "limit of a file's size")
    expect(
        (limits["CORE"], limits["STACK"][0]),
        ([0, 0], 8 << 20),
        "limits of core dumps and of the stack",
    )
    for name in ("AS", "CPU", "DATA"):
        expect(limits[name], ["any", "any"], f"limit {name}")
