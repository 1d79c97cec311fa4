"""Limits on memory, processes and processor time: cgroup v1, hybrid, and v2.

v2 is written after the kernel's documentation and tested against a fake tree only.
"""

import os
import signal
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass

ROOT = "/sys/fs/cgroup"
PARENT = "stillroom"
_TRIES = 5
_V1 = ("memory", "pids", "cpu")
_PERIOD_MICROSECONDS = 100_000


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The hierarchies of this machine that we use."""

    folders: tuple[str, ...]
    """One per v1 controller, or the one of v2."""
    version: int
    parent: str = PARENT
    """Our group in each of them: the boxes of one store lie below it."""

    def paths(self, box: str) -> list[str]:
        return [os.path.join(f, self.parent, box) for f in self.folders]

    def make(self, box: str, *, memory_bytes: int, pids: int, cpus: float) -> None:
        """Create the box's groups and set their limits. Raises OSError."""
        if self.version == 2:
            self._delegate()
        for path in self.paths(box):
            _make_folder(path)
            for name, value, needed in self._settings(memory_bytes, pids, cpus):
                target = os.path.join(path, name)
                if os.path.exists(target):
                    _write(target, value)
                elif needed and self._holds(path, name):
                    raise OSError(f"{target} is missing: this kernel cannot hold that limit")

    def processes(self, box: str) -> list[int]:
        found: set[int] = set()
        for path in self.paths(box):
            try:
                with open(os.path.join(path, "cgroup.procs"), encoding="ascii") as f:
                    found.update(int(line) for line in f)
            except FileNotFoundError:
                continue
        return sorted(found)

    def ran_out_of_memory(self, box: str) -> bool:
        """Has the kernel killed in this box, or the box itself, for the memory it used?"""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        for path in self.paths(box):
            with suppress(FileNotFoundError), open(os.path.join(path, name), encoding="ascii") as f:
                counts = dict(line.split() for line in f)
                return int(counts.get("oom_kill", 0)) > 0
        return False

    def kill(self, box: str) -> None:
        """Kill what is left in the groups: of a box whose first process is dead, nothing is."""
        for pid in self.processes(box):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self, box: str, *, seconds: float = 5.0) -> None:
        """Remove the groups once they are empty, which the kernel takes a moment to notice."""
        until = time.monotonic() + seconds
        for path in self.paths(box):
            while True:
                try:
                    os.rmdir(path)
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.002)

    def tidy(self) -> None:
        """Remove the parents of the boxes' groups, unless another run still has boxes in them."""
        for folder in self.folders:
            with suppress(OSError):
                os.rmdir(os.path.join(folder, self.parent))

    def boxes(self) -> set[str]:
        """Ids of every box that has a group here, dead or alive."""
        found: set[str] = set()
        for folder in self.folders:
            parent = os.path.join(folder, self.parent)
            if os.path.isdir(parent):
                found.update(e.name for e in os.scandir(parent) if e.is_dir())
        return found

    def _settings(self, memory_bytes: int, pids: int, cpus: float) -> list[tuple[str, str, bool]]:
        """(file, value, whether it has to be there)."""
        quota = str(int(cpus * _PERIOD_MICROSECONDS))
        memory, processes = str(memory_bytes), str(pids)
        if self.version == 2:
            return [
                ("memory.max", memory, True),
                ("memory.swap.max", "0", False),
                ("pids.max", processes, True),
                ("cpu.max", f"{quota} {_PERIOD_MICROSECONDS}", False),
            ]
        return [
            ("memory.limit_in_bytes", memory, True),
            ("memory.memsw.limit_in_bytes", memory, False),
            ("pids.max", processes, True),
            ("cpu.cfs_period_us", str(_PERIOD_MICROSECONDS), False),
            ("cpu.cfs_quota_us", quota, False),
        ]

    def _holds(self, path: str, name: str) -> bool:
        """Is this the hierarchy in which `name` belongs?"""
        if self.version == 2:
            return True
        return path.split("/")[-3] == name.split(".", maxsplit=1)[0]

    def _delegate(self) -> None:
        """v2: children have only the controllers their parent hands down."""
        for folder in (self.folders[0], os.path.join(self.folders[0], self.parent)):
            os.makedirs(folder, exist_ok=True)
            control = os.path.join(folder, "cgroup.subtree_control")
            with open(control, encoding="ascii") as f:
                have = f.read().split()
            for name in _V1:
                # A kernel without a share of processor time still holds what has to hold.
                with suppress(OSError) if name == "cpu" else nullcontext():
                    if name not in have:
                        _write(control, f"+{name}")


def detect(root: str = ROOT, *, parent: str = PARENT) -> Cgroups | None:
    """What this machine has, or None when memory and pids cannot be limited."""
    if os.path.exists(os.path.join(root, "cgroup.controllers")):
        with open(os.path.join(root, "cgroup.controllers"), encoding="ascii") as f:
            have = f.read().split()
        return Cgroups((root,), 2, parent) if {"memory", "pids"} <= set(have) else None
    folders = tuple(os.path.join(root, c) for c in _V1 if os.path.isdir(os.path.join(root, c)))
    names = {os.path.basename(f) for f in folders}
    return Cgroups(folders, 1, parent) if {"memory", "pids"} <= names else None


def _make_folder(path: str) -> None:
    """Another run of this store may tidy the parent away while we make its child."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            os.makedirs(path, exist_ok=True)
            return
    os.makedirs(path, exist_ok=True)


def join(paths: list[str]) -> None:
    """Put the calling process into the groups."""
    for path in paths:
        _write(os.path.join(path, "cgroup.procs"), "0")


def _write(path: str, value: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)
