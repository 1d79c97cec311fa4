"""The time axis of a box with a clock of its own: arithmetic only."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.model.task import Digest
from sandbox.runtime.freeze.axis import Axis, start_ns
from sandbox.runtime.spec import Snapshot, Stillness

S = 1_000_000_000
AT, REAL0 = 1_715_774_400 * S, 1_790_000_000 * S
AXIS = Axis(at_ns=AT, real0_ns=REAL0, since_ns=REAL0 - S, mono0_ns=77 * S)
STANDING = Axis(at_ns=AT, real0_ns=REAL0, since_ns=REAL0 - S, mono0_ns=77 * S, ticking=False)
NOW = REAL0 + 3600 * S


def test_a_file_written_in_the_box_has_the_box_s_date():
    assert AXIS.shown_ns(REAL0 + 5 * S, NOW) == AT + 5 * S


def test_what_was_staged_before_the_clock_started_is_as_old_as_the_clock():
    assert AXIS.shown_ns(REAL0 - S, NOW) == AT


def test_a_file_older_than_the_box_keeps_its_date():
    assert AXIS.shown_ns(REAL0 - S - 1, NOW) == REAL0 - S - 1


def test_a_date_in_the_machine_s_future_was_meant():
    later = NOW + 2 * S
    assert AXIS.shown_ns(later, NOW) == later


def test_a_clock_in_the_future_of_the_machine_moves_what_is_new_and_nothing_else():
    axis = Axis(at_ns=REAL0 + 10**9 * S, real0_ns=REAL0, since_ns=REAL0, mono0_ns=0)
    assert axis.shown_ns(REAL0 + S, NOW) == axis.at_ns + S
    assert axis.shown_ns(axis.at_ns + S, NOW) == axis.at_ns + S


@given(st.integers(-S, 3600 * S), st.integers(-S, 3600 * S))
def test_files_keep_their_order(one: int, two: int):
    for axis in (AXIS, STANDING):
        older, newer = sorted((REAL0 + one, REAL0 + two))
        assert axis.shown_ns(older, NOW) <= axis.shown_ns(newer, NOW)


@given(st.integers(-S, 3600 * S))
def test_nothing_is_newer_than_a_clock_that_stands(age: int):
    assert STANDING.shown_ns(REAL0 + age, NOW) < AT


def test_the_clock_ticks_with_monotonic_time_or_stands():
    assert AXIS.now_ns(80 * S) == AT + 3 * S
    assert AXIS.now_ns(70 * S) == AT
    assert STANDING.now_ns(80 * S) == AT


def test_it_comes_through_json_as_it_is():
    assert Axis.of(json.loads(json.dumps(AXIS.told()))) == AXIS


@pytest.mark.parametrize(("clock", "start"), [(None, AT), (AT - 5, AT), (AT + 5, AT + 5)])
def test_a_box_goes_on_where_its_snapshot_was_taken(clock: int | None, start: int):
    taken = Snapshot(image=Digest("sha256:1"), seeds=(), tar=Path("tar"), sha256="", clock_ns=clock)
    assert start_ns(Stillness(at_ns=AT), taken) == start
    assert start_ns(Stillness(at_ns=AT), None) == AT
