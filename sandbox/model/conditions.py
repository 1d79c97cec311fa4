"""Under what conditions a verdict is made, when they are not the task's own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What may differ without the verdict differing. None and empty: as the task has it."""

    at: str = ""
    """Instant of the clock, as in `clock.at`."""
    mode: Literal["ticking", "fixed", "step"] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    """Over everything else, e.g. TZ, LANG or PYTHONHASHSEED."""
    order: int | None = None
    """Run the checks in an order drawn with this seed; -1: the other way round."""
    cpus: float | None = None
    load: int = 0
    """So many busy programs beside the checks."""
    user: str | None = None
    """Who runs the checks: `uid:gid`."""
    hostname: str | None = None
    umask: int | None = None
    layers: Literal["all", "none", "mixed"] = "all"
    """`none`: the tests alone, in one box; `mixed`: in one box, about half of the tests as canaries."""
    draw: str = ""
    """With `mixed`: what the coins are drawn with."""


USUAL = Conditions()
