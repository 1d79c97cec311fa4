"""Did the box stand still? Each difference makes the verdict void, by name."""

from dataclasses import replace

import pytest

from sandbox.errors import VerifierFault
from sandbox.grading.probe import SLACK_SECONDS, require_stillness
from sandbox.model.verdict import Probe

AT = 1_715_774_400.0
STILL = Probe(
    clock={"python": AT + 1, "date": AT + 1},
    interfaces=("lo",),
    settings={"TZ": "UTC", "LANG": "C.UTF-8", "hash_randomization": "0", "hostname": "box"},
)


def test_a_box_that_stands_still_counts():
    require_stillness(STILL, at=AT, elapsed=2)


@pytest.mark.parametrize("seen", [AT - SLACK_SECONDS, AT, AT + 10, AT + 10 + SLACK_SECONDS])
def test_the_clock_may_have_ticked_since_it_was_set(seen):
    require_stillness(replace(STILL, clock={"python": seen}), at=AT, elapsed=10)


@pytest.mark.parametrize(
    ("probe", "says"),
    [
        (replace(STILL, clock={}), "did not tell its clock"),
        (replace(STILL, clock={"date": AT - 6}), "clock of date is -6 s"),
        (replace(STILL, clock={"python": AT, "date": AT + 86400}), r"clock of date is \+86400 s"),
        (replace(STILL, clock={"date": float("nan")}), "clock of date is"),
        (replace(STILL, clock={"date": float("inf")}), "clock of date is"),
        (replace(STILL, interfaces=()), "interfaces none instead of lo"),
        (replace(STILL, interfaces=("eth0", "lo")), "interfaces eth0, lo instead of lo"),
        (replace(STILL, reached=("192.0.2.1:80",)), "a way to 192.0.2.1:80"),
        (replace(STILL, settings={**STILL.settings, "TZ": "CET"}), "TZ is 'CET', not 'UTC'"),
        (replace(STILL, settings={}), "hostname is None"),
        (replace(STILL, settings={**STILL.settings, "hash_randomization": "1"}), "randomization"),
    ],
)
def test_what_moved_is_told(probe, says):
    with pytest.raises(VerifierFault, match=says) as caught:
        require_stillness(probe, at=AT, elapsed=2)
    assert "docs/reference/freeze.md" in caught.value.hint


def test_all_differences_are_told_at_once():
    probe = replace(STILL, clock={}, interfaces=(), reached=("x",))
    with pytest.raises(VerifierFault, match=r"clock; .*interfaces.*; .*way to x"):
        require_stillness(probe, at=AT, elapsed=2)
