"""Submission to evidence: clean boxes, where network and clock stand still.

With canaries there are two, at the same time: each hidden test is as it is in one of them, and with
another expectation in the other. What passes in both did not look at the expectation. Where a reward
rests on few tests, these run in further pairs, with coins of their own.
"""

import hashlib
import hmac
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from sandbox.formats.digest import Entry
from sandbox.formats.taskfile import task_parts
from sandbox.grading.apply import Applied, applied
from sandbox.grading.boxrun import Job, run_job
from sandbox.grading.further import of_files
from sandbox.grading.judge import further, rewarded
from sandbox.grading.setting import setting
from sandbox.grading.variants import canaried, withheld
from sandbox.model.conditions import USUAL, Conditions
from sandbox.model.layers import BARE, Canaries
from sandbox.model.record import Submission
from sandbox.model.task import TaskSpec
from sandbox.model.verdict import Evidence, Pair, Pins, Ran, Seen
from sandbox.runtime.base import Runtime
from sandbox.runtime.supplies import Supplies
from sandbox.runtime.warmth import read_in

_PLAIN = "run_plain"
_FIELDS = ("ran", "detail", "report", "observed", "probes", "clock", "exit_code", "log", "seconds")


def verify(
    task: TaskSpec,
    submission: Submission,
    runtime: Runtime,
    supplies: Supplies,
    *,
    attempt: int = 0,
    conditions: Conditions = USUAL,
    now: Callable[[], float] = time.time,
    ticks: Callable[[], float] = time.monotonic,
) -> Evidence:
    """Raises a Fault when no evidence can be had; that is never the submission's doing.

    attempt: another one draws other coins. now: the machine's clock; ticks: one that never goes
    back.
    """
    pins = _pins(task, submission, supplies)
    if submission.rejected:
        return _rejected(submission.rejected, submission.dropped, pins, conditions)
    made = applied(task, supplies.base, submission.patch)
    outside = (*submission.dropped, *made.outside)
    if made.refused:
        return _rejected(made.refused, outside, pins, conditions)
    layers = supplies.layers if conditions.layers != "none" else BARE
    read_in((supplies.seed.folder, *supplies.image.lowers))
    coins = _coins(task, submission, supplies, attempt, conditions)
    swapped = coins.drawn(layers.canaries)
    bench = _Bench(task, made, conditions, runtime, supplies, now, ticks)
    variants = _variants(supplies.tests, layers.canaries, swapped)
    seen = bench.run(variants[:1] if conditions.layers == "mixed" else variants)
    first, *more = seen
    evidence = Evidence(
        **{name: getattr(first, name) for name in _FIELDS},
        outside=outside,
        pins=pins,
        asked=conditions.layers,
        swapped=swapped,
        second=more[0] if more else None,
    )
    return _confirmed(bench, coins, evidence) if conditions.layers == "all" else evidence


def _confirmed(bench: "_Bench", coins: "_Coins", evidence: Evidence) -> Evidence:
    """With the runs on which a reward rests beside the first pair, as long as there is any."""
    spec, tests, layers = bench.task.verifier, bench.supplies.tests, bench.supplies.layers
    need = further(spec, evidence, layers)
    for number in range(1, need.pairs + 1):
        swapped = coins.drawn(layers.canaries, number)
        variants = _variants(tests, layers.canaries, swapped)
        first, second = bench.run(variants, paths=need.paths)
        pair = Pair(first=first, second=second, swapped=swapped, paths=need.paths)
        evidence = replace(evidence, further=(*evidence.further, pair))
        if not rewarded(spec, evidence, layers):
            return evidence
    if not (layers.plain or layers.withheld) or not rewarded(spec, evidence, layers):
        return evidence
    (plain,) = bench.run([withheld(tests, layers.withheld)], runner=_PLAIN)
    return replace(evidence, plain=plain)


def _rejected(why: str, outside: tuple[str, ...], pins: Pins, conditions: Conditions) -> Evidence:
    """No box is needed to say so."""
    return Evidence(
        ran=Ran.REJECTED, detail=why, outside=outside, pins=pins, asked=conditions.layers
    )


@dataclass(frozen=True, slots=True)
class _Bench:
    """Where one submission is being verified."""

    task: TaskSpec
    made: Applied
    conditions: Conditions
    runtime: Runtime
    supplies: Supplies
    now: Callable[[], float]
    ticks: Callable[[], float]

    def run(
        self, variants: Sequence[Sequence[Entry]], runner: str = "", paths: Sequence[str] = ()
    ) -> list[Seen]:
        """Each in a box of its own, all at the same time. paths: of these files of tests only."""
        rootless = self.runtime.capabilities().rootless
        plan = setting(self.task, self.supplies, self.conditions, rootless=rootless)
        layered = self.conditions.layers != "none" and self.supplies.layers.canaries is not None
        canaries = layered and not runner
        runner = runner or f"run_{self.task.verifier.runner}"
        jobs = [
            Job(
                task=of_files(self.task, paths),
                plan=plan,
                made=self.made,
                tests=tests,
                runner=runner,
                canaries=canaries,
            )
            for tests in variants
        ]
        if len(jobs) == 1:
            return [self._run(jobs[0])]
        with ThreadPoolExecutor(len(jobs)) as threads:
            return list(threads.map(self._run, jobs))

    def _run(self, job: Job) -> Seen:
        seen, _ = run_job(job, self.runtime, self.supplies, now=self.now, ticks=self.ticks)
        return seen


@dataclass(frozen=True, slots=True)
class _Coins:
    """One for each unit and pair of boxes, the same whenever the same is verified on this machine."""

    secret: bytes
    about: str

    def drawn(self, canaries: Canaries | None, pair: int = 0) -> tuple[str, ...]:
        """Names of the units whose canaries go into the first box of this pair."""
        units = canaries.units if canaries else ()
        return tuple(unit.name for unit in units if self._heads(unit.name, pair))

    def _heads(self, unit: str, pair: int) -> bool:
        of_pair = f"\0{pair}" if pair else ""
        message = f"{self.about}\0{unit}{of_pair}".encode("utf-8", "surrogateescape")
        return bool(hmac.digest(self.secret, message, "sha256")[0] & 1)


def _coins(
    task: TaskSpec,
    submission: Submission,
    supplies: Supplies,
    attempt: int,
    conditions: Conditions,
) -> _Coins:
    """Of the patch itself, so that trying the same again is no second chance."""
    if conditions.layers == "mixed":
        # Of certificates: what they say has to be the same on every machine.
        return _Coins(task.digest.encode(), conditions.draw)
    patch = hashlib.sha256(submission.patch).hexdigest()
    return _Coins(supplies.secret, f"{task.digest}\0{attempt}\0{patch}")


def _variants(
    tests: Sequence[Entry], canaries: Canaries | None, swapped: Iterable[str]
) -> list[Sequence[Entry]]:
    if canaries is None:
        return [tests]
    first = frozenset(swapped)
    second = frozenset(unit.name for unit in canaries.units) - first
    return [canaried(tests, canaries, names) for names in (first, second)]


def _pins(task: TaskSpec, submission: Submission, supplies: Supplies) -> Pins:
    spec = task.verifier
    return Pins(
        task=task.digest,
        image=task.image.digest,
        bundle=spec.bundle.digest,
        runner=supplies.runner_digest,
        patch_sha256=hashlib.sha256(submission.patch).hexdigest(),
        canaries=spec.canaries or "",
        plain=spec.plain or "",
        parts=task_parts(task),
    )
