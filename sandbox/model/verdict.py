"""What the verifier found (evidence) and what it means (verdict)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from sandbox.model.task import CheckSpec


class Outcome(StrEnum):
    """How one check ended. Only `passed` is a pass."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """Setup or teardown failed."""
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"
    MISSING = "missing"
    """Declared in the spec, absent from the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    outcome: Outcome
    seconds: float = 0.0
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What the box said of itself, measured before or beside the checks, in their environment."""

    by: Literal["runner", "static"] = "runner"
    """`static`: a program of ours without a C library; its numbers are all it tells."""
    clock: Mapping[str, float] = field(default_factory=dict)
    """Name of the way of asking → seconds since the epoch."""
    interfaces: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    """Addresses beyond the box that answered or were not refused."""
    settings: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    """Names of what was in its environment."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Whatever else was measured, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldClock:
    """What was done about the wall clock of a box."""

    at: str
    """The instant at which it started."""
    mode: Literal["ticking", "fixed", "step"]
    coverage: Literal["full", "partial"]
    """`full`: of every program, however it was started; `partial`: of those that load a C library."""
    warning: str = ""
    """Why it was no more than partial."""


class Ran(StrEnum):
    """How the verifier's run ended."""

    FINISHED = "finished"
    REJECTED = "rejected"
    """The submission could not be applied, strictly, to the pinned tree."""
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    """The runner did not reach its end: the code under test took it down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Raw, saved as is: a verdict can be computed again without a box."""

    ran: Ran
    detail: str = ""
    """Why it was rejected, timed out or crashed."""
    report: Mapping[str, CheckReport] = field(default_factory=dict)
    probes: tuple[Probe, ...] = ()
    clock: HeldClock | None = None
    """None: there was no need of a box, or this was written before it was kept."""
    exit_code: int | None = None
    log: str = ""
    """What the run printed, bounded."""
    outside: tuple[str, ...] = ()
    """Paths of the submission that lie outside the declared ones: left out."""
    seconds: float = 0.0
    """The checks' own run time."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    spec: CheckSpec
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    checks: tuple[CheckResult, ...]
    reason: str = ""
    """In words, when it is not resolved."""

    @property
    def resolved(self) -> bool:
        return bool(self.checks) and all(c.outcome is Outcome.PASSED for c in self.checks)

    @property
    def reward(self) -> float:
        """Weighted share of passed checks; 0 if a gate did not pass, 1 only if resolved."""
        if self.resolved:
            return 1.0
        if any(c.spec.gate and c.outcome is not Outcome.PASSED for c in self.checks):
            return 0.0
        total = sum(c.spec.weight for c in self.checks)
        passed = sum(c.spec.weight for c in self.checks if c.outcome is Outcome.PASSED)
        return min(passed / total, 1.0 - 1e-6) if total else 0.0
