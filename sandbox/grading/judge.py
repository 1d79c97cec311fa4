"""Evidence to verdict. Pure: no box, no clock, no disk."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sandbox.grading.further import Need, needed
from sandbox.grading.pattern import Pattern, as_tests, pattern
from sandbox.grading.plainly import confirmed, plain_flags
from sandbox.model.layers import BARE, Layers
from sandbox.model.task import CheckSpec, VerifierSpec
from sandbox.model.verdict import CheckResult, Evidence, Flag, Outcome, Ran, Seen, Verdict

_CUT_SHORT = "every check passed, and then the run was cut short"
_SAID = {
    "forged": "it passed as it is and with an expectation that nothing right meets",
    "test-dependent": "every check passed, but not without the test runner",
    "unproved": "the evidence lacks a run on which a reward rests",
}


def judge(spec: VerifierSpec, evidence: Evidence, layers: Layers = BARE) -> Verdict:
    """The spec names the checks. A report can fill them in; it cannot add or drop any.

    layers: what the task's verdicts rest on beside its tests; see formats.layerfile.
    """
    seen = pattern(evidence, layers.canaries)
    boxes = _boxes(evidence)
    verdict = _by_tests(spec, evidence, seen)
    verdict = replace(verdict, flags=tuple(_flags(spec, verdict, evidence, layers)))
    if evidence.plain and not verdict.resolved:
        verdict = replace(verdict, checks=tuple(confirmed(verdict.checks, evidence.plain, layers)))
    return verdict if verdict.resolved else replace(verdict, reason=_reason(verdict, seen, boxes))


def judge_as_asked(spec: VerifierSpec, evidence: Evidence, layers: Layers) -> Verdict:
    """layers: of the task. Where not all of them were asked for, the tests alone count."""
    if evidence.asked == "all":
        return judge(spec, evidence, layers)
    return judge(spec, as_tests(evidence, layers.canaries))


def rewarded(spec: VerifierSpec, evidence: Evidence, layers: Layers) -> bool:
    """Is there any reward, as far as tests and canaries can tell? Then a plain run is worth it."""
    return _by_tests(spec, evidence, pattern(evidence, layers.canaries)).reward > 0


def further(spec: VerifierSpec, evidence: Evidence, layers: Layers) -> Need:
    """What a reward needs beside the first pair of boxes, by what these showed."""
    first = replace(evidence, further=())
    verdict = _by_tests(spec, first, pattern(first, layers.canaries))
    return needed(spec, verdict, layers)


def _boxes(evidence: Evidence) -> list[Seen]:
    """With the test runner."""
    pairs = [(evidence, evidence.second), *((p.first, p.second) for p in evidence.further)]
    return [box for pair in pairs for box in pair if box]


def _by_tests(spec: VerifierSpec, evidence: Evidence, seen: Pattern) -> Verdict:
    """As far as tests and canaries tell."""
    verdict = Verdict(checks=tuple(_result(check, seen, evidence) for check in spec.checks))
    if verdict.resolved and any(box.ran is not Ran.FINISHED for box in _boxes(evidence)):
        # What it was hiding, nobody saw.
        cut = (CheckResult(check, Outcome.MISSING, _CUT_SHORT) for check in spec.checks)
        verdict = Verdict(checks=tuple(cut))
    forged = seen.guessed or any(seen.forged(check.id) for check in spec.checks)
    return replace(verdict, flags=("forged",)) if forged else verdict


def _result(check: CheckSpec, seen: Pattern, evidence: Evidence) -> CheckResult:
    if evidence.ran is Ran.REJECTED:
        return CheckResult(check, Outcome.MISSING)
    outcome, note = seen.of(check.id)
    return CheckResult(check, outcome, note)


def _flags(
    spec: VerifierSpec, verdict: Verdict, evidence: Evidence, layers: Layers
) -> Iterator[Flag]:
    if verdict.flags:
        yield from verdict.flags
    elif verdict.reward > 0 and _lacking(spec, evidence, layers):
        yield "unproved"
    elif verdict.resolved and evidence.plain:
        yield from plain_flags(spec, evidence.plain, layers)


def _lacking(spec: VerifierSpec, evidence: Evidence, layers: Layers) -> bool:
    """Is there no run on which a reward rests?"""
    if layers.canaries and evidence.second is None:
        return True
    if further(spec, evidence, layers).lacking(evidence.further):
        return True
    return bool(layers.plain or layers.withheld) and evidence.plain is None


def _reason(verdict: Verdict, seen: Pattern, boxes: Sequence[Seen]) -> str:
    if verdict.flags:
        twice = [c.spec.id for c in verdict.checks if seen.forged(c.spec.id)]
        more = f" ({len(twice)}, first {twice[0]})" if twice else ""
        flag = verdict.flags[0]
        if flag == "forged" and not twice:
            return f"forged: {seen.wrong} canaries passed whose tests did not: it guesses"
        return f"{flag}: {_SAID[flag]}{more}"
    for box in boxes:
        if box.ran is not Ran.FINISHED:
            return f"{box.ran.value.replace('_', ' ')}: {box.detail}"
    failed = [c for c in verdict.checks if not c.passed]
    gates = [c for c in failed if c.spec.gate]
    first = (gates or failed)[0] if failed else None
    if first is None:
        return "no checks"
    count, kind = (len(gates), "gate") if gates else (len(failed), "check")
    what = f"{count} {kind}{'s' if count > 1 else ''} did not pass"
    note = f": {first.note}" if first.note else ""
    return f"{what}, first {first.spec.id} ({first.outcome}){note}"
