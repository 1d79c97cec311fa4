"""Which hidden tests a plain script can take with the reference solution, and what it observes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sandbox.audit.plain.sites import Found, class_bases, find_sites, homes_of
from sandbox.errors import VerifierFault
from sandbox.grading.apply import applied
from sandbox.grading.boxrun import run_job
from sandbox.grading.observed import agrees, bits
from sandbox.grading.plan import Job
from sandbox.grading.setting import setting
from sandbox.grading.variants import withheld
from sandbox.model.conditions import USUAL
from sandbox.model.layers import Plain, Site
from sandbox.model.task import Digest, TaskSpec, without_layers
from sandbox.model.verdict import CheckResult, Ran, Seen
from sandbox.rollout.observer import Observer
from sandbox.runtime.base import Runtime
from sandbox.runtime.supplies import Depot

_RUNNER = "run_plain"
_MOST_RUNS = 4
"""With the reference solution: one more whenever a site was dropped after the first."""

Show = Callable[[bytes, Sequence[Site]], Seen]
"""What a plain run of the hidden tests shows with this patch and these expectations withheld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What was found, and figures of it."""

    plain: Plain
    withheld: int = 0
    """Taken checks that have an observation."""
    rich: int = 0
    """Those of them for which a guess has to get more than one bit right."""
    told_apart: int = 0
    """Scored checks that are otherwise in a plain run without the solution."""
    seconds: float = 0.0
    """Of the run with the solution."""

    def words(self) -> str:
        taken, left = len(self.plain.checks), len(self.plain.left)
        return (
            f"a plain run takes {taken} of {taken + left} checks in {self.seconds:.1f} s; "
            f"{self.withheld} have an expectation withheld, {self.rich} of them of more than a bit; "
            f"{self.told_apart} scored ones are otherwise without the solution"
        )


def find_plain(task: TaskSpec, depot: Depot, runtime: Runtime, observer: Observer) -> Plain:
    """Raises a Fault when it cannot be found out."""
    examined = examine(task, depot, runtime)
    observer.noted(f"{task.id}: {examined.words()}")
    return examined.plain


def examine(task: TaskSpec, depot: Depot, runtime: Runtime) -> Examined:
    """Runs boxes, one at a time. The bundle is what the task pins."""
    bundle = task.verifier.bundle.digest
    if task.verifier.runner != "pytest":
        why = f"there is no plain run for {task.verifier.runner}"
        left = {check.id: why for check in task.verifier.checks}
        return Examined(plain=Plain(bundle=bundle, checks={}, left=left))
    # Of another name, so that what is remembered of the task keeps its layers.
    bare = replace(without_layers(task), digest=Digest(f"{task.digest} without layers"))
    supplies = depot.supply(bare)
    plan = setting(bare, supplies, USUAL, rootless=runtime.capabilities().rootless)

    def show(patch: bytes, sites: Sequence[Site]) -> Seen:
        tests = withheld(supplies.tests, Plain(bundle=bundle, checks={}, sites=tuple(sites)))
        made = applied(bare, supplies.base, patch)
        if made.refused:
            raise VerifierFault(f"the reference solution is refused: {made.refused}", retry=False)
        job = Job(task=bare, plan=plan, made=made, tests=tests, runner=_RUNNER)
        seen, _ = run_job(job, runtime, supplies, now=time.time, ticks=time.monotonic)
        if seen.ran is not Ran.FINISHED and patch:
            raise VerifierFault(
                f"a plain run of the reference solution {seen.ran.value}: {seen.detail}",
                hint="leave `plain` and `withheld` out of `verifier.layers`, or mend the tests",
                retry=False,
            )
        return seen

    solution = depot.solution(bare, supplies)
    found, bases = find_sites(supplies.tests), class_bases(supplies.tests)
    return settle(bare, found, bases, solution, show)


def settle(
    task: TaskSpec,
    found: Sequence[Found],
    bases: Mapping[str, Sequence[str]],
    solution: bytes,
    show: Show,
) -> Examined:
    """Sites are dropped until the solution shows all that are left, twice, as they are expected."""
    kept = list(found)
    before = show(solution, [f.site for f in kept])
    for _ in range(_MOST_RUNS):
        kept = [f for f in kept if _as_expected(f.site, before)]
        after = show(solution, [f.site for f in kept])
        if all(_as_expected(f.site, after) for f in kept):
            break
        before = after
    else:
        raise VerifierFault("plain runs of the reference solution never agree", retry=False)
    plain = _plain(task, kept, bases, before, after)
    bare = show(b"", plain.sites)
    return _figures(task, plain, after, bare)


def _plain(
    task: TaskSpec,
    kept: Sequence[Found],
    bases: Mapping[str, Sequence[str]],
    before: Seen,
    after: Seen,
) -> Plain:
    checks: dict[str, tuple[str, ...]] = {}
    left: dict[str, str] = {}
    keys: dict[str, list[str]] = {}
    for one in kept:
        keys.setdefault(one.test, []).append(one.site.key)
    for check in task.verifier.checks:
        wrong = [w for w in (_wrong(check.id, task, seen) for seen in (before, after)) if w]
        if wrong:
            left[check.id] = wrong[0]
        else:
            tests = homes_of(check.id, bases)
            checks[check.id] = tuple(key for test in tests for key in keys.get(test, ()))
    needed = {key for told in checks.values() for key in told}
    sites = tuple(f.site for f in kept if f.site.key in needed)
    return Plain(bundle=task.verifier.bundle.digest, checks=checks, sites=sites, left=left)


def _wrong(check: str, task: TaskSpec, seen: Seen) -> str:
    """Why a plain run does not have it; empty if it does."""
    told = seen.report.get(check)
    if told is None:
        return "a plain run finds no test of this name"
    spec = next(c for c in task.verifier.checks if c.id == check)
    if CheckResult(spec, told.outcome).passed:
        return ""
    words = told.message.strip().split("\n")[0][:200]
    return f"{told.outcome}: {words}" if words else told.outcome.value


def _as_expected(site: Site, seen: Seen) -> bool:
    told = seen.observed.get(site.key, ())
    return bool(told) and all(agrees(value, site.expected) for value in told)


def _figures(task: TaskSpec, plain: Plain, with_it: Seen, without: Seen) -> Examined:
    expected = {site.key: site.expected for site in plain.sites}
    shown = {site.key for site in plain.sites if _as_expected(site, without)}
    scored = [c for c in task.verifier.checks if not c.gate and c.id in plain.checks]
    apart = 0
    for check in scored:
        report = without.report.get(check.id)
        same = report is not None and CheckResult(check, report.outcome).passed
        apart += not same or not shown.issuperset(plain.checks[check.id])
    observed = [keys for keys in plain.checks.values() if keys]
    return Examined(
        plain=plain,
        withheld=len(observed),
        rich=sum(sum(bits(expected[key]) for key in keys) > 1 for keys in observed),
        told_apart=apart,
        seconds=with_it.seconds,
    )
