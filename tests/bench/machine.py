"""The machine: what it is, and what processes and folders take of it."""

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sandbox._version import __version__
from sandbox.runtime.embedded import cgroup
from sandbox.runtime.embedded.host import tag
from sandbox.runtime.store import Store

MIB = 1 << 20


def facts() -> dict[str, Any]:
    """What figures depend on. Load is taken again when the run is over."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "stillroom": __version__,
        "commit": _said("git", "describe", "--always", "--dirty"),
        "kernel": platform.release(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB,
        "cgroups": groups.kind if (groups := cgroup.detect()) else "none",
        "python": platform.python_version(),
        "engine": _said("docker", "version", "--format", "{{.Server.Version}}"),
        "bubblewrap": _said("bwrap", "--version").removeprefix("bubblewrap "),
        "load_before": load(),
    }


def load() -> list[float]:
    return [round(x, 2) for x in os.getloadavg()]


def machine_line(found: dict[str, Any]) -> str:
    """For people: what these figures are worth."""
    return (
        f"{found['date'][:10]}, {found['cores']} cores, Linux {found['kernel']}, cgroups"
        f" {found['cgroups']}, Python {found['python']}, Docker {found['engine'] or '–'},"
        f" bubblewrap {found['bubblewrap'] or '–'}; load {found['load_before'][0]} before,"
        f" {found.get('load_after', ['–'])[0]} after; Stillroom {found['commit']}"
    )


def pss(pid: int) -> int:
    """Bytes of memory a process takes, its share of what it has in common with others; 0 if gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0


def rss(pid: int) -> int:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def descriptors(pid: int) -> int:
    with suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0


def parent_of(pid: int) -> int:
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        return int(stat.rpartition(")")[2].split()[1])
    return 0


def processes_of(store: Store) -> list[int]:
    """Every process the embedded runtime has for this store: what makes boxes, and what waits or
    serves in one. All of them go by the store's name."""
    name = tag(store).encode()
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                if Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0", 1)[0] == name:
                    found.append(int(entry))
    return found


def zygote_of(store: Store, owner: int) -> int:
    """The process that makes boxes for this owner; 0 when there is none."""
    return next((pid for pid in processes_of(store) if parent_of(pid) == owner), 0)


def group_folders(store: Store) -> int:
    """How many control groups there are for this store's boxes, in every hierarchy."""
    groups = cgroup.detect(parent=tag(store))
    if groups is None:
        return 0
    count = 0
    for parent in groups.parents:
        with suppress(OSError), os.scandir(parent) as entries:
            count += sum(entry.is_dir() for entry in entries)
    return count


def parent_groups(store: Store) -> int:
    """How many control groups there are to hold those of this store's boxes, be they empty."""
    groups = cgroup.detect(parent=tag(store))
    return sum(Path(parent).is_dir() for parent in groups.parents) if groups else 0


def allocated(folder: Path) -> int:
    """Bytes on the disk, of folders as well, without following links; what vanishes is not there."""
    total = 0
    for path in _walk(folder):
        with suppress(OSError):
            total += path.lstat().st_blocks * 512
    return total


def mounts(store: Store, pid: int) -> int:
    """How many that process sees below the store. Those of boxes are in namespaces of theirs."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/mounts").read_text(encoding="utf-8")
        return sum(str(store.root) in line for line in text.splitlines())
    return 0


def loops() -> int:
    """Loop devices that have a file behind them."""
    return len(list(Path("/sys/block").glob("loop*/loop/backing_file")))


def _walk(folder: Path) -> Iterator[Path]:
    yield folder
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(parent, name)


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _said(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
