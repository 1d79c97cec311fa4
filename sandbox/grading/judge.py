"""Evidence to verdict. Pure: no box, no clock, no disk."""

from sandbox.model.task import VerifierSpec
from sandbox.model.verdict import CheckResult, Evidence, Outcome, Ran, Verdict


def judge(spec: VerifierSpec, evidence: Evidence) -> Verdict:
    """The spec names the checks. A report can fill them in; it cannot add or drop any."""
    checks = tuple(CheckResult(c, _outcome(evidence, c.id)) for c in spec.checks)
    verdict = Verdict(checks=checks)
    if verdict.resolved and evidence.ran is Ran.FINISHED:
        return verdict
    if evidence.ran is not Ran.FINISHED and verdict.resolved:
        # Every check passed, and then the run was cut short: what it was hiding, nobody saw.
        checks = tuple(CheckResult(c, Outcome.MISSING) for c in spec.checks)
    return Verdict(checks=checks, reason=_reason(checks, evidence))


def _outcome(evidence: Evidence, check: str) -> Outcome:
    if evidence.ran is Ran.REJECTED:
        return Outcome.MISSING
    report = evidence.report.get(check)
    return report.outcome if report else Outcome.MISSING


def _reason(checks: tuple[CheckResult, ...], evidence: Evidence) -> str:
    if evidence.ran is not Ran.FINISHED:
        return f"{evidence.ran.value.replace('_', ' ')}: {evidence.detail}"
    failed = [c for c in checks if c.outcome is not Outcome.PASSED]
    gates = [c for c in failed if c.spec.gate]
    first = (gates or failed)[0] if failed else None
    if first is None:
        return "no checks"
    count, kind = (len(gates), "gate") if gates else (len(failed), "check")
    what = f"{count} {kind}{'s' if count > 1 else ''} did not pass"
    return f"{what}, first {first.spec.id} ({first.outcome})"
