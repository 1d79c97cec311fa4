"""The second best way to hold a clock, for machines that have no better one.

libfaketime, preloaded, moves the wall clock of every dynamically linked program to the task's
instant, from where it ticks; monotonic time is left alone, so that waiting works. It is named in
the box's environment, and in files that nothing in the box can change: so a program that is started
with an empty environment is reached, too. What it cannot reach (static programs, raw system calls)
sees the machine's clock.
"""

from collections.abc import Mapping
from pathlib import Path

from sandbox.runtime.spec import Image, Mount

LIBRARY = "/usr/lib/stillroom/libfaketime.so.1"
"""In every image of ours: repos/images/*.yaml link it there."""
LEAVES = "FAKETIME_SHARED"
"""A variable that it adds to the environment of what it is loaded into."""
_PRELOAD, _SETTING = "/etc/ld.so.preload", "/etc/faketimerc"


def has_library(image: Image) -> bool:
    return any((lower / LIBRARY.lstrip("/")).is_symlink() for lower in image.lowers) or any(
        (lower / LIBRARY.lstrip("/")).is_file() for lower in image.lowers
    )


def distance(at_ns: int, *, now: float) -> str:
    """From the machine's clock to the box's: then all processes share one time axis."""
    return f"{at_ns / 1e9 - now:+.6f}s"


def environment(at_ns: int, *, now: float) -> Mapping[str, str]:
    """For a box that is made at `now`, in seconds since the epoch on the machine's clock."""
    return {
        "LD_PRELOAD": LIBRARY,
        "FAKETIME": distance(at_ns, now=now),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


def mounts(at_ns: int, folder: Path, *, now: float) -> tuple[Mount, ...]:
    """The same for programs that are started without that environment; writes into `folder`."""
    files = {_PRELOAD: LIBRARY, _SETTING: distance(at_ns, now=now)}
    made = []
    for target, line in files.items():
        source = folder / Path(target).name
        source.write_text(line + "\n", encoding="ascii")
        source.chmod(0o444)
        made.append(Mount(source=source, target=target))
    return tuple(made)
