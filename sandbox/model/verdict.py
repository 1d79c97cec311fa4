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
class Seen:
    """What one box showed."""

    ran: Ran
    detail: str = ""
    """Why it was rejected, timed out or crashed."""
    report: Mapping[str, CheckReport] = field(default_factory=dict)
    observed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of a plain run: key of an assertion → the different values that it was told."""
    probes: tuple[Probe, ...] = ()
    clock: HeldClock | None = None
    """None: there was no need of a box, or this was written before it was kept."""
    exit_code: int | None = None
    log: str = ""
    """What the run printed, bounded."""
    seconds: float = 0.0
    """The checks' own run time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """What it is evidence of, by content."""

    task: str
    image: str
    bundle: str
    runner: str
    patch_sha256: str
    canaries: str = ""
    plain: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Part of the task → its digest; of the verifier without its checks: these may be weighed anew."""


def file_of(check: str) -> str:
    """The file of a test, by the id of its check."""
    return check.partition("::")[0]


def function_of(check: str) -> str:
    """The function of a test, by the id of its check, without the row: `path::Class::name`."""
    return check.partition("[")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two boxes more, with coins of their own; see grading.further."""

    first: Seen
    second: Seen
    swapped: tuple[str, ...] = ()
    """Units whose canaries ran in the first of them."""
    drawn: Mapping[str, int] = field(default_factory=dict)
    """Unit that has several canaries → which of them ran."""
    paths: tuple[str, ...] = ()
    """The functions of tests that ran there, or whole files. Empty: all."""

    def covers(self, check: str) -> bool:
        asked = {function_of(check), file_of(check)}
        return not self.paths or not asked.isdisjoint(self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(Seen):
    """What the boxes showed, the first of them in its own fields.

    Raw, saved as is: a verdict can be computed again without a box.
    """

    outside: tuple[str, ...] = ()
    """Paths of the submission that lie outside the declared ones: left out."""
    pins: Pins | None = None
    asked: Literal["all", "none", "mixed"] = "all"
    """Which layers were asked for, as in model.conditions: it is judged by what was asked."""
    swapped: tuple[str, ...] = ()
    """Units whose canaries ran in the first box, and whose tests ran in the second."""
    drawn: Mapping[str, int] = field(default_factory=dict)
    """Unit that has several canaries → which of them ran."""
    second: Seen | None = None
    """None: there are no canaries, or only one box was asked for."""
    further: tuple[Pair, ...] = ()
    """Where a reward rests on few units. What counts has to count in each of them."""
    plain: Seen | None = None
    """Without the test runner. None: not asked for, as where not everything passed."""


Flag = Literal["forged", "test-dependent", "unproved"]
"""`forged`: it passed what nothing right can pass; `test-dependent`: it is right under the test
runner only; `unproved`: the evidence lacks what a verdict of this task rests on."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    spec: CheckSpec
    outcome: Outcome
    """`missing` as well where it could not be believed; then `note` says why."""
    note: str = ""

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED or self.outcome.value in self.spec.accept


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    checks: tuple[CheckResult, ...]
    reason: str = ""
    """In words, when it is not resolved."""
    flags: tuple[Flag, ...] = ()
    """Any of them makes the reward 0."""

    @property
    def resolved(self) -> bool:
        return bool(self.checks) and not self.flags and all(c.passed for c in self.checks)

    @property
    def reward(self) -> float:
        """Weighted share of passed checks; 0 if a gate did not pass, 1 only if resolved.

        A scored check of weight 0 earns nothing; one that did not pass counts as one of weight 1.
        """
        if self.resolved:
            return 1.0
        if self.flags or any(c.spec.gate and not c.passed for c in self.checks):
            return 0.0
        passed = sum(c.spec.weight for c in self.checks if c.passed)
        return min(passed / self.total, 1.0 - 1e-6) if self.total else 0.0

    @property
    def total(self) -> float:
        """Of the weights: what the passed ones are held against."""
        failed = sum(not c.passed and not c.spec.gate and not c.spec.weight for c in self.checks)
        return sum(c.spec.weight for c in self.checks) + failed
