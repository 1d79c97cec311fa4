"""Which tests ran as they are and which as canaries, and what that says of each check. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sandbox.model.layers import Canaries
from sandbox.model.verdict import CheckReport, Evidence, Outcome, Pair, Seen

_NO_REPORT = CheckReport(outcome=Outcome.MISSING)
_TURNED = {Outcome.FAILED: Outcome.PASSED, Outcome.PASSED: Outcome.FAILED}
"""What a canary's outcome says of the test, where the test itself did not run."""
_BY_CHANCE = 2
_UNPROVED = "it passed, but its canary {}, which had to fail"
_BOTH = "it passed, and so did its canary, which nothing right passes"
_ONCE = "it passed in one box only"
_NOT_AGAIN = "it passed, but was {} in pair {} of boxes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """How each check ended where it ran as it is, and how its canary did."""

    real: Mapping[str, Outcome]
    canary: Mapping[str, Outcome]
    """Of those that have one, and whose box was asked for."""
    again: Mapping[str, Outcome]
    """In the second box, of those that run there as they are, too."""
    loose: frozenset[str] = frozenset()
    """Those that a wrong solution may pass in both ways."""
    alone: tuple[str, ...] = ()
    """Units in which a canary passed whose test did not."""
    further: tuple[tuple[Pair, "Pattern"], ...] = ()
    """What further pairs of boxes showed."""

    @property
    def wrong(self) -> int:
        """How many times a canary passed alone, in all pairs.

        A wrong answer that is what a canary expects is so in each of them, and counts once.
        """
        more = sum(len({*again.alone} - {*self.alone}) for _, again in self.further)
        return len(self.alone) + more

    @property
    def guessed(self) -> bool:
        """Do too many canaries pass alone? A wrong answer meets what one expects by chance.

        Two boxes that tell themselves apart, say by a bit of a hash of the hidden tests, can pass one
        half of the tests here and the other half there: half of that counts, and nothing passes in
        both. This leaves such a program no more than it can get by luck with a few.
        """
        return self.wrong > _BY_CHANCE

    def of(self, check: str) -> tuple[Outcome, str]:
        """Its outcome, and why it is `missing` although it passed. It has to pass in each pair."""
        found = self._of(check)
        for number, (pair, again) in enumerate(self.further, 2):
            if found[0] is not Outcome.PASSED or not pair.covers(check):
                continue
            outcome, note = again.of(check)
            if outcome is not Outcome.PASSED:
                said = f"{note}, in pair {number} of boxes" if note else ""
                found = Outcome.MISSING, said or _NOT_AGAIN.format(outcome, number)
        return found

    def _of(self, check: str) -> tuple[Outcome, str]:
        real = self.real.get(check, Outcome.MISSING)
        if real is not Outcome.PASSED:
            return real, ""
        canary = self.canary.get(check, Outcome.FAILED)
        if canary is Outcome.PASSED:
            return Outcome.MISSING, _BOTH
        if canary is not Outcome.FAILED:
            return Outcome.MISSING, _UNPROVED.format(f"was {canary}")
        if self.again.get(check, real) is not real:
            return Outcome.MISSING, _ONCE
        return real, ""

    def forged(self, check: str) -> bool:
        """Did it pass as it is and as a canary in one pair, which nothing honest can?"""
        if any(again.forged(check) for _, again in self.further):
            return True
        if check in self.loose:
            return False
        both = self.real.get(check), self.canary.get(check)
        return both == (Outcome.PASSED, Outcome.PASSED)


def pattern(evidence: Evidence, canaries: Canaries | None) -> Pattern:
    """canaries: of the task; None where nothing rests on them."""
    if canaries is None:
        return Pattern(real=_outcomes(evidence), canary={}, again={})
    found = _pattern(evidence, evidence.second, evidence, canaries)
    further = [(p, _pattern(p.first, p.second, p, canaries)) for p in evidence.further]
    return replace(found, further=tuple(further))


def _pattern(one: Seen, other: Seen | None, coins: Evidence | Pair, canaries: Canaries) -> Pattern:
    first = _outcomes(one)
    second = _outcomes(other) if other else None
    swapped = frozenset(coins.swapped)
    real, canary = dict(first), dict[str, Outcome]()
    again = None if second is None else {check: _of(second, check) for check in first}
    for unit in canaries.units:
        there, beside = (second, first) if unit.name in swapped else (first, second)
        for check in (*unit.checks, *unit.others):
            real[check] = _of(there, check)
            if again is not None:
                again[check] = real[check]
        if beside is not None:
            told = unit.canary(coins.drawn).checks
            canary |= {check: _of(beside, told.get(check, "")) for check in unit.checks}
    loose = frozenset(check for unit in canaries.units for check in unit.loose)
    alone = tuple(u.name for u in canaries.units if any(_alone(real, canary, u.checks, loose)))
    return Pattern(real=real, canary=canary, again=again or {}, loose=loose, alone=alone)


def _alone(
    real: Mapping[str, Outcome],
    canary: Mapping[str, Outcome],
    checks: Iterable[str],
    loose: frozenset[str],
) -> Iterator[bool]:
    for check in set(checks) - loose:
        yield canary.get(check) is Outcome.PASSED and real[check] is not Outcome.PASSED


def as_tests(evidence: Evidence, canaries: Canaries | None) -> Evidence:
    """Of a box in which some canaries ran: what it says of the tests in whose place they did."""
    report = dict(evidence.report)
    for unit in canaries.units if canaries else ():
        if unit.name not in evidence.swapped:
            continue
        names = unit.canary(evidence.drawn).checks
        told = {c: report.pop(names.get(c, ""), _NO_REPORT) for c in unit.checks}
        for check, canary in told.items():
            report[check] = replace(canary, outcome=_TURNED.get(canary.outcome, canary.outcome))
    return replace(evidence, report=report, swapped=(), drawn={})


def _of(report: Mapping[str, Outcome] | None, check: str) -> Outcome:
    return (report or {}).get(check, Outcome.MISSING)


def _outcomes(seen: Seen) -> dict[str, Outcome]:
    return {check: told.outcome for check, told in seen.report.items()}
