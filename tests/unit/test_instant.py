"""Which instants a clock may well start at."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.formats.yamlfile import open_document
from sandbox.model.instant import awkward, good_near, nanoseconds_of, seconds_of, written

HOME = Path(__file__).resolve().parents[2]
MOMENTS = st.integers(946_684_800, 2_145_916_799).map(written)
"""Of the years 2000 to 2037."""


def test_an_instant_is_a_number_of_seconds_and_back():
    assert seconds_of("2024-05-15T12:00:00Z") == 1_715_774_400
    assert nanoseconds_of("2024-05-15T12:00:00Z") == 1_715_774_400 * 10**9
    assert written(1_715_774_400.9) == "2024-05-15T12:00:00Z"


@pytest.mark.parametrize(
    ("at", "why", "near"),
    [
        ("2024-05-15T12:00:00Z", "", "2024-05-15T12:00:00Z"),
        ("2024-05-15T12:00:01Z", "not noon", "2024-05-15T12:00:00Z"),
        ("2024-05-18T12:00:00Z", "a Saturday", "2024-05-16T12:00:00Z"),
        ("2024-12-31T23:59:50Z", "those of two months", "2024-12-19T12:00:00Z"),
        ("2024-03-12T12:00:00Z", "clocks are changed", "2024-03-19T12:00:00Z"),
        ("2023-03-01T12:00:00Z", "those of two months, clocks", "2023-02-16T12:00:00Z"),
    ],
)
def test_what_speaks_against_an_instant_is_told_and_a_better_one_is_named(at, why, near):
    assert why in awkward(at)
    assert bool(why) == bool(awkward(at))
    assert good_near(at) == near


@given(MOMENTS)
def test_there_is_a_good_instant_near_any(at):
    near = good_near(at)
    assert awkward(near) == ""
    assert abs(seconds_of(near) - seconds_of(at)) < timedelta(days=28).total_seconds()


def test_every_task_of_the_suite_starts_at_a_good_one():
    for path in (HOME / "task_specs").glob("*/task.yaml"):
        assert (path, awkward(open_document(path).data["clock"]["at"])) == (path, "")
