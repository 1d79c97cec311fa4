"""What a run could leave on a machine, looked for from outside."""

import subprocess
from pathlib import Path

from sandbox.runtime.embedded import cgroup
from sandbox.runtime.store import Store


def leftovers(store: Store) -> list[str]:
    """Processes, mounts, cgroups, folders and containers of runs that used this store."""
    return [*_processes(), *_mounts(store), *_groups(store), *_folders(store), *_containers(store)]


def _processes() -> list[str]:
    """The process that makes boxes, and first processes of boxes, by the names they take."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            argv = (entry / "cmdline").read_bytes().split(b"\0")
            environ = (entry / "environ").read_bytes()
        except OSError:
            continue
        if argv[0] == b"stillroom" or b"STILLROOM_AGENT=" in environ:
            found.append(f"process {entry.name}: {argv!r}")
    return found


def _mounts(store: Store) -> list[str]:
    mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    return [f"mount {m}" for m in mounts if str(store.root) in m]


def _groups(store: Store) -> list[str]:
    groups = cgroup.detect()
    return [f"cgroup {name}" for name in groups.boxes()] if groups else []


def _folders(store: Store) -> list[str]:
    places = ("boxes", "tmp", "docker", "agents")
    return [
        f"{place}/{p.name}"
        for place in places
        if (store.root / place).is_dir()
        for p in (store.root / place).iterdir()
        if p.name != "store"
    ]


def _containers(store: Store) -> list[str]:
    argv = ["docker", "ps", "-aq", "--filter", "label=stillroom.owner"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        return []
    return [f"container {name}" for name in done.stdout.split()]
