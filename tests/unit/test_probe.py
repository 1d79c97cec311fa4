"""Did the box stand still? Each difference makes the verdict void, by name."""

from dataclasses import replace
from typing import Any

import pytest

from sandbox.errors import VerifierFault
from sandbox.grading.measure import as_probe
from sandbox.grading.probe import SLACK_SECONDS, Expected, expected, later_on, require_stillness
from sandbox.model.verdict import Probe
from sandbox.runtime.fake import NO_IMAGE
from sandbox.runtime.fakestill import probe as a_good_box
from sandbox.runtime.spec import BoxSpec, Stillness

AT = 1_715_774_400.0
STILL = Stillness(at_ns=int(AT) * 10**9)
SPEC = BoxSpec(image=NO_IMAGE, env={"PYTHONHASHSEED": "0"}, still=STILL)
EXPECT = expected(SPEC, STILL, user="0:0", umask=0o022)
SEEN = Probe(
    clock={"python": AT + 1, "date": AT + 1},
    interfaces=("lo",),
    settings={
        "TZ": "UTC",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "hash_randomization": "0",
        "hostname": "box",
        "user": "0:0",
        "umask": "022",
    },
    variables=("PATH", "HOME", "PYTHONHASHSEED", "_"),
)
MEASURED = as_probe(a_good_box(SPEC, STILL))


def numbers(**changed: float) -> Probe:
    return replace(MEASURED, numbers={**MEASURED.numbers, **changed})


def held_as(**changed: Any) -> Expected:
    still = replace(STILL, **changed)
    return expected(replace(SPEC, still=still), still, user="0:0", umask=0o022)


@pytest.mark.parametrize("probe", [SEEN, MEASURED])
def test_a_box_that_stands_still_counts(probe):
    require_stillness(probe, EXPECT, elapsed=2)


@pytest.mark.parametrize("seen", [AT - SLACK_SECONDS, AT, AT + 10, AT + 10 + SLACK_SECONDS])
def test_a_clock_that_ticks_may_have_ticked_since_it_was_set(seen):
    require_stillness(replace(SEEN, clock={"python": seen}), EXPECT, elapsed=10)


@pytest.mark.parametrize("seen", [AT - 1, AT + 0.001, AT + 1])
def test_a_clock_that_stands_may_not_have_moved(seen):
    require_stillness(replace(SEEN, clock={"python": AT}), held_as(mode="fixed"), elapsed=10)
    with pytest.raises(VerifierFault, match="clock of python"):
        require_stillness(replace(SEEN, clock={"python": seen}), held_as(mode="fixed"), elapsed=10)


def test_a_clock_that_moves_when_it_is_read_moves_forward_and_not_for_ever():
    expect = held_as(mode="step", step_ns=10**6)
    require_stillness(replace(SEEN, clock={"python": AT + 900}), expect, elapsed=0)
    for seen in (AT - 1, AT + 86400):
        with pytest.raises(VerifierFault, match="clock of python"):
            require_stillness(replace(SEEN, clock={"python": seen}), expect, elapsed=10)


@pytest.mark.parametrize(
    ("probe", "says"),
    [
        (replace(SEEN, clock={}), "did not tell its clock"),
        (replace(SEEN, clock={"date": AT - 6}), "clock of date is -6 s"),
        (replace(SEEN, clock={"python": AT, "date": AT + 86400}), r"clock of date is \+86400 s"),
        (replace(SEEN, clock={"date": float("nan")}), "clock of date is"),
        (replace(SEEN, clock={"date": float("inf")}), "clock of date is"),
        (replace(SEEN, interfaces=()), "interfaces none instead of lo"),
        (replace(SEEN, interfaces=("eth0", "lo")), "interfaces eth0, lo instead of lo"),
        (replace(SEEN, reached=("192.0.2.1:80",)), "a way to 192.0.2.1:80"),
        (replace(SEEN, settings={**SEEN.settings, "TZ": "CET"}), "TZ is 'CET', not 'UTC'"),
        (replace(SEEN, settings={}), "hostname is None"),
        (replace(SEEN, settings={**SEEN.settings, "hash_randomization": "1"}), "randomization"),
        (replace(SEEN, settings={**SEEN.settings, "user": "1000:0"}), "user is '1000:0'"),
        (replace(SEEN, variables=("PATH", "AWS_SECRET", "A")), "set the variables A, AWS_SECRET"),
    ],
)
def test_what_moved_is_told(probe, says):
    with pytest.raises(VerifierFault, match=says) as caught:
        require_stillness(probe, EXPECT, elapsed=2)
    assert "docs/reference/freeze.md" in caught.value.hint


@pytest.mark.parametrize(
    ("probe", "says"),
    [
        (replace(MEASURED, clock={}), "did not tell clock_gettime"),
        (replace(MEASURED, clock={**MEASURED.clock, "raw_coarse": AT + 9e7}), "of raw_coarse is"),
        (replace(MEASURED, clock={**MEASURED.clock, "child": -1e-9}), "of child is"),
        (replace(MEASURED, clock={**MEASURED.clock, "tai": AT + 70}), "of tai is"),
        (replace(MEASURED, numbers={}), "did not tell clock_settime, settimeofday"),
        (numbers(clock_settime=0), "clock_settime is not refused"),
        (numbers(settimeofday=22), "settimeofday is not refused"),
        (numbers(udp6=0), "a way out by udp6"),
        (numbers(vsock=0), "a way out by vsock"),
        (numbers(sleep_ms=0), "sleep_ms is 0"),
        (numbers(wait_ms=0), "wait_ms is 0"),
        (numbers(wait_ms=90_000), "wait_ms is 90000"),
        (numbers(mtime=(AT + 8e7) * 1e9), r"time of a new file is \+80000000 s"),
        (numbers(mtime=-1), "time of a new file is -"),
        (numbers(utimes=AT * 1e9), "gives a file does not stay"),
        (numbers(interfaces=1), "1 network interfaces beside lo"),
        (numbers(umask=0o77), "umask is 077, not 022"),
    ],
)
def test_what_a_static_program_sees_is_held_against_the_box_too(probe, says):
    with pytest.raises(VerifierFault, match=says):
        require_stillness(probe, EXPECT, elapsed=2)


def test_atomic_time_may_be_ahead():
    probe = replace(MEASURED, clock={**MEASURED.clock, "tai": AT + 37, "raw_tai": AT + 37})
    require_stillness(probe, held_as(mode="fixed"), elapsed=0)


def test_there_is_no_instant_to_wait_for_where_the_clock_moves_when_it_is_read():
    require_stillness(numbers(wait_ms=0), held_as(mode="step"), elapsed=0)


def test_programs_that_are_laid_out_as_ever_say_so():
    expect = held_as(aslr=False)
    with pytest.raises(VerifierFault, match="aslr is None, not 'off'"):
        require_stillness(SEEN, expect, elapsed=2)
    require_stillness(replace(SEEN, settings={**SEEN.settings, "aslr": "off"}), expect, elapsed=2)


def test_once_code_under_test_has_run_its_process_is_its_own_and_the_box_is_not():
    after = later_on(EXPECT)
    own = {"TZ": "CET", "hostname": "box", "hash_randomization": "0", "umask": "777"}
    require_stillness(replace(SEEN, settings=own, variables=("MINE",)), after, elapsed=2)
    with pytest.raises(VerifierFault, match="hostname is 'mine'"):
        require_stillness(replace(SEEN, settings={**own, "hostname": "mine"}), after, elapsed=2)


def test_all_differences_are_told_at_once():
    probe = replace(SEEN, clock={}, interfaces=(), reached=("x",))
    with pytest.raises(VerifierFault, match=r"clock; .*interfaces.*; .*way to x"):
        require_stillness(probe, EXPECT, elapsed=2)
