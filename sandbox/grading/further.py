"""Few units leave a guess much: which verdicts rest on more than one pair of boxes. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sandbox.grading.observed import bits
from sandbox.model.layers import Layers, Plain
from sandbox.model.task import TaskSpec, VerifierSpec
from sandbox.model.verdict import Outcome, Pair, Verdict, function_of

_FEW = ((3, 3), (5, 2), (11, 1))
"""Won units, at most → further pairs. Who copies one gate's coin is right about each unit one time in
two: so few are not worth more than luck, until they are won again with other coins."""
_HARD = 8
"""Bits, as grading.observed counts them: two letters or digits."""
_VERY_FEW = 3
"""Of these, those that have to show no value are asked all the canaries that they have, a pair each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What has to be run beside the first pair of boxes."""

    pairs: int = 0
    paths: tuple[str, ...] = ()
    """The functions that were won. Empty: all of them, where the runner cannot be asked for some."""

    def lacking(self, pairs: Iterable[Pair]) -> bool:
        """Are there too few of these that show what they have to?"""
        fit = [p for p in pairs if all(map(p.covers, self.paths or [""]))]
        return len(fit) < self.pairs


def needed(spec: VerifierSpec, verdict: Verdict, layers: Layers) -> Need:
    """verdict: of the first pair of boxes alone."""
    canaries = layers.canaries
    if canaries is None or verdict.reward <= 0:
        return Need()
    scored = {c.spec.id: c for c in verdict.checks if not c.spec.gate}
    proved = scored.keys() - canaries.unproved(scored)
    # Full marks rest on all of them, and a part on those that earn it.
    paid = (c for c in scored.values() if verdict.resolved or c.spec.weight > 0)
    won = {c.spec.id for c in paid if c.outcome is Outcome.PASSED} & proved
    units = [unit for unit in canaries.units if won & unit.checks.keys()]
    pairs = next((more for most, more in _FEW if len(units) <= most), 0) if units else 0
    if len(units) <= _VERY_FEW:
        # The plain run refuses the check whose value is not shown, and none beside it.
        blind = {check for check in won if not shown(layers.withheld, [check])}
        pairs = max(pairs, *(len(u.more) for u in units if blind & u.checks.keys()), 0)
    if not pairs or not _takes_some(spec):
        return Need(pairs=pairs)
    return Need(
        pairs=pairs,
        paths=tuple(sorted({function_of(c) for unit in units for c in unit.checks if c in won})),
    )


def shown(withheld: Plain | None, checks: Iterable[str]) -> bool:
    """Does the plain run have to tell values for them that nobody guesses?"""
    if withheld is None:
        return False
    keys = {key for check in checks for key in withheld.checks.get(check, ())}
    return sum(bits(s.expected) for s in withheld.sites if s.key in keys) >= _HARD


def of_files(task: TaskSpec, paths: Sequence[str], *options: str) -> TaskSpec:
    """The task, asked for these files or functions of its hidden tests alone; none: for all."""
    if not paths:
        return task
    return replace(task, verifier=replace(task.verifier, arguments=(*options, *paths)))


def _takes_some(spec: VerifierSpec) -> bool:
    """Are its arguments paths of tests, and nothing else that would have to stay?"""
    return spec.runner == "pytest" and not any(a.startswith("-") for a in spec.arguments)
