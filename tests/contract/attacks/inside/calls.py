"""Runs in a box: system calls that it should not have."""

import array
import ctypes
import errno
import fcntl
import mmap
import os
import socket
import struct
import time

from tests.contract.attacks.inside.tries import LIBC, apart, attempt, call, report, verdict

SPACES = {
    "mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000,
    "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000, "time": 0x80,
}  # fmt: skip
BUFFER = ctypes.create_string_buffer(4096)
CLOCK = (ctypes.c_long * 2)(1_700_000_000, 0)
X32 = 0x40000000
DEATH = {"killed by signal 31", "killed by signal 11"}
"""An answer too: SIGSYS, SIGSEGV."""


def mounts() -> str:
    return verdict(
        {
            "tmpfs": call(165, b"t", b"/tmp", b"tmpfs", 0, 0),
            "proc": call(165, b"p", b"/tmp", b"proc", 0, 0),
            "bind": call(165, b"/etc", b"/tmp", 0, 4096, 0),
            "remount": call(165, 0, b"/", 0, 32, 0),
            "remount of /sys": call(165, 0, b"/sys", 0, 32 | 4096, 0),
        }
    )


def unmounts() -> str:
    return verdict(
        {
            path: call(166, path.encode(), 2)
            for path in ("/proc/sys", "/proc/kcore", "/sys", "/proc", "/")
        }
    )


def new_mounts() -> str:
    return verdict(
        {
            "fsopen": call(430, b"tmpfs", 0),
            "fsconfig": call(431, 3, 6, 0, 0, 0),
            "fsmount": call(432, 3, 0, 0),
            "fspick": call(433, -100, b"/", 0),
            "open_tree": call(428, -100, b"/", 1),
            "move_mount": call(429, -100, b"/etc", -100, b"/tmp", 0),
            "mount_setattr": call(442, -100, b"/", 0, BUFFER, 32),
        }
    )


def unshare() -> str:
    return verdict({name: call(272, flag) for name, flag in SPACES.items()})


def _clone(flag: int) -> str:
    if flag == 0x80:
        return "ENOSYS"  # a time namespace cannot be made so: its bit is part of the signal
    said = LIBC.syscall(56, ctypes.c_long(flag | 17), 0, 0, 0, 0)
    if said == 0:
        os._exit(0)
    return "OK" if said > 0 else call(56, flag | 17, 0, 0, 0, 0)


def clone() -> str:
    return verdict({name: _clone(flag) for name, flag in SPACES.items()})


def clone3() -> str:
    found = {}
    for name, flag in SPACES.items():
        arguments = (ctypes.c_uint64 * 11)(flag, 0, 0, 0, 17)
        said = LIBC.syscall(435, arguments, ctypes.c_long(88))
        if said == 0:
            os._exit(0)
        found[name] = "OK" if said > 0 else call(435, arguments, 88)
    return verdict(found)


def setns() -> str:
    found = {}
    for name in os.listdir("/proc/self/ns"):
        fd = os.open(f"/proc/self/ns/{name}", os.O_RDONLY)
        found[name] = call(308, fd, 0)
        os.close(fd)
    pidfd = LIBC.syscall(434, 1, 0)
    found["of process 1"] = call(308, pidfd, 0x20000) if pidfd >= 0 else "EPERM"
    return verdict(found)


def keys() -> str:
    return verdict(
        {
            "add_key": call(248, b"user", b"a", b"b", 1, -4),
            "request_key": call(249, b"user", b"a", 0, -4),
            "keyctl": call(250, 0, -4, 0),
            "keyctl join": call(250, 1, 0),
        }
    )


def rings() -> str:
    return verdict(
        {
            "setup": call(425, 1, BUFFER),
            "enter": call(426, 3, 0, 0, 0, 0, 0),
            "register": call(427, 3, 0, 0, 0),
        }
    )


def family(number: int, kind: int = socket.SOCK_STREAM, protocol: int = 0) -> str:
    return attempt(lambda: socket.socket(number, kind, protocol).close())


def vsock() -> str:
    return verdict({str(kind): family(40, kind) for kind in (1, 2, 5)})


def raw() -> str:
    return verdict(
        {
            "packet": family(17, socket.SOCK_RAW, 768),
            "packet, cooked": family(17, socket.SOCK_DGRAM, 768),
            "inet": family(2, socket.SOCK_RAW, 1),
            "inet6": family(10, socket.SOCK_RAW, 58),
        }
    )


def families() -> str:
    """But those of which programs need some: UNIX, INET, INET6, NETLINK."""
    others = [n for n in range(1, 46) if n not in (1, 2, 10, 16, 17, 40)]
    return verdict(
        {str(n): family(n, kind) for n in others for kind in (1, 2, 3, 5)},
        {"ESOCKTNOSUPPORT", "EPROTONOSUPPORT"},
    )


def routes() -> str:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.bind((0, 0))
        # RTM_NEWADDR: 10.0.0.1/24 on interface 1, then a route through it.
        address = struct.pack("BBBBI", 2, 24, 0, 0, 1) + struct.pack(
            "HH4s", 8, 2, bytes((10, 0, 0, 1))
        )
        route = struct.pack("BBBBBBBBI", 2, 0, 0, 0, 254, 3, 253, 1, 0) + struct.pack(
            "HHI", 8, 4, 1
        )
        found = {}
        for name, kind, body in (("address", 20, address), ("route", 24, route)):
            s.send(struct.pack("IHHII", 16 + len(body), kind, 5 | 0x400, 1, 0) + body)
            number = -struct.unpack("i", s.recv(4096)[16:20])[0]
            found[name] = "OK" if number == 0 else errno.errorcode[number]
    with socket.socket() as s:
        request = struct.pack("16sh", b"lo", 0) + bytes(16)
        found["interface down"] = attempt(lambda: fcntl.ioctl(s, 0x8914, request))
    return verdict(found)


def watchers() -> str:
    return verdict(
        {
            "bpf": call(321, 0, BUFFER, 128),
            "bpf, program": call(321, 5, BUFFER, 128),
            "perf_event_open": call(298, BUFFER, 0, -1, -1, 0),
            "fanotify_init": call(300, 0, 0),
        }
    )


def handles() -> str:
    handle = ctypes.create_string_buffer(struct.pack("Ii", 8, 1) + bytes(128))
    root = os.open("/", os.O_RDONLY)
    number = ctypes.c_int()
    call(303, -100, b"/etc", handle, ctypes.byref(number), 0)
    inode2 = ctypes.create_string_buffer(struct.pack("Iiii", 8, 1, 2, 0) + bytes(16))
    # Making a handle shows nothing; opening one is the attack.
    return verdict({"made": call(304, root, handle, 0), "guessed": call(304, root, inode2, 0)})


def clocks() -> str:
    return verdict(
        {
            "clock_settime": call(227, 0, CLOCK),
            "settimeofday": call(164, CLOCK, 0),
            "adjtimex": call(159, _adjust()),
            "clock_adjtime": call(305, 0, _adjust()),
            "stime by date": attempt(lambda: time.clock_settime(0, 1_700_000_000)),
        }
    )


def _adjust() -> object:
    return ctypes.create_string_buffer(struct.pack("I", 0x4000) + bytes(400))


def machine() -> str:
    return verdict(
        {
            "reboot": call(169, 0xFEE1DEAD, 672274793, 0, 0),
            "kexec_load": call(246, 0, 0, 0, 0),
            "kexec_file_load": call(320, -1, -1, 0, 0, 0),
            "init_module": call(175, BUFFER, 10, b""),
            "finit_module": call(313, 0, b"", 0),
            "delete_module": call(176, b"ext4", 0o4000),
            "swapon": call(167, b"/etc/passwd", 0),
            "swapoff": call(168, b"/etc/passwd"),
            "quotactl": call(179, 0x800002 << 8, b"/dev/vda", 0, BUFFER),
            "quotactl_fd": call(443, 0, 0x800002 << 8, 0, BUFFER),
            "acct": call(163, b"/etc/passwd"),
            "iopl": call(172, 3),
            "ioperm": call(173, 0x80, 1, 1),
            "vhangup": call(153),
        }
    )


def names() -> str:
    return verdict({"host": call(170, b"x", 1), "domain": call(171, b"x", 1)})


def log() -> str:
    return verdict(
        {
            "read": call(103, 3, BUFFER, 100),
            "clear": call(103, 5, 0, 0),
            "size": call(103, 10, 0, 0),
        }
    )


def old() -> str:
    return verdict(
        {
            "modify_ldt": call(154, 0, BUFFER, 16),
            "uselib": call(134, b"/bin/sh"),
            "ustat": call(136, 0, BUFFER),
            "sysfs": call(139, 3, 0, 0),
            "_sysctl": call(156, BUFFER),
            "create_module": call(174, b"x", 1),
            "nfsservctl": call(180, 0, 0, 0),
            "lookup_dcookie": call(212, 0, BUFFER, 10),
        }
    )


def fault() -> str:
    return verdict({"any": call(323, 0), "own faults only": call(323, 1)})


def memory() -> str:
    pages = (ctypes.c_ulong * 1)(1)
    return verdict(
        {
            "migrate_pages": call(256, 1, 1, pages, pages),
            "move_pages": call(279, 1, 0, 0, 0, 0, 0),
            "kcmp": call(312, 1, os.getpid(), 0, 0, 0),
            "process_madvise": call(440, _pidfd(), _vector(), 1, 20, 0),
            "pidfd_getfd": call(438, _pidfd(), 0, 0),
        },
        {"EBADF"},
    )


def _pidfd() -> int:
    return int(LIBC.syscall(434, 1, 0))


def _vector() -> object:
    return (ctypes.c_ulong * 2)(0x400000, 8)


def random_layout() -> str:
    return verdict(
        {"no randomness": call(135, 0x0040000), "readable is executable": call(135, 0x0400000)}
    )


def thirty_two() -> str:
    """The same calls by the door for programs of 32 bits."""
    return verdict(
        {
            "mount": apart(lambda: call(X32 | 165, b"t", b"/tmp", b"tmpfs", 0, 0)),
            "unshare": apart(lambda: call(X32 | 272, 0x10000000)),
        },
        DEATH,
    )


def interrupt_80() -> str:
    """unshare(CLONE_NEWUSER) as an i386 program makes it: death is an answer too."""

    def go() -> str:
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(
            b"\x53\xb8"
            + struct.pack("I", 310)
            + b"\xbb"
            + struct.pack("I", 0x10000000)
            + b"\xcd\x80\x5b\xc3"
        )
        made = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        number = made()
        return "OK" if number >= 0 else errno.errorcode[-number]

    return verdict({"unshare": apart(go)}, DEATH)


def typing() -> str:
    """Into the terminal of somebody else: characters that their shell takes for typed."""
    _, slave = os.openpty()
    os.setsid()
    fcntl.ioctl(slave, 0x540E, 0)
    return verdict(
        {
            "TIOCSTI": attempt(lambda: fcntl.ioctl(slave, 0x5412, b"x")),
            "TIOCSTI, as 64 bits": "OK"
            if LIBC.ioctl(slave, ctypes.c_ulong(0x5412 | 1 << 32), b"x") == 0
            else "EPERM",
            "TIOCLINUX": attempt(lambda: fcntl.ioctl(slave, 0x541C, array.array("b", [2]))),
        },
        {"EIO", "ENOTTY"},
    )


def capabilities() -> str:
    """Those it has not, and ways to get them."""
    full = struct.pack("IIIIII", 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x1FF, 0x1FF, 0x1FF)
    header = struct.pack("Ii", 0x20080522, 0)
    admin = 21
    return verdict(
        {
            "capset": call(126, header, full),
            "ambient": call(157, 47, 2, admin, 0, 0),
            "securebits": call(157, 28, 0, 0, 0, 0),
            "bounding": "OK" if LIBC.prctl(23, admin, 0, 0, 0) == 1 else "EPERM",
        },
        {"EINVAL"},
    )


def filters() -> str:
    """prctl and seccomp cannot take away what was laid on."""
    return verdict(
        {
            "no new privileges": call(157, 38, 0, 0, 0, 0),
            "seccomp": call(317, 0, 0, 0),
            "suspended": call(101, 0x4206, os.getppid(), 0, 1 << 21),
        },
        {"EINVAL"},
    )


report({
    "mount a file system": mounts, "unmount what masks /proc and /sys": unmounts,
    "mount with the new calls": new_mounts, "change its root file system": lambda: verdict({"pivot_root": call(155, b"/", b"/tmp")}),
    "make namespaces with unshare": unshare, "make namespaces with clone": clone, "make namespaces with clone3": clone3,
    "enter other namespaces": setns, "use the kernel's key rings": keys, "use io_uring": rings,
    "open a socket to the hypervisor": vsock, "open raw sockets": raw, "open sockets of rare families": families,
    "change routes, addresses and interfaces": routes, "load BPF programs, watch the machine's events": watchers,
    "open files by handle": handles, "set the clock": clocks, "reboot, load modules, swap, account": machine,
    "rename the host": names, "read the kernel's log": log, "use obsolete calls": old, "handle page faults": fault,
    "move or give back process 1's memory": memory, "switch off the random layout of memory": random_layout,
    "make x32 system calls": thirty_two, "make i386 system calls": interrupt_80, "type into a terminal": typing,
    "raise its capabilities": capabilities, "take off its system call filter": filters,
})  # fmt: skip
