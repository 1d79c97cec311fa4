"""What a box with a clock of its own sees of the machine, beside the clock: files over files.

Processors: as many as the box may use, so that a program starts as many threads here as elsewhere.
Not seen to: `uname`, which only the kernel answers.
"""

import os
from collections.abc import Iterable
from typing import Any

from sandbox.runtime.embedded import kernel

BOOT_ID = "5717100b-0000-4000-8000-000000000000"
"""Of every box alike."""
_PLACE = "guise"
_TICKS = 10_000
"""Of processor time that each one has idled: the uptime, in hundredths of a second."""
_LISTS = ("online", "possible", "present")
_CPUS = "sys/devices/system/cpu"


def files(cpus: int, started: int, cpuinfo: str) -> dict[str, str]:
    """By path. `started`: seconds since the epoch, on the box's clock."""
    own = {
        "proc/stat": stat_text(cpus, started),
        "proc/sys/kernel/random/boot_id": f"{BOOT_ID}\n",
        **{f"{_CPUS}/{name}": f"0-{cpus - 1}\n" if cpus > 1 else "0\n" for name in _LISTS},
    }
    return own | ({"proc/cpuinfo": described(cpuinfo, cpus)} if cpuinfo else {})


def stat_text(cpus: int, started: int) -> str:
    rows = [("cpu ", cpus), *((f"cpu{number}", 1) for number in range(cpus))]
    lines = [f"{name} 0 0 0 {count * _TICKS} 0 0 0 0 0 0" for name, count in rows]
    return "\n".join(
        [*lines, "intr 0", "ctxt 0", f"btime {started}", "processes 1", "procs_running 1",
         "procs_blocked 0", f"softirq{' 0' * 11}", ""]
    )  # fmt: skip


def described(cpuinfo: str, cpus: int) -> str:
    """The first of what the machine says of its processors."""
    blocks = cpuinfo.strip().split("\n\n")
    return "\n\n".join([*blocks[:cpus], ""])


def dress(stage: str, asked: dict[str, Any] | None) -> None:
    """Lay the files over what is staged; who calls this is whom they are to belong to."""
    if asked is None:
        return
    place = f"{stage}/{_PLACE}"
    os.mkdir(place)
    contents = files(**asked)
    texts = {text: f"{place}/{i}" for i, text in enumerate(_distinct(contents.values()))}
    for text, path in texts.items():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o444))
        kernel.write(path, text)
    kernel.bind(place, place)
    kernel.remount_read_only(place, kernel.MS_NOSUID | kernel.MS_NODEV)
    for name, text in contents.items():
        target = f"{stage}/{name}"
        if os.path.exists(target):
            kernel.bind(texts[text], target)  # read-only as what it is taken from


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
