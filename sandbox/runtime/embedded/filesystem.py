"""The file system of a box: overlay, /proc, /dev, /sys, and what of them is masked.

All overlay paths are relative to the box's folder: a box can read its own mount options, and
they must not tell it where on the host it lives.
"""

import os
from dataclasses import dataclass

from sandbox.runtime.embedded import kernel

UPPER, WORK, ROOT, STAGE = "upper", "work", "root", "stage"
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_MASKED = (
    "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
    "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/proc/config.gz", "/sys/firmware",
    "/sys/devices/virtual/powercap", "/sys/fs/cgroup", "/sys/kernel/security",
)  # fmt: skip
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_QUIET = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
_ALL_CAPABILITIES = (1 << kernel.LAST_CAP + 1) - 1
_CAP_SYS_RESOURCE = 1 << 24
_TTY_GROUP = 5


@dataclass(frozen=True, slots=True)
class Layout:
    folder: str
    lowers: tuple[str, ...]
    """Read-only folders, the topmost first."""
    owner: int
    """The host's user id of the box's root: 0, or the start of its own range."""


def prepare(folder: str) -> None:
    """What a box's folder has to hold before it is built."""
    for name in (UPPER, WORK, ROOT, STAGE):
        os.makedirs(os.path.join(folder, name), exist_ok=True)


def build(layout: Layout, user_namespace: int | None) -> None:
    """Called in the new mount namespace, still as the host's root; ends inside the box."""
    kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    os.chdir(layout.folder)
    _overlay(layout, user_namespace)
    os.chdir(ROOT)
    for name in ("proc", "dev", "sys", "tmp"):
        os.makedirs(name, exist_ok=True)
    kernel.mount("proc", "proc", "proc", _QUIET)
    _devices(layout.owner)
    kernel.mount("sysfs", "sys", "sysfs", _QUIET | kernel.MS_RDONLY)
    kernel.enter_root(".")
    _mask()


def _overlay(layout: Layout, user_namespace: int | None) -> None:
    kernel.mount("tmpfs", STAGE, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=64k,mode=755")
    lowers = []
    for i, lower in enumerate(layout.lowers):
        target = f"{STAGE}/{i}"
        os.mkdir(target)
        if user_namespace is None:
            kernel.bind(lower, target)
        else:
            kernel.mount_mapped(lower, target, user_namespace)
        lowers.append(target)
    upper, work = UPPER, WORK
    if user_namespace is not None:
        # Upper and work have to lie on one mount: the box's own folder, seen mapped.
        os.mkdir(f"{STAGE}/own")
        kernel.mount_mapped(".", f"{STAGE}/own", user_namespace)
        upper, work = f"{STAGE}/own/{UPPER}", f"{STAGE}/own/{WORK}"
    options = f"lowerdir={':'.join(lowers)},upperdir={upper},workdir={work},volatile"
    # The overlay writes as whoever mounts it, who must be mapped where the files are.
    keep = _ALL_CAPABILITIES & ~_CAP_SYS_RESOURCE
    if user_namespace is not None:
        kernel.set_fs_ids(layout.owner)
        kernel.set_capabilities(keep)
    kernel.mount("overlay", ROOT, "overlay", kernel.MS_RELATIME | kernel.MS_NODEV, options)
    if user_namespace is not None:
        kernel.set_fs_ids(0)
        kernel.set_capabilities(keep)


def _devices(owner: int) -> None:
    kernel.mount("tmpfs", "dev", "tmpfs", kernel.MS_NOSUID | kernel.MS_NOEXEC, "mode=755,size=64k")
    for name in _DEVICES:
        os.close(os.open(f"dev/{name}", os.O_CREAT | os.O_WRONLY))
        kernel.bind(f"/dev/{name}", f"dev/{name}")
    for name in ("pts", "shm", "mqueue"):
        os.mkdir(f"dev/{name}")
    terminals = f"newinstance,ptmxmode=0666,mode=0620,max=256,gid={owner + _TTY_GROUP}"
    kernel.mount("devpts", "dev/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, terminals)
    kernel.mount("shm", "dev/shm", "tmpfs", _QUIET, "mode=1777,size=64m")
    kernel.mount("mqueue", "dev/mqueue", "mqueue", _QUIET)
    os.symlink("pts/ptmx", "dev/ptmx")
    os.symlink("/proc/self/fd", "dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"dev/{name}")


def _mask() -> None:
    for path in _MASKED:
        if os.path.isdir(path):
            kernel.mount("tmpfs", path, "tmpfs", kernel.MS_RDONLY, "size=0k")
        elif os.path.exists(path):
            kernel.bind("/dev/null", path)
    for path in _READ_ONLY:
        if os.path.exists(path):
            kernel.mount(path, path, "", kernel.MS_BIND | kernel.MS_REC)
            kernel.remount_read_only(path, _QUIET)
