"""What a run without the test runner has to show, if the tests were passed honestly. Pure."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import log2

from sandbox.grading.further import shown
from sandbox.grading.observed import agrees, bits
from sandbox.model.layers import Layers, Plain
from sandbox.model.task import CheckSpec, VerifierSpec
from sandbox.model.verdict import CheckResult, Flag, Outcome, Ran, Seen, function_of

_LEFT = 5
"""Bits that a guess has to get right, where one value of several is enough."""
_NOT_PLAINLY = "it passed, but not without the test runner"
_NOT_TOLD = "it passed, but what it has to show without the test runner is not what is expected"


def plain_flags(spec: VerifierSpec, seen: Seen, layers: Layers) -> Iterator[Flag]:
    """None for one that agrees with what the tests said, all of which passed."""
    if seen.ran is not Ran.FINISHED or any(disagreements(spec, seen, layers)):
        yield "test-dependent"


def confirmed(checks: Sequence[CheckResult], seen: Seen, layers: Layers) -> Iterator[CheckResult]:
    """Of an answer that is right in part: what brings a reward has to pass here as well.

    A gate brings none: one with a canary is left as it is. An assertion that several checks share
    tells the values of them all: where one of them has not passed, one that is expected is enough.
    """
    canaries = layers.canaries.canary_of() if layers.canaries else {}
    taken = layers.plain.checks if layers.plain else {}
    won = {result.spec.id for result in checks if result.passed}
    for result in checks:
        name = result.spec.id
        asked = name in taken and not (result.spec.gate and name in canaries)
        if not result.passed or not asked:
            yield result
        elif not _result(result.spec, seen).passed:
            yield replace(result, outcome=Outcome.MISSING, note=_NOT_PLAINLY)
        elif not result.spec.gate and not _tells(name, seen, layers.withheld, won):
            yield replace(result, outcome=Outcome.MISSING, note=_NOT_TOLD)
        else:
            yield result


def _tells(check: str, seen: Seen, withheld: Plain | None, won: Collection[str]) -> bool:
    """Who could tell whatever comes to mind would be right once."""
    if withheld is None:
        return True
    keys = withheld.checks.get(check, ())
    sites = [site for site in withheld.sites if site.key in keys]
    told = {site.key: seen.observed.get(site.key) or ("!nothing",) for site in sites}
    some = _beside_failed(check, withheld, won)
    enough = any if some else all
    if not all(enough(agrees(value, s.expected) for value in told[s.key]) for s in sites):
        return False
    # Several values are several tries.
    left = sum(max(0.0, bits(s.expected) - log2(len(told[s.key]))) for s in sites)
    return not some or left >= _LEFT or not shown(withheld, [check])


def _beside_failed(check: str, withheld: Plain, won: Collection[str]) -> bool:
    """Has a check not passed that may tell of the same assertions: of its function, or by its keys?"""
    keys = {*withheld.checks.get(check, ())}
    name = _function(check)
    others = (other for other in (*withheld.checks, *withheld.left) if other not in won)
    return any(
        _function(other) == name or keys & {*withheld.checks.get(other, ())} for other in others
    )


def _function(check: str) -> str:
    """`test_a` of `t.py::Class::test_a[row]`; a class may have it of another."""
    return function_of(check).rpartition("::")[2]


def _result(check: CheckSpec, seen: Seen) -> CheckResult:
    told = seen.report.get(check.id)
    return CheckResult(check, told.outcome if told else Outcome.MISSING)


def disagreements(spec: VerifierSpec, seen: Seen, layers: Layers) -> Iterator[str]:
    """Each thing that the plain run shows otherwise, in words. Only checks of the spec count."""
    if layers.plain:
        for check in spec.checks:
            if check.id not in layers.plain.checks:
                continue
            result = _result(check, seen)
            if not result.passed:
                yield f"{check.id} is {result.outcome} without the test runner"
    if layers.withheld:
        yield from _told_otherwise(spec, seen, layers.withheld)


def _told_otherwise(spec: VerifierSpec, seen: Seen, withheld: Plain) -> Iterator[str]:
    declared = {check.id for check in spec.checks}
    needed = {key for check, keys in withheld.checks.items() if check in declared for key in keys}
    for site in withheld.sites:
        if site.key not in needed:
            continue
        told = seen.observed.get(site.key, ())
        if not told or not all(agrees(value, site.expected) for value in told):
            said = " and ".join(told) or "nothing"
            yield f"{site.path}:{site.line}: `{site.source}` is {said}, not {site.expected}"
