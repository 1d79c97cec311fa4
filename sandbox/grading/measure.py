"""What the static probe measures in a box: started as the tests are, and by the same user."""

import json
from collections.abc import Callable, Mapping

from sandbox.errors import VerifierFault
from sandbox.grading.apply import said
from sandbox.grading.probe import CLOCKS, MORE_CLOCKS, SLACK_SECONDS, Expected
from sandbox.model.verdict import Probe
from sandbox.runtime.base import Box
from sandbox.runtime.freeze.hold import STILL

_SECONDS = 60.0
_ASKED = ("at", "slack")
"""What it was told, told again."""


def measured(box: Box, expect: Expected, *, user: str, age: Callable[[], float]) -> Probe:
    """Raises VerifierFault when it tells nothing. What it tells is not judged here."""
    still = expect.still
    slack = round((age() + SLACK_SECONDS) * 1e9)
    done = box.exec(
        [STILL, "probe", str(still.at_ns), str(slack), still.mode],
        seconds=_SECONDS,
        cwd="/",
        user=user,
        trusted=True,
    )
    try:
        told = json.loads(done.stdout)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise VerifierFault(said("the probe of the box's clock tells nothing", done))
    return as_probe(told)


def as_probe(told: Mapping[str, object]) -> Probe:
    """Its times are in nanoseconds, and an error is a number; words are not for us."""
    numbers = {k: float(v) for k, v in told.items() if isinstance(v, int)}
    clock = {k: v / 1e9 for k, v in numbers.items() if k in (*CLOCKS, *MORE_CLOCKS)}
    more = {k: v for k, v in numbers.items() if k not in clock and k not in _ASKED}
    return Probe(by="static", clock=clock, numbers=more)
