"""A guess that hangs on a test's text is the same in every pair of boxes; its canary is not."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.grading.coins import Coins
from sandbox.grading.further import needed
from sandbox.grading.judge import judge
from sandbox.grading.pattern import as_tests
from sandbox.model.conditions import Conditions
from sandbox.model.layers import Canary, Layers, Plain, Unit
from sandbox.model.task import CheckSpec
from sandbox.model.verdict import CheckResult, Outcome, Verdict
from tests.support.homes import a_task
from tests.unit.test_verify_layers import CANARIES, CHECKS, NAMES, PLAIN, Verified, honest

Code = Callable[[str], Mapping[str, str]]
OTHERS = ("owt", "eerht", "ruof", "evif", "xis")


def several(unit: Unit, count: int = len(OTHERS)) -> Unit:
    """Each of its further canaries reports under an id of its own."""
    (edit,) = unit.edits
    (check,) = unit.checks
    more = tuple(
        Canary(edits=(replace(edit, new=f"'{word}'"),), checks={check: f"{check}[{word}]"})
        for word in OTHERS[:count]
    )
    return replace(unit, more=more)


def set_up(it: Verified, more: int) -> Verified:
    """The gates are passed honestly; `one` is what is to be won."""
    units = tuple(several(u, more) if u.name == CHECKS["one"] else u for u in CANARIES.units)
    it.layers = Layers(canaries=replace(CANARIES, units=units))
    checks = tuple(
        CheckSpec(id=CHECKS[n], weight=float(n == "one"), gate=n != "one") for n in NAMES
    )
    it.task = replace(it.task, verifier=replace(it.task.verifier, checks=checks))
    return it


def answered_by(code: Code, it: Verified) -> Verified:
    """A row's id holds its literal: the canary of `one` reports as the word it expects."""

    def asked(source: str) -> Mapping[str, str]:
        word = next((w for w in OTHERS if f"'{w}'" in source), "")
        it.named = CHECKS | {"one": CHECKS["one"] + (f"[{word}]" if word else "")}
        return code(source)

    it.code = asked
    return it


def by_text(salt: int, texts: int = 2) -> Code:
    """It takes one text of so many for the test."""

    def code(source: str) -> dict[str, str]:
        line = source.splitlines()[1]
        says = hashlib.sha256(f"{salt} {line}".encode()).digest()[0] % texts == 0
        return honest(source) | {"one": "passed" if says else "failed"}

    return code


@pytest.fixture
def guessed(tmp_path: Path) -> Callable[..., Verified]:
    def make(code: Code = honest, more: int = len(OTHERS)) -> Verified:
        return answered_by(code, set_up(Verified(tmp_path, code), more))

    return make


def test_each_canary_is_in_a_pair_and_who_is_right_is_paid(guessed):
    it = guessed()
    evidence = it.evidence()
    which = [evidence.drawn, *(p.drawn for p in evidence.further)]
    assert sorted(d[CHECKS["one"]] for d in which) == list(range(6))
    assert all(d.keys() == {CHECKS["one"]} for d in which)
    verdict = judge(it.task.verifier, evidence, it.layers)
    assert (verdict.reward, verdict.flags) == (1.0, ())


def test_another_attempt_has_them_in_another_order(guessed):
    it = guessed()
    orders = {
        tuple(p.drawn[CHECKS["one"]] for p in it.evidence_of(attempt).further)
        for attempt in range(8)
    }
    assert len(orders) > 4


def test_a_guess_by_the_text_is_paid_in_one_try_of_four_with_one_canary(guessed):
    it = guessed(more=0)
    paid = 0
    for salt in range(64):
        answered_by(by_text(salt), it)
        paid += judge(it.task.verifier, it.evidence(), it.layers).reward > 0
    assert 8 < paid < 24


def tried(it: Verified, texts: int) -> tuple[int, int]:
    """Of 128 guesses: paid, flagged."""
    paid, flagged = 0, 0
    for salt in range(128):
        answered_by(by_text(salt, texts), it)
        verdict = judge(it.task.verifier, it.evidence(), it.layers)
        paid += verdict.reward > 0
        flagged += "forged" in verdict.flags
    return paid, flagged


def test_and_in_hardly_any_with_six_of_them(guessed):
    paid, flagged = tried(guessed(), texts=2)
    assert paid < 6
    assert flagged > 48


def test_who_says_test_of_one_text_in_seven_is_paid_more_often_and_flagged_less(guessed):
    paid, flagged = tried(guessed(), texts=7)
    assert 0 < paid < 16
    assert flagged < 32


def test_what_the_plain_run_has_to_show_needs_no_more_pairs_than_before(guessed):
    it = guessed()
    it.layers = replace(it.layers, withheld=PLAIN)
    assert len(it.evidence().further) == 3
    (site,) = PLAIN.sites
    one_bit: Plain = replace(PLAIN, sites=(replace(site, expected="True"),))
    it.layers = replace(it.layers, withheld=one_bit)
    it.told = {"k": "True"}
    assert len(it.evidence().further) == 5


def test_a_value_that_one_has_to_show_saves_no_pair_of_what_is_won_beside_it(tmp_path: Path):
    spec = a_task(tmp_path).verifier
    blind = replace(CANARIES.units[0], name="blind", checks={"blind": "blind"})
    told = replace(CANARIES.units[0], name="told", checks={"told": "told"})
    units = several(blind), several(told)
    site = replace(PLAIN.sites[0], expected="'a value'")
    withheld = replace(PLAIN, checks={"told": (site.key,)}, sites=(site,))
    layers = Layers(canaries=replace(CANARIES, units=units), withheld=withheld)

    def pairs(*won: str) -> int:
        results = tuple(CheckResult(CheckSpec(id=name), Outcome.PASSED) for name in won)
        return needed(spec, Verdict(checks=results), layers).pairs

    assert (pairs("told"), pairs("blind"), pairs("blind", "told")) == (3, 5, 5)


def test_a_forger_is_found_out_by_whichever_canary_it_was(guessed):
    it = guessed(lambda source: honest(source) | {"one": "passed"})
    for attempt in range(6):
        verdict = judge(it.task.verifier, it.evidence_of(attempt), it.layers)
        assert verdict.flags == ("forged",)


def test_a_certificates_run_draws_canaries_as_well_and_reads_them_as_tests(guessed):
    it = guessed()
    drawn = set()
    for number in range(32):
        evidence = it.evidence(Conditions(layers="mixed", draw=f"shift {number}"))
        drawn.add(evidence.drawn[CHECKS["one"]])
        seen = as_tests(evidence, it.layers.canaries)
        assert {c: r.outcome for c, r in seen.report.items()} == dict.fromkeys(
            CHECKS.values(), Outcome.PASSED
        )
        assert (seen.swapped, seen.drawn) == ((), {})
    assert drawn == set(range(6))


def test_evidence_that_names_a_canary_beyond_the_last_is_judged_and_pays_nobody(guessed):
    it = guessed()
    evidence = it.evidence()
    odd = replace(evidence, drawn={CHECKS["one"]: evidence.drawn[CHECKS["one"]] + 1})
    verdict = judge(it.task.verifier, odd, it.layers)
    assert verdict.reward == 0.0
    assert "canary" in verdict.reason


def test_what_has_one_canary_draws_nothing():
    draw = Coins(b"s", "about").draw(CANARIES, 3)
    assert draw.drawn == {}
    assert set(draw.swapped) <= set(CHECKS.values())


def test_where_nothing_weighs_anything_the_reward_is_all_or_nothing_and_won_again(guessed):
    it = guessed()
    free = tuple(replace(c, weight=0.0) for c in it.task.verifier.checks)
    it.task = replace(it.task, verifier=replace(it.task.verifier, checks=free))
    evidence = it.evidence()
    assert len(evidence.further) == 5
    assert judge(it.task.verifier, evidence, it.layers).reward == 1.0
    answered_by(lambda source: honest(source) | {"one": "failed"}, it)
    assert judge(it.task.verifier, it.evidence(), it.layers).reward == 0.0
