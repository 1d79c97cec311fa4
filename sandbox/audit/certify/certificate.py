"""The certificate: what was moved, that the verdict was not, and a digest of both. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from sandbox.audit.certify.findings import ORACLE, Finding
from sandbox.audit.certify.shifts import Shift, all_shifts, is_repeat
from sandbox.formats.digest import digest_of
from sandbox.formats.shape import plain
from sandbox.model.conditions import USUAL
from sandbox.model.task import STRICT, Digest, TaskId, TaskSpec
from sandbox.model.verdict import Verdict

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedClock:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    at: str
    mode: str
    coverage: Literal["full"] = "full"
    """Of the programs in the box. Where the machine holds the clock of some only, none is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedShift:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """What was not as usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedSubmission:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    patch_sha256: str
    runs: int
    reward: float
    resolved: bool
    outcomes_digest: Digest
    """Of every check's outcome, which was the same in all runs unless it is `quarantined`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    check: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """certificates/<task>.json. Neither who made it, nor when, nor on which runtime is part of it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1] = 1
    task: TaskId
    certified: bool
    """Nothing varied, the reference solution resolves the task, and doing nothing does not."""
    task_digest: Digest
    image_digest: Digest
    verifier_digest: Digest
    """Of the hidden tests."""
    runner_digest: Digest
    """Of what runs them in the box."""
    clock: CertifiedClock
    repeats: int
    """Runs with nothing moved at all, of each submission."""
    flake_rate_below: float | None
    """If the repeats agree, this holds with `confidence`: what differs by chance, does so more rarely."""
    confidence: float
    shifts: tuple[CertifiedShift, ...]
    submissions: tuple[CertifiedSubmission, ...]
    quarantined: tuple[Quarantined, ...] = ()
    """Checks that varied, and with what."""
    problems: tuple[str, ...] = ()
    digest: str = ""
    """sha256 of all of the above as canonical JSON."""


def certificate(
    task: TaskSpec, shifts: Sequence[Shift], finding: Finding, runner: Digest
) -> Certificate:
    repeats = sum(is_repeat(s.name) for s in shifts)
    clean = not any(is_repeat(s.shift) for v in finding.varied for s in v.sightings)
    made = Certificate(
        task=task.id,
        certified=finding.still,
        task_digest=task.digest,
        image_digest=task.image.digest,
        verifier_digest=task.verifier.bundle.digest,
        runner_digest=runner,
        clock=CertifiedClock(at=task.clock.at, mode=task.clock.mode),
        repeats=repeats,
        flake_rate_below=flake_rate(repeats) if clean and not finding.problems else None,
        confidence=CONFIDENCE,
        shifts=tuple(_shifts(shifts)),
        submissions=tuple(
            CertifiedSubmission(
                name=t.submission,
                patch_sha256=t.patch_sha256,
                runs=len(shifts),
                reward=t.verdict.reward,
                resolved=t.verdict.resolved,
                outcomes_digest=outcomes_digest(t.verdict),
            )
            for t in finding.told
        ),
        quarantined=tuple(Quarantined(check=v.check, why=v.why) for v in finding.varied),
        problems=finding.problems,
    )
    return signed(made)


def signed(made: Certificate) -> Certificate:
    return replace(made, digest=content_digest(made))


def content_digest(made: Certificate) -> Digest:
    data = plain(made)
    del data["digest"]
    return digest_of(data)


def outcomes_digest(verdict: Verdict) -> Digest:
    return digest_of({c.spec.id: str(c.outcome) for c in verdict.checks})


def flake_rate(repeats: int) -> float:
    """What k runs without a difference say, at most, of the chance of one: about 3/k."""
    return float(f"{1 - (1 - CONFIDENCE) ** (1 / repeats):.4f}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The task as it is, with what its digest does not name."""

    task: TaskSpec
    runner: Digest
    submissions: frozenset[str]
    """Names of those that come with it."""
    reference_sha256: str
    """Of the reference solution's patch, when that is a file; a pinned one is in the task's digest."""


def objections(made: Certificate, now: Now) -> Iterator[str]:
    """Why this certificate does not hold for the task as it is now."""
    task = now.task
    if made.digest != content_digest(made):
        yield "its content is not what its digest says: it was changed by hand"
    if made.task != task.id:
        yield f"it is about `{made.task}`"
    for what, mine, theirs in (
        ("the task", made.task_digest, task.digest),
        ("the image", made.image_digest, task.image.digest),
        ("the hidden tests", made.verifier_digest, task.verifier.bundle.digest),
        ("the runner", made.runner_digest, now.runner),
    ):
        if mine != theirs:
            yield f"{what} changed since"
    if made.task_digest == task.digest and made.shifts != tuple(_shifts(all_shifts(task.clock))):
        yield "what is moved changed since"
    patches = {s.name: s.patch_sha256 for s in made.submissions}
    if now.submissions - patches.keys():
        yield "a submission that comes with the task is not in it"
    if now.reference_sha256 and patches.get(ORACLE) != now.reference_sha256:
        yield "the reference solution changed since"
    if not made.certified:
        yield "it says what varies, not that nothing does"


def _shifts(shifts: Sequence[Shift]) -> Iterator[CertifiedShift]:
    usual = plain(USUAL)
    for shift in shifts:
        moved = {k: v for k, v in plain(shift.conditions).items() if v != usual[k]}
        yield CertifiedShift(name=shift.name, conditions=moved)
