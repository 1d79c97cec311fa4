"""Which limits of a box were reached, in words: the same on every runtime."""

from collections.abc import Iterator

from sandbox.model.task import Limits
from sandbox.runtime.base import Capabilities, Held, Stats

_PROTECTING: tuple[Held, ...] = ("memory", "pids", "cpus", "disk")


def reached(before: Stats, after: Stats, limits: Limits) -> str:
    """What happened between the two; empty when no limit was in the way."""
    return join(_reached(before, after, limits))


def join(parts: Iterator[str] | list[str]) -> str:
    return "; ".join(part for part in parts if part)


def memory(killed: int, limits: Limits) -> str:
    processes = "1 process was" if killed == 1 else f"{killed} processes were"
    return f"the memory limit of {limits.memory_mib} MiB was reached: {processes} killed"


def memory_of_box(limits: Limits) -> str:
    """When what was killed was the box's first process."""
    return f"the memory limit of {limits.memory_mib} MiB was reached: the box was stopped"


def pids(refused: int, limits: Limits) -> str:
    more = "1 was" if refused == 1 else f"{refused} were"
    return f"the limit of {limits.pids} processes was reached: {more} refused"


def terminals(limits: Limits) -> str:
    return f"the limit of {limits.terminals} open terminals was reached"


def disk(limits: Limits) -> str:
    """Of a box that its watch has stopped."""
    return f"the disk limit of {limits.disk_mib} MiB was reached: the box was stopped"


def unheld(able: Capabilities) -> str:
    """Which limits of a task do not hold on this machine; empty when those that protect it do."""
    lacks = [name for name in _PROTECTING if name not in able.limits]
    return f"nothing here limits the boxes' {', '.join(lacks)}" if lacks else ""


def _reached(before: Stats, after: Stats, limits: Limits) -> Iterator[str]:
    if (killed := after.oom_kills - before.oom_kills) > 0:
        yield memory(killed, limits)
    if (refused := after.forks_refused - before.forks_refused) > 0:
        yield pids(refused, limits)
    if before.terminals < limits.terminals <= after.terminals:
        yield terminals(limits)
    if before.disk_bytes <= limits.disk_mib << 20 < after.disk_bytes:
        yield disk(limits)
