"""System calls that Python does not wrap. Each raises OSError, with what was tried."""

import ctypes
import errno
import os
import platform
import signal
import struct

CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000
CLONE_NEWTIME = 0x80
CLONE_PIDFD = 0x1000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE, MS_RELATIME = 1 << 12, 1 << 13, 1 << 14, 1 << 18, 1 << 21
MNT_DETACH = 2

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NAME = 1, 4, 15
_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 22, 24, 38
_SECCOMP_MODE_FILTER = 2
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH, _AT_EMPTY_PATH, _AT_FDCWD = 1, 4, 0x1000, -100
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 1, 2, 4
_MOUNT_ATTR_IDMAP = 0x0010_0000
_CAP_VERSION_3 = 0x2008_0522
LAST_CAP = 40

# clone3, open_tree, move_mount and mount_setattr have one number on every architecture.
_CLONE3, _OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 435, 428, 429, 442
_BY_ARCH = {
    "x86_64": {"pivot_root": 155, "capset": 126},
    "aarch64": {"pivot_root": 41, "capset": 91},
}

MACHINES = tuple(_BY_ARCH)

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _number(name: str) -> int:
    try:
        return _BY_ARCH[platform.machine()][name]
    except KeyError:
        raise OSError(errno.ENOSYS, f"{name} is not known on {platform.machine()}") from None


def read(path: str) -> str:
    """One of the kernel's small files.

    Without a buffer or a codec: a process that was forked pays for each page it touches.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = b""
        while block := os.read(fd, 1 << 16):
            data += block
        return data.decode()
    finally:
        os.close(fd)


def write(path: str, value: str) -> None:
    """To one of them, in one piece."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


def mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode(),
        ctypes.c_ulong(flags),
        data.encode(),
    )
    _checked(result, f"mount {kind or 'bind'} on {target}")


def bind(source: str, target: str) -> None:
    mount(source, target, "", MS_BIND)


def remount_read_only(target: str, flags: int) -> None:
    mount("", target, "", MS_BIND | MS_REMOUNT | MS_RDONLY | flags)


def enter_root(folder: str) -> None:
    """Make `folder`, a mount, the root of this mount namespace, and forget the old one."""
    os.chdir(folder)
    _checked(_libc.syscall(_number("pivot_root"), b".", b"."), "pivot_root")
    _checked(_libc.umount2(b".", MNT_DETACH), "umount of the old root")
    os.chdir("/")


def move(source: str, target: str) -> None:
    """Move a mount, with what is mounted below it."""
    mount(source, target, "", MS_MOVE)


def mount_mapped(source: str, target: str, user_namespace: int) -> None:
    """Bind `source` so that its owners are seen through the user namespace's mapping."""
    fd = _open_tree(source, _OPEN_TREE_CLONE)
    try:
        _set_attributes(fd, _MOUNT_ATTR_IDMAP, user_namespace)
        attach(fd, target)
    finally:
        os.close(fd)


def detached(source: str, user_namespace: int | None, *, read_only: bool = True) -> int:
    """A view of `source` that is mounted nowhere yet: see `attach`."""
    fd = _open_tree(source, _OPEN_TREE_CLONE)
    flags = _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV | (_MOUNT_ATTR_RDONLY if read_only else 0)
    try:
        if user_namespace is None:
            _set_attributes(fd, flags, 0)
        else:
            _set_attributes(fd, flags | _MOUNT_ATTR_IDMAP, user_namespace)
    except BaseException:
        os.close(fd)
        raise
    return fd


def attach(tree: int, target: str) -> None:
    """Mount what `detached` gave."""
    result = _libc.syscall(
        _MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH
    )
    _checked(result, f"move_mount on {target}")


def _open_tree(source: str, flags: int) -> int:
    result = _libc.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(source), flags | os.O_CLOEXEC)
    return _checked(result, f"open_tree {source}")


def _set_attributes(tree: int, attributes: int, user_namespace: int) -> None:
    wanted = struct.pack("QQQQ", attributes, 0, 0, user_namespace)
    result = _libc.syscall(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, wanted, len(wanted))
    _checked(result, "mount_setattr (idmapped mount)")


def set_fs_ids(number: int) -> None:
    """Whom file systems see acting; the calls report the old value, never an error."""
    _libc.setfsgid(number)
    _libc.setfsuid(number)


def set_capabilities(keep: int) -> None:
    """The effective and permitted sets, as a bit mask."""
    low, high = keep & 0xFFFF_FFFF, keep >> 32
    header = struct.pack("II", _CAP_VERSION_3, 0)
    sets = struct.pack("IIIIII", low, low, 0, high, high, 0)
    _checked(_libc.syscall(_number("capset"), header, sets), "capset")


def bound_capabilities(keep: int) -> None:
    """What no process from here on can ever gain."""
    for number in range(LAST_CAP + 1):
        if not keep >> number & 1:
            _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)


def die_with_parent() -> None:
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl(PDEATHSIG)")


def hide_memory() -> None:
    """No process of the same user may trace this one or read its memory, environment, maps."""
    _checked(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl(DUMPABLE)")


def set_name(name: str) -> None:
    _libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def no_new_privileges() -> None:
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(NO_NEW_PRIVS)")


def load_seccomp(program: bytes) -> None:
    """Install a BPF program (8 bytes an instruction) for this process and all it starts."""
    code = ctypes.create_string_buffer(program, len(program))
    wanted = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    result = _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, wanted, 0, 0)
    _checked(result, "prctl(SECCOMP)")


def join_namespace(fd: int, kind: int) -> None:
    _checked(_libc.setns(fd, kind), "setns")


def unshare(kinds: int) -> None:
    _checked(_libc.unshare(kinds), "unshare")


def become_root_of_own() -> None:
    """Without root: a user namespace in which we are, and which owns all that is made in it.

    Only our own user exists there: everything in a box belongs to whoever started us.
    """
    uid, gid = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1"),
    ):  # fmt: skip
        write(f"/proc/self/{name}", text)


def wait_until_mapped() -> None:
    """In a new user namespace: until whoever made it has said who we are there."""
    while not read("/proc/self/uid_map"):
        os.sched_yield()


def may_set_groups() -> bool:
    return read("/proc/self/setgroups").strip() == "allow"


def set_hostname(name: str) -> None:
    data = name.encode()
    _checked(_libc.sethostname(data, len(data)), "sethostname")


def fork_into(kinds: int) -> tuple[int, int]:
    """fork() into new namespaces: (pid, pidfd) in the parent, (0, -1) in the child.

    The interpreter must hear of the fork, or its locks would be those of the parent.
    """
    pidfd = ctypes.c_int(-1)
    arguments = (ctypes.c_uint64 * 11)()
    arguments[0] = kinds | CLONE_PIDFD
    arguments[1] = ctypes.addressof(pidfd)
    arguments[4] = signal.SIGCHLD
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = _libc.syscall(_CLONE3, ctypes.byref(arguments), ctypes.sizeof(arguments))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0, -1
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    return _checked(pid, "clone3"), pidfd.value


def close_all_but(keep: set[int]) -> None:
    """Close every descriptor that is not in `keep`."""
    start = 0
    for fd in sorted(keep):
        if fd > start:
            os.closerange(start, fd)
        start = fd + 1
    _checked(_libc.close_range(start, 0xFFFF_FFFF, 0), "close_range")
