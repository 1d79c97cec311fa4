"""The clock of a box, seen from the host: what its first process is told, and what came of it."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.runtime.embedded.still import LATER, UPTIME_SECONDS
from sandbox.runtime.freeze.axis import Axis, start_ns
from sandbox.runtime.spec import BoxSpec, Snapshot, Stillness

PROGRAM = "/.stillroom/still"
"""Where a box has the program by which others can come under its clock."""
THREADS = 3
"""Of the first process, which answer for the clock."""
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    axis: Axis
    own_time: bool
    """Has the box a time namespace?"""
    steps: bool
    """Does it move with its reads? Then only the box knows what it says."""

    @classmethod
    def begun(cls, spec: BoxSpec, told: dict[str, Any]) -> "Clock | None":
        """`told`: by the first process. None: it has none, or it does not run yet."""
        if (still := spec.still) is None or "axis" not in told:
            return None
        ticking, at = still.mode == "ticking", start_ns(still, spec.snapshot)
        axis = Axis(at_ns=at, ticking=ticking, **told["axis"])
        return cls(axis=axis, own_time=told["own_time"], steps=still.mode == "step")


def options(still: Stillness, snapshot: Snapshot | None) -> str:
    """For `still_begin`; when the box began to be made is for its first process to add."""
    seed = "" if still.seed is None else f" seed={still.seed}"
    aslr = "" if still.aslr else " aslr=0"
    step = f" step={still.step_ns}" if still.mode == "step" else ""
    return f"at={start_ns(still, snapshot)} mode={still.mode}{step}{seed}{aslr}"


def request(spec: BoxSpec, *, begin: bool) -> str:
    """What whoever builds a box is told of its clock; nothing: it is to have none."""
    if spec.still is None:
        return ""
    return options(spec.still, spec.snapshot) if begin else LATER


def guise(spec: BoxSpec, cpus: int) -> dict[str, Any] | None:
    """What a box with a clock sees of the machine; see `embedded.guise`."""
    if spec.still is None:
        return None
    started = start_ns(spec.still, spec.snapshot) // _SECOND - UPTIME_SECONDS
    return {"cpus": cpus, "started": started, "cpuinfo": Path("/proc/cpuinfo").read_text()}


def now_ns(clock: Clock, stopped_ns: int | None) -> int:
    """`stopped_ns`: when it was, in monotonic time."""
    return clock.axis.now_ns(time.monotonic_ns() if stopped_ns is None else stopped_ns)
