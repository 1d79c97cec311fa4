"""What stands still in the box where a verdict is made: the wall clock, and what else drifts.

libfaketime, preloaded, moves the wall clock of every dynamically linked program to the task's
instant, from where it ticks; monotonic time is left alone, so that waiting works. What it cannot
reach (static programs, raw system calls) sees the machine's clock; the probe in the box notices
when it does not work at all.
"""

from collections.abc import Mapping
from datetime import datetime

from sandbox.model.task import ClockSpec

LIBRARY = "/usr/lib/stillroom/libfaketime.so.1"
"""In every image: repos/images/*.yaml link it there."""


def instant(clock: ClockSpec) -> float:
    """Seconds since the epoch."""
    return datetime.fromisoformat(clock.at).timestamp()


def frozen_environment(clock: ClockSpec, *, now: float) -> Mapping[str, str]:
    """For a program started at `now`, in seconds since the epoch on the machine's clock."""
    return {
        "LD_PRELOAD": LIBRARY,
        # A distance, not an instant: then all processes share one time axis.
        "FAKETIME": f"{instant(clock) - now:+.6f}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SOURCE_DATE_EPOCH": str(int(instant(clock))),
    }
