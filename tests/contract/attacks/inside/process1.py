"""Runs in a box: what it can do to its first process, and read of it."""

import ctypes
import os
import resource
import signal
import struct

from tests.contract.attacks.inside.tries import attempt, call, report, verdict

SECRETS = ("environ", "maps", "auxv", "pagemap", "stack", "syscall", "smaps")
LINKS = ("root", "cwd", "exe")


def trace() -> str:
    return verdict(
        {
            "attach": call(101, 16, 1, 0, 0),
            "seize": call(101, 0x4206, 1, 0, 0),
            "attach to a thread": call(101, 16, int(os.listdir("/proc/1/task")[0]), 0, 0),
        }
    )


def read_memory() -> str:
    buffer = ctypes.create_string_buffer(64)
    here = (ctypes.c_ulong * 2)(ctypes.addressof(buffer), 8)
    there = (ctypes.c_ulong * 2)(0x400000, 8)
    return verdict(
        {
            "process_vm_readv": call(310, 1, here, 1, there, 1, 0),
            "process_vm_writev": call(311, 1, here, 1, there, 1, 0),
            "mem": attempt(lambda: os.close(os.open("/proc/1/mem", os.O_RDWR))),
        }
    )


def secrets() -> str:
    found = {name: attempt(read, f"/proc/1/{name}") for name in SECRETS}
    return verdict(found, {"EIO"})


def links() -> str:
    found = {name: attempt(os.readlink, f"/proc/1/{name}") for name in LINKS}
    found |= {f"{name}/etc": attempt(os.listdir, f"/proc/1/{name}/etc") for name in ("root", "cwd")}
    found["exe, to write"] = attempt(lambda: os.close(os.open("/proc/1/exe", os.O_WRONLY)))
    found["map_files"] = attempt(lambda: os.listdir("/proc/1/map_files"))
    # Their number is no secret; what they are is.
    found |= {f"fd/{n}": attempt(os.readlink, f"/proc/1/fd/{n}") for n in range(20)}
    return verdict(found)


def limits() -> str:
    names = [n for n in dir(resource) if n.startswith("RLIMIT_")]
    return verdict({n: attempt(resource.prlimit, 1, getattr(resource, n), (0, 0)) for n in names})


def scheduler() -> str:
    zero = struct.pack("i", 0)
    return verdict(
        {
            "setaffinity": attempt(lambda: os.sched_setaffinity(1, {0})),
            "setscheduler": call(144, 1, 5, zero),
            "setparam": call(142, 1, zero),
            "setattr": call(314, 1, struct.pack("IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0), 0),
        }
    )


def priority() -> str:
    return verdict(
        {
            "setpriority": call(141, 0, 1, 19),
            "of its group": call(141, 1, os.getpgid(1), 19),
            "ioprio_set": call(251, 1, 1, 3 << 13),
        }
    )


def victim() -> str:
    return verdict({"oom_score_adj": attempt(lambda: write("/proc/1/oom_score_adj", b"1000"))})


def files() -> str:
    found = {}
    for folder, _, names in os.walk("/proc/1"):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) or name in ("mem", "oom_score_adj", "oom_adj"):
                continue  # other attacks
            if os.stat(path).st_mode & 0o222:
                found[path] = attempt(write, path, b"1\n")
    return verdict(found, {"EINVAL"})


def read(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read(8)


def write(path: str, what: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    try:
        os.write(fd, what)
    finally:
        os.close(fd)


def signals() -> str:
    """Each of them a hundred times; `the box answers` is asked from outside."""
    for number in range(1, 65):
        for _ in range(100):
            try:
                os.kill(1, number)
            except OSError:
                break
    state = open("/proc/1/stat").read().rpartition(")")[2].split()[0]
    return "held" if state in "SR" else f"not held: process 1 is in state {state}"


def stop() -> str:
    os.kill(1, signal.SIGSTOP)
    os.kill(1, signal.SIGTSTP)
    state = open("/proc/1/stat").read().rpartition(")")[2].split()[0]
    return "held" if state in "SR" else f"not held: process 1 is in state {state}"


report({
    "trace process 1": trace, "read or write process 1's memory": read_memory,
    "read process 1's environment and memory map": secrets, "follow process 1's links and descriptors": links,
    "lower process 1's limits": limits, "move process 1 to another scheduler": scheduler,
    "take process 1's priority": priority, "make process 1 the first to be killed for memory": victim,
    "write to process 1's files": files, "storm process 1 with signals": signals, "stop process 1": stop,
})  # fmt: skip
