"""The time axis of a box with a clock of its own, as the host reckons it.

In the box this is done by the program that holds its clock (`native/axis.c`); the host reads raw
file times, which are the machine's, and has to come to the same.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.runtime.spec import Snapshot, Stillness

_SECOND = 1_000_000_000
_BEHIND_NS = 4 * _SECOND
_SLOWER = 65536
"""A clock that stands: files made within three days keep their order, and are not in its future."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    at_ns: int
    """What the box's clock said when it started; `real0_ns`: what the machine's said then."""
    real0_ns: int
    since_ns: int
    """When the box began to be made, on the machine's clock: what is older came with an image."""
    mono0_ns: int
    """The host's monotonic clock when it started."""
    ticking: bool = True

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Axis":
        """From what `told` gave, in another process."""
        return cls(**told)

    def told(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def now_ns(self, mono_ns: int) -> int:
        """What the box's clock says; of one that moves with its reads, where it started."""
        return self.at_ns + (max(0, mono_ns - self.mono0_ns) if self.ticking else 0)

    def shown_ns(self, time_ns: int, real_ns: int) -> int:
        """The time of a file as the box sees it. `real_ns`: the machine's clock now.

        A time from before there was the box, or from the future, was set by somebody who meant it:
        by an archive, or a program that wants the file to have that date.
        """
        if not self.since_ns <= time_ns <= real_ns + _SECOND:
            return time_ns
        age = time_ns - self.real0_ns
        if self.ticking:
            return self.at_ns + max(0, age)
        return self.at_ns - _BEHIND_NS + (age // _SLOWER if age > 0 else -(-age // _SLOWER))


def start_ns(still: Stillness, snapshot: Snapshot | None) -> int:
    """Where the clock of a new box starts: it never goes back behind what its files have seen."""
    return max(still.at_ns, (snapshot.clock_ns if snapshot else None) or still.at_ns)


def file_time_ns() -> int:
    """What the kernel dates files by, now: the clock that this process is shown may be another."""
    fd = os.memfd_create("now", os.MFD_CLOEXEC)
    try:
        return os.fstat(fd).st_mtime_ns
    finally:
        os.close(fd)
