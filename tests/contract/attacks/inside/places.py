"""Runs in a box: files that tell of the host or lead to it."""

import json
import mmap
import os
import resource
import socket
import stat
import subprocess
import sys

from tests.contract.attacks.inside.tries import attempt, report, verdict

TOLD = json.loads(sys.argv[1])
"""Of the host: a port, the name of an abstract socket."""
DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}
SECRET = (
    "/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/dev/mem", "/dev/kmem", "/dev/port", "/proc/keys",
    "/proc/timer_list", "/proc/sched_debug", "/proc/mtrr", "/sys/kernel/debug/sched",
)  # fmt: skip
TABLES = (
    "/proc/kpageflags", "/proc/kpagecount", "/proc/kpagecgroup", "/proc/vmallocinfo", "/proc/slabinfo",
)  # fmt: skip
CONTROLS = (
    "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hotplug", "/sys/kernel/uevent_helper", "/proc/sys/vm/panic_on_oom",
    "/proc/sys/kernel/sysrq", "/proc/sys/fs/binfmt_misc/register", "/proc/sys/kernel/ns_last_pid",
    "/sys/power/state", "/sys/kernel/mm/ksm/run", "/proc/irq/default_smp_affinity",
)  # fmt: skip


HARMLESS = (
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/irq",
    "/proc/pressure/memory",
)
"""What is written there asks to be woken, and is forgotten with the descriptor."""


def read(path: str) -> str:
    """A file that is empty tells nothing."""
    content: list[bytes] = []
    said = attempt(lambda: content.append(os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 16)))
    return "EPERM" if said == "OK" and not content[0] else said


def write(path: str) -> str:
    return attempt(lambda: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)))


def secrets() -> str:
    return verdict({path: read(path) for path in SECRET}, {"EAGAIN", "EIO"})


def tables() -> str:
    return verdict({path: read(path) for path in TABLES})


def addresses() -> str:
    with open("/proc/kallsyms") as f:
        shown = [line for line in f if int(line.split()[0], 16)]
    with open("/proc/iomem") as f:
        shown += [line for line in f if line.split("-")[0].strip("0 ")]
    return "held" if not shown else f"not held: {shown[:3]}"


def controls() -> str:
    return verdict({path: write(path) for path in CONTROLS})


def walk(top: str) -> str:
    """Every file there, tried."""
    found = {}
    for folder, folders, names in os.walk(top):
        if folder == "/proc":
            folders[:] = [
                n for n in folders if not n.isdigit() and n not in ("self", "thread-self")
            ]
        for name in names:
            path = os.path.join(folder, name)
            # Root opens a file without a mode to write, too; there is nothing behind it.
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode) and mode & 0o222 and path not in HARMLESS:
                found[path] = write(path)
    return verdict(found, {"EIO", "EINVAL"})


def groups() -> str:
    with open("/proc/mounts") as f:
        tops = [line.split()[1] for line in f if line.split()[2] in ("cgroup", "cgroup2")]
    found = {}
    for top in tops:
        found[f"{top}/made"] = attempt(os.mkdir, f"{top}/made")
        for folder, _, names in os.walk(top):
            found |= {f"{folder}/{n}": write(f"{folder}/{n}") for n in names}
    return verdict(found)


def devices() -> str:
    found = {}
    for folder, _, names in os.walk("/dev"):
        for name in names:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            known = name in DEVICES or folder.startswith("/dev/pts")
            if (stat.S_ISBLK(mode) or stat.S_ISCHR(mode)) and not known:
                found[path] = read(path)
    return verdict(found)


def make_devices() -> str:
    found = {}
    for name, kind, number in (
        ("vda", stat.S_IFBLK, (254, 0)),
        ("sda", stat.S_IFBLK, (8, 0)),
        ("mem", stat.S_IFCHR, (1, 1)),
        ("null", stat.S_IFCHR, (1, 3)),
    ):
        for folder in ("/root", "/dev/shm", "/tmp"):
            path = f"{folder}/made-{name}"
            found[path] = attempt(os.mknod, path, kind | 0o666, os.makedev(*number))
            if found[path] == "OK":
                found[path] = read(path)
    return verdict(found)


def chroot() -> str:
    """The classic: a folder kept open on the other side of a new root."""
    own = os.stat("/")
    before = sorted(os.listdir("/"))
    os.makedirs("/tmp/jail/inner", exist_ok=True)
    kept = os.open("/", os.O_RDONLY)
    os.chroot("/tmp/jail")
    os.fchdir(kept)
    for _ in range(100):
        os.chdir("..")
    os.chroot(".")
    found = os.stat("/")
    above = os.stat("/..")
    same = {(s.st_dev, s.st_ino) for s in (own, found, above)}
    after = sorted(os.listdir("/"))
    return "held" if len(same) == 1 and before == after else f"not held: {after}"


def above() -> str:
    """From a folder that is inside, and from one that was kept and then moved out."""
    own = os.stat("/")
    os.makedirs("/tmp/a/b/c", exist_ok=True)
    kept = os.open("/tmp/a/b/c", os.O_RDONLY)
    os.rename("/tmp/a/b/c", "/tmp/a/c")
    os.chroot("/tmp/a/b")
    top = os.fstat(os.open("../" * 60, os.O_RDONLY, dir_fd=kept))
    held = (top.st_dev, top.st_ino) == (own.st_dev, own.st_ino)
    return "held" if held else f"not held: {top}"


def abstract() -> str:
    def connect() -> None:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect("\0" + TOLD["abstract"])

    return verdict({"connect": attempt(connect)}, {"ECONNREFUSED"})


def loopback() -> str:
    """Its own 127.0.0.1 is not the host's."""

    def connect() -> None:
        socket.create_connection(("127.0.0.1", TOLD["port"]), timeout=5).close()

    return verdict({"connect": attempt(connect)}, {"ECONNREFUSED"})


def engine() -> str:
    places = (
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
    )
    return verdict({path: attempt(os.stat, path) for path in places}, {"ENOTDIR"})


def layers() -> str:
    with open("/proc/self/mountinfo") as f:
        told = f.read()
    return (
        "held"
        if not any(place in told for place in TOLD["places"])
        else "not held: it is told where its layers are"
    )


def setuid() -> str:
    """A program that would make anybody root, made by root and started by nobody."""
    subprocess.run("cp /bin/sh /tmp/rootly && chmod 6755 /tmp/rootly", shell=True, check=True)
    done = subprocess.run(
        ["/tmp/rootly", "-pc", "id -u; id -g"],
        capture_output=True,
        user=4242,
        group=4242,
        text=True,
        check=False,
    )
    return "held" if done.stdout.split() == ["4242", "4242"] else f"not held: {done}"


def missed() -> int:
    """How many pages of a file of the image are not in memory; they are from then on."""
    with open(os.__file__, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as pages:
        pages.madvise(mmap.MADV_RANDOM)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        sum(pages[at] for at in range(0, len(pages), mmap.PAGESIZE))
        return resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before


def shared_pages() -> str:
    """Boxes of an image share them: what one puts out of memory, another misses."""
    missed()
    with open(os.__file__, "rb") as f:
        attempt(os.posix_fadvise, f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as pages:
            sum(pages[at] for at in range(0, len(pages), mmap.PAGESIZE))
            attempt(pages.madvise, 21)
    return "held" if not (gone := missed()) else f"not held: {gone} pages"


report({
    "read the kernel's memory and log": secrets, "read the kernel's tables of pages": tables, "read the kernel's addresses": addresses,
    "write core_pattern, sysrq and the like": controls, "write to any file of /proc": lambda: walk("/proc"),
    "write to any file of /sys": lambda: walk("/sys"), "change its control groups": groups,
    "open devices of the machine": devices, "make devices and open them": make_devices,
    "leave a chroot by a kept folder": chroot, "leave a chroot by a folder's parent": above,
    "reach abstract sockets of the host": abstract, "reach the host's loopback": loopback,
    "reach a container engine's socket": engine, "learn where on the host its layers are": layers,
    "become root by a setuid program": setuid, "put the image's files out of memory": shared_pages,
})  # fmt: skip
