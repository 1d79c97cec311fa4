"""Did the box stand still? Pure: what a probe must have seen for its verdict to count."""

from collections.abc import Iterator

from sandbox.errors import VerifierFault
from sandbox.model.verdict import Probe

SLACK_SECONDS = 5.0
_EXPECTED = {"TZ": "UTC", "LANG": "C.UTF-8", "hash_randomization": "0", "hostname": "box"}


def require_stillness(probe: Probe, *, at: float, elapsed: float) -> None:
    """Raises VerifierFault, which makes the verdict void, with what differed.

    at: the task's instant, seconds since the epoch; elapsed: seconds since it was set, at most.
    """
    wrong = list(_differences(probe, at, elapsed))
    if wrong:
        raise VerifierFault(
            "the box did not stand still: " + "; ".join(wrong),
            hint="see docs/reference/freeze.md: what is held still, and how",
        )


def _differences(probe: Probe, at: float, elapsed: float) -> Iterator[str]:
    if not probe.clock:
        yield "it did not tell its clock"
    for source, seen in probe.clock.items():
        if not at - SLACK_SECONDS <= seen <= at + elapsed + SLACK_SECONDS:
            yield f"the clock of {source} is {seen - at:+.0f} s from the task's instant"
    if probe.interfaces != ("lo",):
        yield f"network interfaces {', '.join(probe.interfaces) or 'none'} instead of lo"
    for address in probe.reached:
        yield f"there is a way to {address}"
    for name, expected in _EXPECTED.items():
        if (seen_value := probe.settings.get(name)) != expected:
            yield f"{name} is {seen_value!r}, not {expected!r}"
