"""What a run could leave on a machine, looked for from outside."""

import subprocess
from pathlib import Path

from sandbox.runtime.embedded import cgroup
from sandbox.runtime.embedded.host import tag
from sandbox.runtime.store import Store


def leftovers(store: Store) -> list[str]:
    """Processes, mounts, cgroups, folders and containers of runs that used this store."""
    return [
        *_processes(store),
        *_mounts(store),
        *_groups(store),
        *_folders(store),
        *_containers(store),
    ]


def _processes(store: Store) -> list[str]:
    """What makes boxes, first processes of boxes, and agents' programs."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            argv = (entry / "cmdline").read_bytes().split(b"\0")
            environ = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        ours = f"STILLROOM_STORE={store.root}".encode() in environ
        agents = ours and any(e.startswith(b"STILLROOM_AGENT=") for e in environ)
        if argv[0] == tag(store).encode() or agents:
            found.append(f"process {entry.name}: {argv!r}")
    return found


def _mounts(store: Store) -> list[str]:
    mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    return [f"mount {m}" for m in mounts if str(store.root) in m]


def _groups(store: Store) -> list[str]:
    groups = cgroup.detect(parent=tag(store))
    return [f"cgroup {name}" for name in groups.boxes()] if groups else []


def _folders(store: Store) -> list[str]:
    places = ("boxes", "tmp", "docker", "agents")
    return [
        f"{place}/{p.name}"
        for place in places
        if (store.root / place).is_dir()
        for p in (store.root / place).iterdir()
        if p.name not in ("id", "images")  # which store it is, and what the engine has of it
    ]


def _containers(store: Store) -> list[str]:
    name = store.root / "docker" / "id"
    if not name.exists():
        return []
    label = f"label=stillroom.store={name.read_text(encoding='utf-8')}"
    argv = ["docker", "ps", "-aq", "--filter", label]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        return []
    return [f"container {name}" for name in done.stdout.split()]
