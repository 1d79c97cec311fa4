"""What two boxes say of each check, and what a blind forger's chances are."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.grading.judge import judge
from sandbox.grading.pattern import as_tests, pattern
from sandbox.model.layers import Canaries, Layers, Unit
from sandbox.model.task import BundleSpec, CheckSpec, Digest, VerifierSpec
from sandbox.model.verdict import CheckReport, Evidence, Outcome, Pair, Ran, Seen, Verdict

PASSED, FAILED = Outcome.PASSED, Outcome.FAILED


def a_unit(name: str, *, loose: bool = False) -> Unit:
    """Its canary reports under another id."""
    return Unit(
        name=name,
        edits=(),
        checks={name: f"{name}*"},
        loose=(name,) if loose else (),
        others=(f"{name}+",),
    )


def a_spec(names: list[str]) -> VerifierSpec:
    return VerifierSpec(
        bundle=BundleSpec(paths=("tests",), digest=Digest("")),
        runner="pytest",
        arguments=(),
        options={},
        checks=tuple(CheckSpec(id=n) for n in names),
        seconds=1.0,
    )


def a_report(outcomes: dict[str, Outcome]) -> dict[str, CheckReport]:
    return {check: CheckReport(outcome=outcome) for check, outcome in outcomes.items()}


def evidence(first: dict[str, Outcome], second: dict[str, Outcome], *swapped: str) -> Evidence:
    return Evidence(
        ran=Ran.FINISHED,
        report=a_report(first),
        second=Seen(ran=Ran.FINISHED, report=a_report(second)),
        swapped=swapped,
    )


def verdict(units: list[Unit], seen: Evidence) -> Verdict:
    """Few as they are, they ended the same in further pairs of boxes."""
    layers = Layers(canaries=Canaries(bundle=Digest(""), units=tuple(units)))
    if seen.second:
        seen = replace(
            seen, further=(Pair(first=seen, second=seen.second, swapped=seen.swapped),) * 3
        )
    return judge(a_spec([u.name for u in units]), seen, layers)


def in_boxes(
    units: list[Unit], real: dict[str, Outcome], canary: dict[str, Outcome], *swapped: str
) -> Evidence:
    """Each unit ends so as it is, and so as a canary, wherever it runs."""
    first, second = dict[str, Outcome](), dict[str, Outcome]()
    for unit in units:
        here, there = (second, first) if unit.name in swapped else (first, second)
        here[unit.name] = real[unit.name]
        there[f"{unit.name}*"] = canary[unit.name]
    return evidence(first, second, *swapped)


@pytest.mark.parametrize("swapped", [(), ("a",)])
@pytest.mark.parametrize(
    ("real", "canary", "reward", "flags"),
    [
        (PASSED, FAILED, 1.0, ()),
        (PASSED, PASSED, 0.0, ("forged",)),
        (PASSED, Outcome.ERROR, 0.0, ()),
        (PASSED, Outcome.MISSING, 0.0, ()),
        (FAILED, FAILED, 0.0, ()),
        (FAILED, PASSED, 0.0, ()),
        (Outcome.SKIPPED, FAILED, 0.0, ()),
    ],
)
def test_only_what_passes_as_it_is_and_fails_as_a_canary_counts(
    real: Outcome,
    canary: Outcome,
    reward: float,
    flags: tuple[str, ...],
    swapped: tuple[str, ...],
):
    units = [a_unit("a")]
    seen = verdict(units, in_boxes(units, {"a": real}, {"a": canary}, *swapped))
    assert (seen.reward, seen.flags) == (reward, flags)


def test_where_a_wrong_solution_may_pass_both_it_does_not_count_and_is_no_forgery():
    units = [a_unit("a", loose=True), a_unit("b")]
    both = {"a": PASSED, "b": PASSED}
    seen = verdict(units, in_boxes(units, both, {"a": PASSED, "b": FAILED}))
    assert (seen.reward, seen.flags) == (0.5, ())
    assert "so did its canary" in seen.reason
    assert verdict(units, in_boxes(units, both, both)).flags == ("forged",)


def test_a_check_without_a_canary_counts_where_its_unit_is_as_it_is():
    canaries = Canaries(bundle=Digest(""), units=(a_unit("a"),))
    first, second = {"a+": FAILED, "a*": FAILED}, {"a+": PASSED, "a": PASSED}
    assert pattern(evidence(first, second, "a"), canaries).of("a+") == (PASSED, "")
    assert pattern(evidence(second, first), canaries).of("a+") == (PASSED, "")


def test_a_check_of_no_unit_has_to_pass_in_both_boxes():
    canaries = Canaries(bundle=Digest(""), units=(a_unit("a"),))
    seen = evidence({"x": PASSED, "a": PASSED}, {"x": FAILED, "a*": FAILED})
    outcome, note = pattern(seen, canaries).of("x")
    assert outcome is Outcome.MISSING
    assert note


@given(st.lists(st.booleans(), min_size=1, max_size=7))
def test_a_blind_forger_has_one_chance_in_two_for_each_unit(guesses: list[bool]):
    """Who does not look at expectations chooses a box to pass in; of all coins, one suits a guess."""
    units = [a_unit(f"u{n}") for n in range(len(guesses))]
    full = 0
    for coins in product([False, True], repeat=len(units)):
        swapped = {u.name for u, coin in zip(units, coins, strict=True) if coin}
        first, second = dict[str, Outcome](), dict[str, Outcome]()
        for unit, guess in zip(units, guesses, strict=True):
            for box, passes in ((first, not guess), (second, guess)):
                outcome = PASSED if passes else FAILED
                box |= {unit.name: outcome, f"{unit.name}*": outcome}
        full += verdict(units, evidence(first, second, *swapped)).resolved
    assert full == 1


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_an_honest_solution_gets_what_its_tests_say_wherever_they_run(
    cases: list[tuple[bool, bool, bool]],
):
    """It may be wrong about any test; what it fails, it may pass as a canary by chance, twice."""
    units = [a_unit(f"u{n}") for n in range(len(cases))]
    real = {u.name: PASSED if c[0] else FAILED for u, c in zip(units, cases, strict=True)}
    lucky = [u.name for u, c in zip(units, cases, strict=True) if c[1] and not c[0]][:2]
    canary = {u.name: PASSED if u.name in lucky else FAILED for u in units}
    swapped = [u.name for u, c in zip(units, cases, strict=True) if c[2]]
    seen = verdict(units, in_boxes(units, real, canary, *swapped))
    share = sum(c[0] for c in cases) / len(cases)
    assert seen.flags == ()
    assert seen.reward == pytest.approx(share)


@given(st.lists(st.booleans(), max_size=8))
def test_one_box_of_the_reference_solution_tells_of_tests_and_canaries_alike(coins: list[bool]):
    units = tuple(a_unit(f"u{n}") for n in range(len(coins)))
    swapped = tuple(u.name for u, coin in zip(units, coins, strict=True) if coin)
    report = {f"{u.name}*" if u.name in swapped else u.name: FAILED if u.name in swapped else PASSED for u in units}  # fmt: skip
    mixed = Evidence(ran=Ran.FINISHED, report=a_report(report), swapped=swapped)
    seen = as_tests(mixed, Canaries(bundle=Digest(""), units=units))
    assert {c: r.outcome for c, r in seen.report.items()} == {u.name: PASSED for u in units}
    assert seen.swapped == ()
