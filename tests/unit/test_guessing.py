"""Two boxes that tell themselves apart, and what is left to them; and honest work that is wrong."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.grading.judge import judge
from sandbox.model.layers import Canaries, Edit, Layers, Unit
from sandbox.model.task import CheckSpec, Digest, VerifierSpec
from sandbox.model.verdict import CheckReport, Evidence, Outcome, Ran, Seen
from tests.support.homes import a_task

NAMES = [f"t.py::test_{n}" for n in range(24)]
CANARIES = Canaries(
    bundle=Digest("sha256:" + "0" * 64),
    units=tuple(
        Unit(
            name=name,
            edits=(Edit(path="t.py", line=1, column=0, old="1", new="2"),),
            checks={name: f"{name}[canary]"},
        )
        for name in NAMES
    ),
)
LAYERS = Layers(canaries=CANARIES)


@pytest.fixture
def spec(tmp_path: Path) -> VerifierSpec:
    return replace(a_task(tmp_path).verifier, checks=tuple(CheckSpec(id=n) for n in NAMES))


def seen(swapped: set[str], passing: set[str]) -> dict[str, CheckReport]:
    """Of a box that passes these units, whichever of the two they are there."""
    return {
        f"{name}[canary]" if name in swapped else name: CheckReport(
            outcome=Outcome.PASSED if name in passing else Outcome.FAILED
        )
        for name in NAMES
    }


def guessed(coins: random.Random) -> Evidence:
    """One half of the tests passes in one box, and the other half in the other."""
    swapped = {name for name in NAMES if coins.random() < 0.5}
    half = {name for name in NAMES if coins.random() < 0.5}
    others = set(NAMES) - half
    return Evidence(
        ran=Ran.FINISHED,
        report=seen(swapped, half),
        swapped=tuple(sorted(swapped)),
        second=Seen(ran=Ran.FINISHED, report=seen(set(NAMES) - swapped, others)),
    )


def test_boxes_that_agree_who_is_who_gain_next_to_nothing(spec: VerifierSpec):
    coins = random.Random(7)
    verdicts = [judge(spec, guessed(coins), LAYERS) for _ in range(500)]
    assert sum("forged" in v.flags for v in verdicts) > 450
    assert sum(v.reward for v in verdicts) / len(verdicts) < 0.03
    assert any(
        v.reason.endswith("canaries passed whose tests did not: it guesses") for v in verdicts
    )


@pytest.mark.parametrize("alone", [0, 1, 2])
def test_a_wrong_answer_that_a_canary_expects_costs_nothing_else(spec: VerifierSpec, alone: int):
    wrong, right = set(NAMES[:12]), set(NAMES[12:])
    meets = set(NAMES[:alone])
    evidence = Evidence(
        ran=Ran.FINISHED,
        report=seen(set(), right),
        second=Seen(ran=Ran.FINISHED, report=seen(set(NAMES), meets)),
    )
    verdict = judge(spec, evidence, LAYERS)
    assert (verdict.reward, verdict.flags) == (len(right) / len(NAMES), ())
    assert len(wrong) == len(right)
