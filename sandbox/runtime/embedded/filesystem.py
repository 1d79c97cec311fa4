"""The file system of a box: overlay, /proc, /dev, /sys, and what of them is masked.

Made in two steps: what is the same in every box is staged before anybody asks for one; the
overlay, which needs to know the image, comes last and takes the staged mounts over.

All overlay paths are relative to the box's folder: a box can read its own mount options, and
they must not tell it where on the host it lives.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sandbox.runtime.embedded import guise, kernel, layer, loop, mounts

UPPER, WORK, ROOT, STAGE = "upper", "work", "root", "stage"
DISK_IMAGE = "disk.img"
TERMINALS = 256
_OWN, _DISK = f"{STAGE}/own", f"{STAGE}/disk"
_STAGED = ("proc", "dev", "sys")
_ETC = {
    "hosts": "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n",
    "resolv.conf": "nameserver 127.0.0.1\n",
    "hostname": "",
}
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_MASKED = (
    "proc/acpi", "proc/kcore", "proc/keys", "proc/latency_stats", "proc/timer_list",
    "proc/timer_stats", "proc/sched_debug", "proc/scsi", "proc/config.gz", "sys/firmware",
    "proc/sys/fs/dentry-state", "proc/sys/fs/inode-nr", "proc/sys/fs/inode-state",
    "sys/devices/virtual/powercap", "sys/fs/cgroup", "sys/kernel/security",
)  # fmt: skip
_READ_ONLY = ("proc/bus", "proc/fs", "proc/irq", "proc/sys", "proc/sysrq-trigger")
_QUIET = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
_ALL_CAPABILITIES = (1 << kernel.LAST_CAP + 1) - 1
_CAP_SYS_RESOURCE = 1 << 24
_TTY_GROUP = 5


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a box is built."""

    folder: str
    user_namespace: int | None
    owner: int
    """The host's user id of the box's root: 0, or the start of its own range."""
    rootless: bool = False

    @property
    def ttys(self) -> str:
        """Options of /dev/pts."""
        group = "" if self.rootless else f",gid={self.owner + _TTY_GROUP}"
        return f"newinstance,ptmxmode=0666,mode=0620{group}"


@dataclass(frozen=True, slots=True)
class Layout:
    """What a box is asked to look like."""

    lowers: list[str]
    """Read-only folders, the topmost first."""
    workdir: str
    hostname: str
    disk: str
    """watch, tmpfs or loop."""
    disk_mib: int
    terminals: int
    mounts: list[tuple[str, str]]
    """(source on the host, path in the box)"""
    tmpfs: dict[str, int]
    """path → MiB"""
    guise: dict[str, str] | None
    """Of a box with a clock of its own: files, by path."""
    snapshot: int | None
    """Descriptor of a tar of changes to start with."""


def prepare(folder: str) -> None:
    """What a box's folder has to hold before it is built."""
    os.mkdir(folder, 0o700)
    for name in (UPPER, WORK, ROOT, STAGE):
        os.mkdir(os.path.join(folder, name))


def discard(folder: str) -> bool:
    """Remove what `prepare` made. False when there is more in it, which is left."""
    for name in (f"{WORK}/work", WORK, ROOT, STAGE, UPPER, ""):
        try:
            os.rmdir(os.path.join(folder, name))
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True


def stage(ground: Ground) -> list[tuple[int, str]]:
    """Called in the new mount namespace: everything that no image has a say in.

    Returns mounts that will be attached in the box: a descriptor and the place of each.
    """
    kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    os.chdir(ground.folder)
    kernel.mount("tmpfs", STAGE, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,mode=755")
    for name in _STAGED:
        os.mkdir(f"{STAGE}/{name}")
    kernel.mount("proc", f"{STAGE}/proc", "proc", _QUIET)
    kernel.mount("sysfs", f"{STAGE}/sys", "sysfs", _QUIET | kernel.MS_RDONLY)
    with _as_owner(ground):
        _devices(f"{STAGE}/dev", ground)
    _mask()
    if ground.user_namespace is not None:
        # Upper and work have to lie on one mount: the box's own folder, seen mapped.
        os.mkdir(_OWN)
        kernel.mount_mapped(".", _OWN, ground.user_namespace)
    return _names(ground)


def build(
    ground: Ground,
    layout: Layout,
    trees: list[tuple[int, str]],
    hand_over: Callable[[int], None],
) -> list[str]:
    """Called after `stage`, with what that returned, still as the host's root; ends in the box.

    `hand_over`: takes a descriptor of the upper folder, which is closed before any path of the
    image is looked at: one in there may be a link to /proc/self/fd, and from that folder to all
    that is above it on the host. Returns the paths that had to be made.
    """
    if layout.terminals != TERMINALS:
        target = f"{STAGE}/dev/pts"
        flags = kernel.MS_REMOUNT | kernel.MS_NOSUID | kernel.MS_NOEXEC
        kernel.mount("devpts", target, "devpts", flags, f"{ground.ttys},max={layout.terminals}")
    kernel.write(f"{STAGE}/etc/hostname", f"{layout.hostname}\n")
    trees += mounts.views(STAGE, layout.mounts, ground.user_namespace, lambda: _as_owner(ground))
    upper, options = _overlay(ground, layout)
    with _as_owner(ground):
        guise.dress(STAGE, layout.guise)
        flags = kernel.MS_RELATIME | kernel.MS_NODEV
        kernel.mount("overlay", ROOT, "overlay", flags, options)
        hand_over(upper)
        os.close(upper)
        return _enter(layout, trees)


def _enter(layout: Layout, trees: list[tuple[int, str]]) -> list[str]:
    """Make the overlay the root, with all that is mounted in it; returns what had to be made."""
    os.chdir(ROOT)
    made = [name for name in (*_STAGED, "tmp") if _make(name)]
    for name in _STAGED:
        kernel.move(f"../{STAGE}/{name}", name)
    if "tmp" in made:
        os.chmod("tmp", 0o1777)  # noqa: S103 - so it is everywhere
    kernel.enter_root(".")
    made = [f"/{name}" for name in made]
    # From here on, links lead nowhere but into the box.
    for tree, target in trees:
        made += make_mount_point(target, folder=os.path.isdir(tree))
        if os.path.exists(target):  # an image may have a link there that leads nowhere
            kernel.attach(tree, target)
        os.close(tree)
    for target, mib in layout.tmpfs.items():
        made += make_mount_point(target, folder=True)
        kernel.mount("tmpfs", target, "tmpfs", _QUIET, f"mode=1777,size={mib}m")
    return made + make_mount_point(layout.workdir, folder=True)


@contextmanager
def _as_owner(ground: Ground) -> Iterator[None]:
    """Files are made by the box's root, who must be mapped where they lie; all else is ours."""
    if ground.user_namespace is None:
        yield
        return
    keep = _ALL_CAPABILITIES & ~_CAP_SYS_RESOURCE
    kernel.set_fs_ids(ground.owner)
    kernel.set_capabilities(keep)
    yield
    kernel.set_fs_ids(0)
    kernel.set_capabilities(keep)


def _names(ground: Ground) -> list[tuple[int, str]]:
    """What resolves names, for want of a network: the same as an engine's containers have."""
    trees = []
    with _as_owner(ground):
        os.mkdir(f"{STAGE}/etc")
        for name, text in _ETC.items():
            path = f"{STAGE}/etc/{name}"
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
            kernel.write(path, text)
            trees.append((kernel.detached(path, None, read_only=False), f"/etc/{name}"))
    return trees


def make_mount_point(path: str, *, folder: bool) -> list[str]:
    """Make sure that there is something to mount on; returns what had to be made."""
    missing = []
    parent = path.rstrip("/")
    while parent and not os.path.lexists(parent):
        missing.append(parent)
        parent = os.path.dirname(parent)
    missing.reverse()
    for name in missing:
        if name == path.rstrip("/") and not folder:
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644))
        else:
            os.mkdir(name, 0o755)
    return missing


def _make(name: str) -> bool:
    """A folder of the root, unless it is there. A link in its place leads out: refused."""
    try:
        os.mkdir(name)
    except FileExistsError:
        if os.path.islink(name) or not os.path.isdir(name):
            raise OSError(f"/{name} of the image is no folder") from None
        return False
    return True


def _overlay(ground: Ground, layout: Layout) -> tuple[int, str]:
    """Prepare the layers: a descriptor of the upper one, and how to mount them all."""
    lowers = []
    for i, lower in enumerate(layout.lowers):
        target = f"{STAGE}/{i}"
        os.mkdir(target)
        if ground.user_namespace is None:
            kernel.bind(lower, target)
        else:
            kernel.mount_mapped(lower, target, ground.user_namespace)
        lowers.append(target)
    place = _place_of_changes(layout)
    if layout.snapshot is not None:
        opaque = "user.overlay.opaque" if ground.rootless else "trusted.overlay.opaque"
        layer.lay(layout.snapshot, f"{place}/{UPPER}", layout.lowers, opaque)
    upper = os.open(f"{place}/{UPPER}", os.O_RDONLY | os.O_DIRECTORY)
    seen = place if ground.user_namespace is None else _OWN
    if ground.user_namespace is not None and place != ".":
        seen = f"{STAGE}/seen"
        os.mkdir(seen)
        kernel.mount_mapped(place, seen, ground.user_namespace)
    options = f"lowerdir={':'.join(lowers)},upperdir={seen}/{UPPER},workdir={seen}/{WORK},volatile"
    if ground.rootless:
        options += ",userxattr"
    return upper, options


def _place_of_changes(layout: Layout) -> str:
    """The folder that holds upper and work: the box's own, or a file system of limited size."""
    if layout.disk == "watch":
        return "."
    os.mkdir(_DISK)
    if layout.disk == "tmpfs":
        options = f"size={layout.disk_mib}m,mode=755"
        kernel.mount("tmpfs", _DISK, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    else:
        with loop.attached(DISK_IMAGE) as device:
            kernel.mount(device, _DISK, "ext4", kernel.MS_NOSUID | kernel.MS_NODEV)
    for name in (UPPER, WORK):
        os.mkdir(f"{_DISK}/{name}")
    return _DISK


def _devices(dev: str, ground: Ground) -> None:
    flags = kernel.MS_NOSUID | kernel.MS_NOEXEC
    options = f"mode=755,size=64k,uid={ground.owner},gid={ground.owner}"
    kernel.mount("tmpfs", dev, "tmpfs", flags, options)
    for name in _DEVICES:
        os.close(os.open(f"{dev}/{name}", os.O_CREAT | os.O_WRONLY))
        kernel.bind(f"/dev/{name}", f"{dev}/{name}")
    for name in ("pts", "shm", "mqueue"):
        os.mkdir(f"{dev}/{name}")
    kernel.mount("devpts", f"{dev}/pts", "devpts", flags, f"{ground.ttys},max={TERMINALS}")
    kernel.mount("shm", f"{dev}/shm", "tmpfs", _QUIET, "mode=1777,size=64m")
    kernel.mount("mqueue", f"{dev}/mqueue", "mqueue", _QUIET)
    os.symlink("pts/ptmx", f"{dev}/ptmx")
    os.symlink("/proc/self/fd", f"{dev}/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{dev}/{name}")


def _mask() -> None:
    for name in _MASKED:
        path = f"{STAGE}/{name}"
        if os.path.isdir(path):
            kernel.mount("tmpfs", path, "tmpfs", kernel.MS_RDONLY, "size=0k")
        elif os.path.exists(path):
            kernel.bind("/dev/null", path)
    for name in _READ_ONLY:
        path = f"{STAGE}/{name}"
        if os.path.exists(path):
            kernel.mount(path, path, "", kernel.MS_BIND | kernel.MS_REC)
            kernel.remount_read_only(path, _QUIET)
