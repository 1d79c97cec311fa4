"""A box of the engine ends: what it alone had looked at leaves the kernel's memory with it."""

import contextlib
from dataclasses import replace
from pathlib import Path, PurePosixPath

from sandbox.runtime.embedded.cgroup import detect


def end(container: str, pid: int) -> None:
    """Kill all of it, and put out what is counted as its memory. Where we cannot, nothing is done.

    pid: of its first process, if the engine is on this machine. What stands still cannot look at
    anything again before it is killed.
    """
    group = _group(container, pid)
    found = detect()
    if group is None or found is None:
        return
    groups = replace(found, parent=str(group.parent).lstrip("/"))
    with contextlib.suppress(OSError):  # we may not, or it is gone
        try:
            groups.freeze(group.name)
            groups.put_out(group.name)
        finally:
            groups.kill(group.name)


def _group(container: str, pid: int) -> PurePosixPath | None:
    """None where a process of that number is not of this container: the engine is elsewhere."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in {"", "memory"} and container in path:
            return PurePosixPath(path)
    return None
