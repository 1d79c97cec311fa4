"""Did the box stand still? Pure: what a probe must have seen for its verdict to count."""

import errno
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sandbox.errors import VerifierFault
from sandbox.model.verdict import Probe
from sandbox.runtime.freeze.preload import LEAVES
from sandbox.runtime.spec import BoxSpec, Stillness

SLACK_SECONDS = 5.0
_EXACT_SECONDS = 1e-6
"""A clock that stands is told with the precision of a float."""
_MOST_STEPS = 10_000_000
"""That a clock which moves when it is read may have moved before somebody looks."""
_TAI_SECONDS = 60.0
"""How far atomic time may be ahead; 37 s since 2017, and nothing where nobody set it."""
CLOCKS = (
    *("clock_gettime", "gettimeofday", "time", "coarse", "tai", "child"),
    *("raw_clock_gettime", "raw_gettimeofday", "raw_coarse", "raw_tai"),
)
"""Ways to ask for the time that the static probe tries; `child`: as a program without environment."""
MORE_CLOCKS = ("raw_time",)
"""Where the processor has that call."""
_SETTING = ("clock_settime", "settimeofday", "adjtimex")
_LEAVING = ("udp", "tcp", "udp6", "tcp6", "vsock", "alg")
_WAITS: Mapping[str, float] = {"sleep_ms": 49, "wait_ms": 55}
"""The least that each may take: a sleep of 50 ms, and a wait until 60 ms from now."""
_MOST_MS = 5000
_CHOSEN_NS = 1e18
"""What the probe sets a file's time to, to look whether it stays."""
_MEASURED = (*_SETTING, *_LEAVING, *_WAITS, "mtime", "utimes", "interfaces", "umask")
_DENIED = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS})
_HINT = "see docs/reference/freeze.md: what is held still, and how"
_ADDED = frozenset({"HOSTNAME", "LC_CTYPE", "OLDPWD", "PWD", "SHLVL", "_"})
"""By shells, by engines, and by Python when it is told no locale."""

_OF_THE_BOX = frozenset({"hostname", "hash_randomization", "aslr"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a probe has to tell."""

    still: Stillness
    partial: bool
    """Only programs that load a C library are held."""
    umask: int
    """The box's own: the runner sets that of the checks."""
    settings: Mapping[str, str]
    variables: frozenset[str] | None
    """None: whatever there is."""


def expected(spec: BoxSpec, still: Stillness, *, user: str, umask: int) -> Expected:
    """Of a box that was made as `spec`, when the checks in it run as `user`, with this umask."""
    env = spec.environment
    partial = spec.still is None
    seed = env.get("PYTHONHASHSEED", "")
    settings = {
        "TZ": env.get("TZ", ""),
        "LANG": env.get("LANG", ""),
        "PYTHONHASHSEED": seed,
        "hash_randomization": "0" if seed == "0" else "1",
        "hostname": spec.hostname,
        "user": user,
        "umask": f"{umask:03o}",
    }
    if not still.aslr and not partial:
        settings["aslr"] = "off"
    known = frozenset(env) | _ADDED | ({LEAVES} if partial else frozenset())
    return Expected(
        still=still, partial=partial, umask=spec.umask, settings=settings, variables=known
    )


def later_on(expect: Expected) -> Expected:
    """Once code under test has run: its own process is its own, the box around it is not."""
    kept = {k: v for k, v in expect.settings.items() if k in _OF_THE_BOX}
    return replace(expect, settings=kept, variables=None)


def require_stillness(probe: Probe, expect: Expected, *, elapsed: float) -> None:
    """Raises VerifierFault, which makes the verdict void, with what differed.

    elapsed: seconds since the box's clock was started, at most.
    """
    wrong = list(_differences(probe, expect, elapsed))
    if wrong:
        raise VerifierFault("the box did not stand still: " + "; ".join(wrong), hint=_HINT)


def _differences(probe: Probe, expect: Expected, elapsed: float) -> Iterator[str]:
    if not probe.clock:
        yield "it did not tell its clock"
    yield from _moved(probe.clock, expect.still, elapsed)
    if probe.by == "static":
        yield from _measured(probe, expect, elapsed)
        return
    if probe.interfaces != ("lo",):
        yield f"network interfaces {', '.join(probe.interfaces) or 'none'} instead of lo"
    for address in probe.reached:
        yield f"there is a way to {address}"
    for name, value in expect.settings.items():
        if (seen := probe.settings.get(name)) != value:
            yield f"{name} is {seen!r}, not {value!r}"
    known = expect.variables
    if known is not None and (strange := sorted(set(probe.variables) - known)):
        yield f"nobody set the variables {', '.join(strange)}"


def _moved(clock: Mapping[str, float], still: Stillness, elapsed: float) -> Iterator[str]:
    at = still.at_ns / 1e9
    before, after = _window(still, elapsed)
    for source, seen in clock.items():
        ahead = _TAI_SECONDS if source.endswith("tai") else 0.0
        if not at - before <= seen <= at + after + ahead:
            yield f"the clock of {source} is {seen - at:+.0f} s from the task's instant"


def _window(still: Stillness, elapsed: float) -> tuple[float, float]:
    """How far a clock may be before the instant at which it started, and after it."""
    if still.mode == "fixed":
        return _EXACT_SECONDS, _EXACT_SECONDS
    if still.mode == "step":
        return _EXACT_SECONDS, _MOST_STEPS * still.step_ns / 1e9
    return SLACK_SECONDS, elapsed + SLACK_SECONDS


def _measured(probe: Probe, expect: Expected, elapsed: float) -> Iterator[str]:
    """What a static program found besides the time."""
    told = probe.numbers
    missing = [n for n in CLOCKS if n not in probe.clock] + [n for n in _MEASURED if n not in told]
    if missing:
        yield f"it did not tell {', '.join(missing)}"
        return
    yield from (f"{name} is not refused" for name in _SETTING if told[name] not in _DENIED)
    yield from (f"there is a way out by {name}" for name in _LEAVING if told[name] <= 0)
    for name, least in _WAITS.items():
        # A clock that moves when it is read has no instant to wait for.
        enough = 0 if name == "wait_ms" and expect.still.mode == "step" else least
        if not enough <= told[name] <= _MOST_MS:
            yield f"{name} is {told[name]:g}"
    yield from _file_times(told, expect.still, elapsed)
    if told["interfaces"]:
        yield f"{told['interfaces']:g} network interfaces beside lo"
    if told["umask"] != expect.umask:
        yield f"umask is {int(told['umask']):03o}, not {expect.umask:03o}"


def _file_times(told: Mapping[str, float], still: Stillness, elapsed: float) -> Iterator[str]:
    behind = (told["mtime"] - still.at_ns) / 1e9
    if not -SLACK_SECONDS <= behind <= elapsed + SLACK_SECONDS:
        yield f"the time of a new file is {behind:+.0f} s from the task's instant"
    if told["utimes"] != _CHOSEN_NS:
        yield "the time that a program gives a file does not stay"
