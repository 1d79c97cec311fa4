"""Few units, or a partial answer: a reward is won again in further pairs of boxes, or not at all."""

import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.grading.judge import judge
from sandbox.model.layers import Canaries, Edit, Layers, Unit
from sandbox.model.task import CheckSpec, Digest
from sandbox.model.verdict import Outcome, Seen
from sandbox.runtime.base import ExecResult
from sandbox.runtime.fake import Call, FakeBox
from tests.unit.test_verify_layers import CANARIES, CHECKS, NAMES, Verified, honest


@pytest.fixture
def verified(tmp_path: Path) -> Callable[..., Verified]:
    return lambda code=honest: Verified(tmp_path, code)


def only(it: Verified, *names: str) -> None:
    """These are scored; the others are gates."""
    checks = tuple(
        CheckSpec(id=CHECKS[n], weight=float(n in names), gate=n not in names) for n in NAMES
    )
    it.task = replace(it.task, verifier=replace(it.task.verifier, checks=checks))


def copying(won: tuple[str, ...]) -> Callable[[str], dict[str, str]]:
    """Passes the gates honestly, and those that are to be won wherever the gate `four` passes."""

    def code(source: str) -> dict[str, str]:
        right = honest(source)
        return right | dict.fromkeys(won, right["four"])

    return code


@pytest.mark.parametrize(("scored", "pairs"), [(1, 3), (3, 3), (4, 2)])
def test_who_is_right_keeps_the_reward_in_every_pair(verified, scored, pairs):
    it = verified()
    only(it, *NAMES[:scored])
    evidence = it.evidence()
    assert len(it.sources) == 2 + 2 * pairs
    asked = tuple(sorted(CHECKS[n] for n in NAMES[:scored]))
    assert [p.paths for p in evidence.further] == [asked] * pairs
    assert judge(it.task.verifier, evidence, it.layers).reward == 1.0


def weighing(it: Verified, *names: str) -> None:
    """All are scored; the others weigh nothing."""
    checks = tuple(CheckSpec(id=CHECKS[n], weight=float(n in names)) for n in NAMES)
    it.task = replace(it.task, verifier=replace(it.task.verifier, checks=checks))


def test_full_marks_rest_on_what_weighs_nothing_as_well(verified):
    it = verified()
    weighing(it, "one")
    evidence = it.evidence()
    assert len(evidence.further) == 2
    assert all(set(p.paths) == set(CHECKS.values()) for p in evidence.further)
    assert judge(it.task.verifier, evidence, it.layers).reward == 1.0


def test_a_part_rests_on_what_earns_it_alone(verified):
    it = verified(lambda source: honest(source) | {"four": "failed"})
    weighing(it, "one")
    evidence = it.evidence()
    assert [p.paths for p in evidence.further] == [(CHECKS["one"],)] * 3
    assert judge(it.task.verifier, evidence, it.layers).reward == 0.5


def test_what_has_the_coin_of_a_gate_does_not_make_a_reward_any_surer(verified):
    it = verified()
    only(it, "one", "two", "three")
    first, *others = CANARIES.units
    shared = replace(first, checks={**first.checks, CHECKS["four"]: CHECKS["four"]})
    it.layers = Layers(canaries=replace(CANARIES, units=(shared, *others[:2])))
    it.code = lambda source: (
        {n: "passed" if f"'{n}!'" in source else "failed" for n in NAMES[:3]}
        | {"four": "passed" if "'one!'" in source else "failed"}
    )
    evidence = it.evidence()
    assert [set(p.paths) for p in evidence.further] == [{CHECKS["two"], CHECKS["three"]}] * 3


def test_each_pair_has_coins_of_its_own_and_the_same_ones_again(verified):
    it = verified()
    only(it, "one")
    drawn = [[e.swapped, *(p.swapped for p in e.further)] for e in map(it.evidence_of, range(8))]
    assert drawn == [
        [e.swapped, *(p.swapped for p in e.further)] for e in map(it.evidence_of, range(8))
    ]
    assert len({coins for pairs in drawn for coins in pairs}) > 8


def test_a_forger_that_copies_the_coin_of_a_gate_is_right_once_and_not_each_time(verified):
    it = verified(copying(("one",)))
    only(it, "one")
    seen = [it.evidence_of(attempt) for attempt in range(64)]
    first = [judge(it.task.verifier, replace(e, further=()), it.layers).flags for e in seen]
    # The first pair alone would have paid in about one try of two.
    assert 16 < first.count(("unproved",)) < 48
    paid = [judge(it.task.verifier, e, it.layers).reward for e in seen]
    assert sum(paid) < 12
    lost = [e for e, reward in zip(seen, paid, strict=True) if e.further and not reward]
    assert min(len(e.further) for e in lost) == 1


def test_what_lost_in_another_pair_says_so(verified):
    it = verified(copying(("one",)))
    only(it, "one")
    reasons = (
        judge(it.task.verifier, e, it.layers).reason
        for e in map(it.evidence_of, range(64))
        if e.further
    )
    assert any("pair 2 of boxes" in reason for reason in reasons)


@pytest.mark.parametrize(("many", "pairs"), [(6, 1), (11, 1), (12, 0)])
def test_many_units_need_one_further_pair_or_none(verified, many, pairs):
    it = verified()
    names = tuple(f"u{number}" for number in range(many))
    source = "".join(f"def test_{n}():\n    assert f('{n}') == '{n}!'\n" for n in names)
    ids = {n: f"tests/test_a.py::test_{n}" for n in names}
    column = {n: len(f"    assert f('{n}') == ") for n in names}
    units = tuple(
        Unit(
            name=ids[n],
            edits=(
                Edit(path="tests/test_a.py", line=2 * i + 2, column=column[n], old=f"'{n}!'", new="'eno'"),
            ),
            checks={ids[n]: ids[n]},
        )
        for i, n in enumerate(names)
    )  # fmt: skip
    checks = tuple(CheckSpec(id=i) for i in ids.values())
    it.task = replace(it.task, verifier=replace(it.task.verifier, checks=checks))
    it.supplies = replace(it.supplies, tests=(replace(it.supplies.tests[0], data=source.encode()),))
    it.layers = Layers(canaries=Canaries(bundle=Digest(""), units=units))
    it.named = ids
    it.code = lambda text: {n: "passed" if f"'{n}!'" in text else "failed" for n in names}
    evidence = it.evidence()
    assert (len(it.sources), len(evidence.further)) == (2 + 2 * pairs, pairs)
    assert judge(it.task.verifier, evidence, it.layers).reward == 1.0


def test_trimmed_evidence_proves_nothing(verified):
    it = verified()
    only(it, "one", "two")
    evidence = it.evidence()
    for kept in range(3):
        trimmed = replace(evidence, further=evidence.further[:kept])
        verdict = judge(it.task.verifier, trimmed, it.layers)
        assert (verdict.reward, verdict.flags) == (0.0, ("unproved",))
    whole = tuple(replace(p, paths=("tests/test_a.py",)) for p in evidence.further)
    assert judge(it.task.verifier, replace(evidence, further=whole), it.layers).reward == 1.0
    elsewhere = tuple(replace(p, paths=("tests/test_b.py",)) for p in evidence.further)
    assert judge(it.task.verifier, replace(evidence, further=elsewhere), it.layers).flags == (
        "unproved",
    )


def test_only_what_was_won_is_asked_for(verified):
    it = verified()
    only(it, "one")
    asked: list[list[str]] = []
    reply: Callable[[FakeBox, Call], ExecResult | None] = it.reply

    def look(box: FakeBox, call: Call) -> ExecResult | None:
        if any(word.endswith("/plan.json") for word in call.argv):
            with tarfile.open(fileobj=io.BytesIO(b"".join(box.get("/verify/plan.json")))) as tar:
                inner = tar.extractfile(tar.getmembers()[0])
                asked.append(json.loads(inner.read() if inner else b"{}")["arguments"])
        return reply(box, call)

    it.reply = look
    it.evidence()
    usual = list(it.task.verifier.arguments)
    assert asked == [usual] * 2 + [["tests/test_a.py::test_one"]] * 6


def test_a_wrong_answer_that_a_canary_expects_is_so_in_each_pair_and_costs_nothing_else(verified):
    it = verified(
        lambda source: (
            honest(source)
            | {n: "failed" if f"'{n}!'" in source else "passed" for n in ("two", "three")}
        )
    )
    verdict = judge(it.task.verifier, it.evidence(), it.layers)
    assert (verdict.reward, verdict.flags) == (0.5, ())


def test_a_canary_that_passes_beside_its_test_in_a_further_pair_is_forged(verified):
    it = verified()
    only(it, "one", "two")
    evidence = it.evidence()
    last = evidence.further[-1]

    def all_pass(seen: Seen) -> Seen:
        report = {c: replace(r, outcome=Outcome.PASSED) for c, r in seen.report.items()}
        return replace(seen, report=report)

    forged = replace(last, first=all_pass(last.first), second=all_pass(last.second))
    shown = replace(evidence, further=(*evidence.further[:-1], forged))
    assert judge(it.task.verifier, shown, it.layers).flags == ("forged",)
