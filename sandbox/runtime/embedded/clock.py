"""The clock of a box, seen from the host: what its first process is told, and what came of it."""

import socket
import time
from dataclasses import dataclass
from typing import Any

from sandbox.errors import RuntimeFault
from sandbox.runtime.embedded import guise, wire
from sandbox.runtime.embedded.still import UPTIME_SECONDS
from sandbox.runtime.freeze.axis import Axis, file_time_ns, start_ns
from sandbox.runtime.ready import readable
from sandbox.runtime.spec import BoxSpec

PROGRAM = "/.stillroom/still"
"""Where a box has the program by which others can come under its clock."""
THREADS = 4
"""Of the first process, which answer for the clock: two of them for programs from outside."""
_SECOND = 1_000_000_000
_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    axis: Axis
    own_time: bool
    """Has the box a time namespace?"""
    steps: bool
    """Does it move with its reads? Then only the box knows what it says."""

    @classmethod
    def begun(cls, spec: BoxSpec, since_ns: int, told: dict[str, Any]) -> "Clock | None":
        """`told`: by the first process. None: the box has none, or it does not run yet."""
        if (still := spec.still) is None or "mono0_ns" not in told:
            return None
        axis = Axis(
            at_ns=start_ns(still, spec.snapshot),
            real0_ns=told["real0_ns"],
            since_ns=since_ns,
            mono0_ns=told["mono0_ns"],
            ticking=still.mode == "ticking",
        )
        return cls(axis=axis, own_time=told["own_time"], steps=still.mode == "step")


class Started:
    """One that was told to start: who needs to know what came of it waits for that.

    Others need not: a first process does one thing after the other.
    """

    def __init__(self, spec: BoxSpec, since_ns: int, reply: socket.socket) -> None:
        self._spec, self._since_ns, self._reply = spec, since_ns, reply

    def heard(self) -> Clock:
        """Once. Raises RuntimeFault when it does not run."""
        with self._reply:
            late = {"error": "no answer"}
            told = wire.receive(self._reply)[0] if readable([self._reply], _SECONDS) else late
        made = Clock.begun(self._spec, self._since_ns, told or {})
        if made is None:
            raise RuntimeFault(f"the box has no clock: {(told or {}).get('error', 'it is gone')}")
        return made

    def close(self) -> None:
        self._reply.close()


@dataclass(frozen=True, slots=True)
class Birth:
    """When a box began to be made, by this machine's clocks."""

    real_ns: int
    boot_ns: int

    @classmethod
    def now(cls) -> "Birth":
        real = file_time_ns()
        # Some file systems know whole seconds only.
        return cls(real - real % _SECOND, time.clock_gettime_ns(time.CLOCK_BOOTTIME))


def request(spec: BoxSpec, born: Birth, *, begin: bool) -> dict[str, Any] | None:
    """What a first process is told of its clock. None: it is to have none."""
    if (still := spec.still) is None:
        return None
    if not begin:
        return {}
    options = [
        f"at={start_ns(still, spec.snapshot)}",
        f"mode={still.mode}",
        f"since={born.real_ns}",
        f"step={still.step_ns}",
        *([] if still.seed is None else [f"seed={still.seed}"]),
        *([] if still.aslr else ["aslr=0"]),
    ]
    # The first process of a box must not be older than its machine.
    age = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - born.boot_ns
    up = max(UPTIME_SECONDS * _SECOND, age + _SECOND)
    return {"options": " ".join(options), "up_ns": up}


def seen(spec: BoxSpec, cpus: int) -> dict[str, str] | None:
    """What a box with a clock sees of the machine: files, by path."""
    if spec.still is None:
        return None
    return guise.files(cpus, start_ns(spec.still, spec.snapshot) - UPTIME_SECONDS * _SECOND)


def now_ns(clock: Clock, stopped_ns: int | None) -> int:
    """`stopped_ns`: when it was, in monotonic time."""
    return clock.axis.now_ns(time.monotonic_ns() if stopped_ns is None else stopped_ns)
