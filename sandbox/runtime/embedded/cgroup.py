"""Limits on memory, processes and processor time: cgroup v1, hybrid, and v2.

v2 is written after the kernel's documentation and tested against a fake tree only.
"""

import os
import signal
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Literal

from sandbox.runtime.embedded import kernel

ROOT = "/sys/fs/cgroup"
PARENT = "stillroom"
_V1 = ("memory", "pids", "cpu", "cpuacct", "freezer")
_V2 = ("memory", "pids", "cpu")
_PERIOD_MICROSECONDS = 100_000
_FREEZE_SECONDS = 10.0
_PATIENCE = (*[0.003] * 30, *[0.01] * 30, *[0.05] * 30, *[0.2] * 30)
"""Of each try: the more there is to freeze, the longer it takes."""
_FROZEN = {
    1: ("freezer.state", "FROZEN", "freezer.state", "FROZEN"),
    2: ("cgroup.freeze", "1", "cgroup.events", "frozen 1"),
}
_THAWED = {
    1: ("freezer.state", "THAWED", "freezer.state", "THAWED"),
    2: ("cgroup.freeze", "0", "cgroup.events", "frozen 0"),
}
"""By version: what to write where; what is seen where when it is so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a group uses, and how often it ran into a limit since it was made."""

    memory_bytes: int = 0
    processes: int = 0
    cpu_seconds: float = 0.0
    oom_kills: int = 0
    forks_refused: int = 0


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The hierarchies of this machine that we use."""

    folders: tuple[str, ...]
    """One per v1 controller, or the one of v2."""
    version: int
    parent: str = PARENT
    """Our group in each of them: the boxes of one store lie below it."""

    @property
    def kind(self) -> Literal["v1", "hybrid", "v2", "none"]:
        if self.version == 2:
            return "v2"
        if not self.folders:
            return "none"
        beside = os.path.join(os.path.dirname(self.folders[0]), "unified")
        return "hybrid" if os.path.isdir(beside) else "v1"

    @property
    def can_freeze(self) -> bool:
        return self.version == 2 or any(_controller(f) == "freezer" for f in self.folders)

    @property
    def parents(self) -> list[str]:
        """In which the groups of boxes are made."""
        return [os.path.join(f, self.parent) for f in self.folders]

    def paths(self, box: str) -> list[str]:
        return [os.path.join(parent, box) for parent in self.parents]

    def make_parent(self) -> None:
        """Before any box. Raises OSError."""
        if self.version == 2:
            self._delegate()
        for path in self.parents:
            os.makedirs(path, exist_ok=True)

    def limit(self, box: str, *, memory_bytes: int, pids: int, cpus: float) -> None:
        """Set what the box may use. Raises OSError where that cannot hold."""
        for folder, path in zip(self.folders, self.paths(box), strict=True):
            for name, value, needed in self._settings(memory_bytes, pids, cpus):
                if self.version == 1 and name.split(".", maxsplit=1)[0] != _controller(folder):
                    continue
                target = os.path.join(path, name)
                try:
                    kernel.write(target, value)
                except FileNotFoundError:
                    if needed:
                        message = f"{target} is missing: this kernel cannot hold that limit"
                        raise OSError(message) from None

    def usage(self, box: str) -> Usage:
        """Zeros for what cannot be known, or when the group is gone."""
        kills, refused = self.events(box)
        v2 = self.version == 2
        seconds = (
            self._named(box, "cpu.stat", "usage_usec") / 1e6
            if v2
            else self._number(box, "cpuacct.usage") / 1e9
        )
        return Usage(
            memory_bytes=self._number(box, "memory.current" if v2 else "memory.usage_in_bytes"),
            processes=self._number(box, "pids.current"),
            cpu_seconds=seconds,
            oom_kills=kills,
            forks_refused=refused,
        )

    def events(self, box: str) -> tuple[int, int]:
        """How many were killed for memory, and how many forks were refused: quickly."""
        memory = "memory.events" if self.version == 2 else "memory.oom_control"
        return self._named(box, memory, "oom_kill"), self._named(box, "pids.events", "max")

    def ran_out_of_memory(self, box: str) -> bool:
        """Has the kernel killed in this box, or the box itself, for the memory it used?"""
        return self.events(box)[0] > 0

    def freeze(self, box: str) -> None:
        """Returns when nothing in the box runs. Raises OSError.

        A process that waits for its box's clock, when that was stopped in the middle of an answer,
        does not stop: all go on for a moment, then it is tried again.
        """
        until = time.monotonic() + _FREEZE_SECONDS
        for seconds in (*_PATIENCE, _FREEZE_SECONDS):
            if self._becomes(box, _FROZEN, min(seconds, until - time.monotonic())):
                return
            if time.monotonic() < until:
                self._becomes(box, _THAWED, _FREEZE_SECONDS)
        raise OSError(f"box {box} does not freeze")

    def thaw(self, box: str) -> None:
        if not self._becomes(box, _THAWED, _FREEZE_SECONDS):
            raise OSError(f"box {box} does not thaw")

    def processes(self, box: str) -> list[int]:
        found: set[int] = set()
        for path in self.paths(box):
            with suppress(FileNotFoundError):
                found.update(
                    int(line) for line in kernel.read(os.path.join(path, "cgroup.procs")).split()
                )
        return sorted(found)

    def kill(self, box: str) -> None:
        """Kill what is left in the groups: of a box whose first process is dead, nothing is."""
        for pid in self.processes(box):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(OSError):
            self.thaw(box)  # v1 lets nothing die that is frozen

    def remove(self, box: str, *, seconds: float = 5.0) -> None:
        """Remove the groups once they are empty, which the kernel takes a moment to notice."""
        until = time.monotonic() + seconds
        while self.processes(box) and time.monotonic() < until:
            time.sleep(0.001)
        self.put_out(box)
        for path in self.paths(box):
            while True:
                try:
                    os.rmdir(path)
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.001)

    def put_out(self, box: str) -> None:
        """What it was the first to look at leaves the kernel's memory, names that are not there too.

        Boxes share the folders of their image, and a program can tell whether somebody asked for a
        name before. Only memory is put out that is counted as the box's: nobody else is slowed.
        """
        for folder, path in zip(self.folders, self.paths(box), strict=True):
            with suppress(OSError):  # gone, or all that can be is put out
                if self.version == 2:
                    used = kernel.read(os.path.join(path, "memory.current"))
                    kernel.write(os.path.join(path, "memory.reclaim"), used.strip())
                elif _controller(folder) == "memory":
                    kernel.write(os.path.join(path, "memory.swappiness"), "0")  # it would take time
                    kernel.write(os.path.join(path, "memory.force_empty"), "0")

    def tidy(self) -> None:
        """Remove the parents of the boxes' groups, unless another run still has boxes in them."""
        for folder in self.folders:
            with suppress(OSError):
                os.rmdir(os.path.join(folder, self.parent))

    def boxes(self) -> set[str]:
        """Names of every box that has a group here, dead or alive."""
        found: set[str] = set()
        for folder in self.folders:
            parent = os.path.join(folder, self.parent)
            with suppress(FileNotFoundError), os.scandir(parent) as entries:
                found.update(e.name for e in entries if e.is_dir())
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

    def _number(self, box: str, name: str) -> int:
        return int(self._content(box, name) or 0)

    def _named(self, box: str, name: str, key: str) -> int:
        words = self._content(box, name).split()
        counts = dict(zip(words[::2], words[1::2], strict=False))
        return int(counts.get(key, 0))

    def _content(self, box: str, name: str) -> str:
        for folder, path in zip(self.folders, self.paths(box), strict=True):
            if self.version == 2 or _controller(folder) == name.split(".", maxsplit=1)[0]:
                with suppress(OSError):
                    return kernel.read(os.path.join(path, name))
        return ""

    def _becomes(
        self, box: str, wanted: dict[int, tuple[str, str, str, str]], seconds: float
    ) -> bool:
        """Does it, within so many seconds?"""
        until = time.monotonic() + seconds
        target, value, shown, state = wanted[self.version]
        for folder, path in zip(self.folders, self.paths(box), strict=True):
            if self.version == 1 and _controller(folder) != "freezer":
                continue
            while True:
                kernel.write(os.path.join(path, target), value)
                if state in kernel.read(os.path.join(path, shown)):
                    break
                if time.monotonic() > until:
                    return False
                time.sleep(0.001)
        return True

    def _delegate(self) -> None:
        """v2: children have only the controllers their parent hands down."""
        for folder in (self.folders[0], os.path.join(self.folders[0], self.parent)):
            os.makedirs(folder, exist_ok=True)
            control = os.path.join(folder, "cgroup.subtree_control")
            have = kernel.read(control).split()
            for name in _V2:
                # A kernel without a share of processor time still holds what has to hold.
                with suppress(OSError) if name == "cpu" else nullcontext():
                    if name not in have:
                        kernel.write(control, f"+{name}")


def detect(root: str = ROOT, *, parent: str = PARENT) -> Cgroups | None:
    """What this machine has, or None when memory and pids cannot be limited."""
    if os.path.exists(os.path.join(root, "cgroup.controllers")):
        have = kernel.read(os.path.join(root, "cgroup.controllers")).split()
        return Cgroups((root,), 2, parent) if {"memory", "pids"} <= set(have) else None
    folders = tuple(os.path.join(root, c) for c in _V1 if os.path.isdir(os.path.join(root, c)))
    names = {_controller(f) for f in folders}
    return Cgroups(folders, 1, parent) if {"memory", "pids"} <= names else None


def delegated(
    root: str = ROOT, *, parent: str = PARENT, own: str = "/proc/self/cgroup"
) -> Cgroups | None:
    """The v2 group that was handed to this user, who is not root, if there is one.

    We are in it ourselves, and a group with processes hands nothing down: we move to a child.
    """
    try:
        path = next(
            line.split(":", 2)[2] for line in kernel.read(own).splitlines() if line[:3] == "0::"
        )
        folder = os.path.join(root, path.strip("/\n"))
        groups = detect(folder, parent=parent)
        if groups is None or groups.version != 2 or not os.access(folder, os.W_OK):
            return None
        us = os.path.join(folder, f"{parent}-us")
        os.makedirs(us, exist_ok=True)
        kernel.write(os.path.join(us, "cgroup.procs"), str(os.getpid()))
        groups._delegate()  # noqa: SLF001 - a second constructor of the same class
    except (OSError, StopIteration):
        return None
    return groups


def join(paths: list[str]) -> None:
    """Put the calling process into the groups."""
    for path in paths:
        kernel.write(os.path.join(path, "cgroup.procs"), "0")


def _controller(folder: str) -> str:
    return os.path.basename(folder)


def make(paths: list[str]) -> None:
    """A box's groups. Another run may tidy their empty parent away at this moment."""
    for path in paths:
        os.makedirs(path, exist_ok=True)
