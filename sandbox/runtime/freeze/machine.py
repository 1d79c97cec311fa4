"""What a box is told of the machine: as many processors as it may use, a start by its own clock.

These are texts of /proc and /sys that stand still. /proc/uptime is none of them: it is monotonic
time, and whoever waits by it would wait for ever; with the boot time here it adds up to the box's
own clock. Nor is the kernel's boot_id: engines let nothing be mounted there.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path

NANO = 1_000_000_000
STAT, CPUINFO, ONLINE = "/proc/stat", "/proc/cpuinfo", "/sys/devices/system/cpu/online"
PATHS = (STAT, CPUINFO, ONLINE)
_PROCESSOR = re.compile(rb"^cpu(\d+) .*\n", re.MULTILINE)
_BOOTED = re.compile(rb"^btime \d+$", re.MULTILINE)


def processors(cpus: float, there: int) -> int:
    """How many a box sees that may use so much time; never more than there are."""
    return max(1, min(math.ceil(cpus), there))


def texts(count: int, booted_ns: int) -> Mapping[str, bytes]:
    """Paths, and what they say in a box that may use so many processors.

    `booted_ns`: what its clock would have said when the machine started.
    """
    return {
        STAT: stat(Path(STAT).read_bytes(), count, booted_ns),
        CPUINFO: cpuinfo(Path(CPUINFO).read_bytes(), count),
        ONLINE: online(count),
    }


def stat(text: bytes, count: int, booted_ns: int) -> bytes:
    """With the first processors only, and another boot.

    A machine that was up before time began started with it: there is no negative time here.
    """
    kept = _PROCESSOR.sub(lambda found: found[0] if int(found[1]) < count else b"", text)
    return _BOOTED.sub(b"btime %d" % max(0, booted_ns // NANO), kept)


def cpuinfo(text: bytes, count: int) -> bytes:
    """The first of its paragraphs. On some machines the last one is about the machine: it stays."""
    paragraphs = [part for part in text.split(b"\n\n") if part.strip()]
    each = [part for part in paragraphs if part.startswith(b"processor")]
    others = [part for part in paragraphs if not part.startswith(b"processor")]
    return b"".join(part.rstrip(b"\n") + b"\n\n" for part in (*each[:count], *others))


def online(count: int) -> bytes:
    return b"0\n" if count == 1 else b"0-%d\n" % (count - 1)
