"""Arithmetic of rewards, what a submission covers, what a suite selects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.grading.judge import judge
from sandbox.model.suite import select
from sandbox.model.task import (
    BundleSpec,
    CheckSpec,
    Digest,
    SubmissionSpec,
    TaskId,
    VerifierSpec,
)
from sandbox.model.verdict import CheckReport, CheckResult, Evidence, Outcome, Ran, Verdict

outcomes = st.sampled_from(Outcome)
specs = st.lists(
    st.builds(
        CheckSpec,
        id=st.text("abc", min_size=1, max_size=3),
        weight=st.floats(0, 1e6, exclude_min=True) | st.just(1e300) | st.just(5e-324),
        gate=st.booleans(),
    ),
    unique_by=lambda c: c.id,
    max_size=6,
).map(tuple)
reports = st.dictionaries(
    st.text("abcd", min_size=1, max_size=3),
    st.builds(CheckReport, outcome=outcomes),
    max_size=8,
)


def verdict_of(checks: tuple[CheckSpec, ...], outcome: Outcome) -> Verdict:
    return Verdict(checks=tuple(CheckResult(c, outcome) for c in checks))


def verifier(checks: tuple[CheckSpec, ...]) -> VerifierSpec:
    return VerifierSpec(
        bundle=BundleSpec(digest=Digest("")),
        runner="pytest",
        arguments=(),
        options={},
        checks=checks,
        seconds=1,
    )


def judged(
    checks: tuple[CheckSpec, ...], report: dict[str, CheckReport], ran: Ran = Ran.FINISHED
) -> Verdict:
    return judge(verifier(checks), Evidence(ran=ran, report=report, detail="why"))


@given(specs, st.data())
def test_a_reward_lies_between_0_and_1_and_is_1_only_when_resolved(checks, data):
    verdict = Verdict(checks=tuple(CheckResult(c, data.draw(outcomes)) for c in checks))
    assert 0.0 <= verdict.reward <= 1.0
    assert (verdict.reward == 1.0) == verdict.resolved
    assert verdict.resolved == (
        bool(checks) and all(c.outcome is Outcome.PASSED for c in verdict.checks)
    )


@given(specs, st.data())
def test_a_gate_that_does_not_pass_zeroes_the_reward(checks, data):
    gate = CheckResult(
        CheckSpec(id="gate", weight=0.0, gate=True),
        data.draw(outcomes.filter(lambda o: o is not Outcome.PASSED)),
    )
    rest = tuple(CheckResult(c, Outcome.PASSED) for c in checks)
    assert Verdict(checks=(gate, *rest)).reward == 0.0


@given(specs, st.data())
def test_one_more_pass_never_lowers_the_reward(checks, data):
    results = [CheckResult(c, data.draw(outcomes)) for c in checks]
    before = Verdict(checks=tuple(results)).reward
    for i, result in enumerate(results):
        better = [*results[:i], CheckResult(result.spec, Outcome.PASSED), *results[i + 1 :]]
        assert Verdict(checks=tuple(better)).reward >= before


def test_the_reward_is_the_weighted_share():
    checks = (CheckSpec(id="a"), CheckSpec(id="b", weight=3))
    report = {"b": CheckReport(outcome=Outcome.PASSED)}
    assert judged(checks, report).reward == 0.75


def test_what_weighs_nothing_earns_nothing_and_is_missed():
    checks = (CheckSpec(id="a"), CheckSpec(id="b"), CheckSpec(id="free", weight=0.0))
    passed, failed = (CheckReport(outcome=o) for o in (Outcome.PASSED, Outcome.FAILED))
    assert judged(checks, {"a": passed, "b": passed, "free": failed}).reward == 2 / 3
    assert judged(checks, {"a": passed, "b": failed, "free": passed}).reward == 1 / 2
    assert judged(checks, {"a": failed, "b": failed, "free": passed}).reward == 0
    assert judged(checks, {"a": passed, "b": passed, "free": passed}).reward == 1


def test_without_checks_nothing_is_resolved():
    assert Verdict(checks=()).reward == 0.0
    assert judged((), {}).reason == "no checks"


@given(specs, reports, st.sampled_from(Ran))
def test_the_spec_names_the_checks_whatever_the_report_holds(checks, report, ran):
    verdict = judged(checks, report, ran)
    assert tuple(c.spec for c in verdict.checks) == checks
    for check in verdict.checks:
        if check.spec.id not in report:
            assert check.outcome is Outcome.MISSING
        elif ran is Ran.FINISHED:
            assert check.outcome is report[check.spec.id].outcome


@given(specs, reports, st.sampled_from([r for r in Ran if r is not Ran.FINISHED]))
def test_a_run_that_did_not_finish_never_resolves(checks, report, ran):
    verdict = judged(checks, report, ran)
    assert not verdict.resolved
    assert verdict.reason == f"{ran.value.replace('_', ' ')}: why"


@given(specs, reports)
def test_a_rejected_submission_earns_nothing(checks, report):
    verdict = judged(checks, report, Ran.REJECTED)
    assert verdict.reward == 0.0


@given(specs)
def test_a_run_cut_short_after_every_check_passed_earns_nothing(checks):
    report = {c.id: CheckReport(outcome=Outcome.PASSED) for c in checks}
    assert judged(checks, report, Ran.CRASHED).reward == 0.0


@given(specs, reports)
def test_judging_twice_says_the_same(checks, report):
    assert judged(checks, report) == judged(checks, report)


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.PASSED])
def test_only_passed_is_a_pass(outcome):
    assert verdict_of((CheckSpec(id="a"),), outcome).reward == 0.0


def test_the_reason_names_the_first_gate_before_any_check():
    checks = (CheckSpec(id="a"), CheckSpec(id="g", weight=0, gate=True))
    assert judged(checks, {}).reason == "1 gate did not pass, first g (missing)"
    report = {"g": CheckReport(outcome=Outcome.PASSED)}
    assert judged(checks, report).reason == "1 check did not pass, first a (missing)"
    assert judged(checks, report | {"a": CheckReport(outcome=Outcome.PASSED)}).reason == ""


@pytest.mark.parametrize(
    ("path", "covered"),
    [
        ("src", True),
        ("src/a.py", True),
        ("src/deep/a.py", True),
        ("srcs/a.py", False),
        ("a/src/a.py", False),
        ("setup.py", True),
        ("setup.py/x", True),
        ("setup.pyc", False),
        ("src/a.pyc", False),
        ("src/__pycache__/a.py", False),
        ("src/x/__pycache__/deep/a.py", False),
        ("src/build/a", False),
        ("src/build", True),
        ("src/x/build/a", True),
        ("src/a.PYC", True),
        ("", False),
        ("/src/a.py", False),
    ],
)
def test_what_a_submission_covers(path, covered):
    spec = SubmissionSpec(
        paths=("src", "setup.py"), exclude=("**/__pycache__/**", "*.pyc", "src/build/*")
    )
    assert spec.covers(path) is covered


def test_a_cache_at_the_top_is_excluded_too():
    spec = SubmissionSpec(paths=("__pycache__", "src"))
    assert not spec.covers("__pycache__/a")


tasks = st.lists(st.text("ab-1", min_size=1, max_size=4).map(TaskId), unique=True)


@given(tasks, st.lists(st.text("ab*?", max_size=3), max_size=3))
def test_select_keeps_the_suite_s_order_and_takes_each_task_once(suite, patterns):
    chosen = select(suite, patterns)
    assert list(chosen) == [t for t in suite if t in chosen]


@given(tasks)
def test_without_a_pattern_all_are_selected(suite):
    assert select(suite, ()) == tuple(suite)
    assert select(suite, ("*",)) == tuple(suite)


def test_patterns_are_globs_and_names_are_exact():
    suite = [TaskId(t) for t in ("click-1", "click-2", "h11-1", "[x]")]
    assert select(suite, ("h11-1", "click-*")) == ("click-1", "click-2", "h11-1")
    assert select(suite, ("click",)) == ()
    assert select(iter(suite), (p for p in ["*-1"])) == ("click-1", "h11-1")
