"""What there is to say of a task's clock, though the task is sound."""

from hypothesis import given
from hypothesis import strategies as st

from sandbox.audit.pins import advice
from sandbox.model.instant import seconds_of, written

AT = "2024-05-15T12:00:00Z"


def test_nothing_is_said_of_a_good_instant_that_is_later_than_all_files():
    assert list(advice(AT, {"image `a`": seconds_of(AT), "repository `b`": 0})) == []


def test_an_awkward_instant_comes_with_a_good_one():
    (said,) = advice("2024-06-01T00:00:00Z", {})
    assert "clock.at is 2024-06-01T00:00:00Z: the days around" in said
    assert "hint: 2024-06-11T12:00:00Z" in said


def test_files_from_the_future_are_named_with_their_date():
    (said,) = advice(AT, {"image `a`": seconds_of(AT) + 1, "repository `b`": 5})
    assert "files of the image `a` are dated 2024-05-15T12:00:01Z" in said


@given(st.integers(946_684_800, 2_114_380_800))
def test_the_instant_that_is_named_then_is_after_the_files(newest):
    *_, said = advice(written(newest - 1), {"image `a`": newest})
    assert seconds_of(said.split("hint: ")[1].split(" ")[0]) > newest
