"""Submission to evidence: clean boxes, where network and clock stand still.

With canaries there are two, at the same time: each hidden test is as it is in one of them, and with
another expectation in the other. What passes in both did not look at the expectation. Where a reward
rests on few tests, these run in further pairs, with coins of their own.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from sandbox.formats.digest import Entry
from sandbox.formats.taskfile import task_parts
from sandbox.grading.apply import Applied, applied
from sandbox.grading.boxrun import Job, run_job
from sandbox.grading.coins import Coins, coins_of
from sandbox.grading.further import of_files
from sandbox.grading.judge import further, rewarded
from sandbox.grading.setting import setting
from sandbox.grading.variants import withheld
from sandbox.model.conditions import USUAL, Conditions
from sandbox.model.layers import BARE
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
    coins = coins_of(task, submission, supplies, attempt, conditions)
    draw = coins.draw(layers.canaries)
    bench = _Bench(task, made, conditions, runtime, supplies, now, ticks)
    variants = draw.variants(supplies.tests, layers.canaries)
    seen = bench.run(variants[:1] if conditions.layers == "mixed" else variants)
    first, *more = seen
    evidence = Evidence(
        **{name: getattr(first, name) for name in _FIELDS},
        outside=outside,
        pins=pins,
        asked=conditions.layers,
        swapped=draw.swapped,
        drawn=draw.drawn,
        second=more[0] if more else None,
    )
    return _confirmed(bench, coins, evidence) if conditions.layers == "all" else evidence


def _confirmed(bench: "_Bench", coins: Coins, evidence: Evidence) -> Evidence:
    """With the runs on which a reward rests beside the first pair, as long as there is any."""
    spec, tests, layers = bench.task.verifier, bench.supplies.tests, bench.supplies.layers
    need = further(spec, evidence, layers)
    for number in range(1, need.pairs + 1):
        draw = coins.draw(layers.canaries, number)
        variants = draw.variants(tests, layers.canaries)
        first, second = bench.run(variants, paths=need.paths)
        pair = Pair(
            first=first,
            second=second,
            swapped=draw.swapped,
            drawn=draw.drawn,
            paths=need.paths,
        )
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
