"""What a box with a clock of its own is told of its machine, where that cannot be hidden otherwise.

Texts of /proc and /sys that stand still: as many processors as the box may use, and a start by its
own clock. /proc/uptime is none of them: it is monotonic time, and whoever waits by it would wait
for ever; with the start here it adds up to the box's clock. Nor is the kernel's boot_id: engines
let nothing be mounted there.
"""

from collections.abc import Mapping
from pathlib import Path

NANO = 1_000_000_000
STAT, CPUINFO = "/proc/stat", "/proc/cpuinfo"
LISTS = tuple(f"/sys/devices/system/cpu/{name}" for name in ("online", "possible", "present"))
PATHS = (STAT, CPUINFO, *LISTS)
_TICKS = 10_000
"""Of processor time that each one has idled: how busy the machine is, is not the box's business."""


def texts(count: int, booted_ns: int) -> Mapping[str, str]:
    """Paths, and what they say in a box that may use so many processors.

    `booted_ns`: what its clock would have said when the machine started.
    """
    found = {STAT: stat(count, booted_ns), CPUINFO: cpuinfo(Path(CPUINFO).read_text(), count)}
    return found | dict.fromkeys(LISTS, listed(count))


def told(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Those that have to be mounted: each mount costs an engine a millisecond or more.

    The machine may say itself, and for as long as it runs, as many processors as a box has.
    """
    return {path: text for path, text in texts.items() if not _says(path, text)}


def _says(path: str, text: str) -> bool:
    try:
        return path in LISTS and Path(path).read_text() == text
    except OSError:
        return False


def stat(count: int, booted_ns: int) -> str:
    """A machine that was up before time began started with it: there is no negative time here."""
    rows = [("cpu ", count), *((f"cpu{number}", 1) for number in range(count))]
    lines = [f"{name} 0 0 0 {times * _TICKS} 0 0 0 0 0 0" for name, times in rows]
    booted = max(0, booted_ns // NANO)
    rest = ["intr 0", "ctxt 0", f"btime {booted}", "processes 1", "procs_running 1"]
    return "\n".join([*lines, *rest, "procs_blocked 0", f"softirq{' 0' * 11}", ""])


def cpuinfo(text: str, count: int) -> str:
    """The first of its paragraphs. On some machines the last one is about the machine: it stays."""
    paragraphs = [part.strip("\n") for part in text.split("\n\n") if part.strip()]
    each = [part for part in paragraphs if part.startswith("processor")]
    others = [part for part in paragraphs if not part.startswith("processor")]
    return "".join(f"{part}\n\n" for part in (*each[:count], *others))


def listed(count: int) -> str:
    return "0\n" if count == 1 else f"0-{count - 1}\n"
