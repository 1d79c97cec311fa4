"""Signs in a log that the machine failed, and not the patch. Advice: no verdict is made of it."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    name: str
    """As the reports of SWE-bench 5.x have it."""
    certain: bool
    """No patch can bring this about. Else it may be the patch's own fault."""


_CERTAIN = {
    "browser_launch_failed": "Failed to launch|Failed to connect to the bus",
    "display_unavailable": "cannot open display|unable to open X display|Missing X server",
    "out_of_memory": "OutOfMemoryError|Cannot allocate memory|^Killed$",
    "container_unavailable": "Cannot connect to the Docker daemon|Error response from daemon",
    "network_unreachable": "Temporary failure in name resolution|Could not resolve host",
}
_UNCERTAIN = {
    "missing_module": "ModuleNotFoundError|MODULE_NOT_FOUND|Cannot find module",
    "no_tests_collected": "collected 0 items|no tests ran",
    "tests_timed_out": r"Timeout error: \d+ seconds exceeded",
}
_SIGNS = tuple(
    (Cause(name=name, certain=signs is _CERTAIN), re.compile(sign, re.MULTILINE))
    for signs in (_CERTAIN, _UNCERTAIN)
    for name, sign in signs.items()
)


def cause_of(text: str) -> Cause | None:
    """Of several, the first in the order above."""
    return next((cause for cause, sign in _SIGNS if sign.search(text)), None)
