"""What a fake box tells of its clock when it should hold one: what a real one would."""

import errno
import json
from collections.abc import Sequence

from sandbox.runtime.base import ExecResult
from sandbox.runtime.fakeshell import said
from sandbox.runtime.freeze.hold import STILL
from sandbox.runtime.spec import BoxSpec, Stillness

_CLOCKS = (
    *("clock_gettime", "gettimeofday", "time", "coarse", "tai", "child"),
    *("raw_clock_gettime", "raw_gettimeofday", "raw_coarse", "raw_tai", "raw_time"),
)
_ERRORS = {
    **dict.fromkeys(("clock_settime", "settimeofday", "adjtimex", "packet", "raw"), errno.EPERM),
    **dict.fromkeys(("udp", "tcp", "udp6", "tcp6"), errno.ENETUNREACH),
    **dict.fromkeys(("vsock", "alg"), errno.EAFNOSUPPORT),
}


def told(spec: BoxSpec, argv: Sequence[str]) -> ExecResult | None:
    """The answer to a program that asks for the time; None to any other."""
    still = spec.still
    match tuple(argv):
        case (program, "probe", *_) if still and program == STILL:
            return said(json.dumps(probe(spec, still)) + "\n")
        case ("date", "+%s") | ("bash", "-c", "date +%s") if still:
            return said(f"{still.at_ns // 1_000_000_000}\n")
        case _:
            return None


def probe(spec: BoxSpec, still: Stillness) -> dict[str, int]:
    """The numbers of a box in which everything is as it should be, just after it was made."""
    times = dict.fromkeys((*_CLOCKS, "mtime", "after_mtime"), still.at_ns)
    waits = {"sleep_ms": 50, "wait_ms": 60}
    around = {"interfaces": 0, "seccomp_filters": 1, "umask": spec.umask, "cpus": 1}
    return {**times, "utimes": 10**18, **_ERRORS, **waits, **around}
