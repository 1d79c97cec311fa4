"""The words for limits that were reached."""

from dataclasses import replace

import pytest

from sandbox.model.task import Limits
from sandbox.runtime.base import Stats
from sandbox.runtime.limits import disk, reached

LIMITS = Limits(memory_mib=128, pids=64, disk_mib=10, terminals=8)
BEFORE = Stats(
    memory_bytes=5,
    processes=1,
    cpu_seconds=0.1,
    disk_bytes=0,
    terminals=0,
    oom_kills=2,
    forks_refused=7,
)


def words(**changed: int) -> str:
    return reached(BEFORE, replace(BEFORE, **changed), LIMITS)


def test_no_limit_no_words():
    assert words(memory_bytes=128 << 20, processes=64, disk_bytes=10 << 20, terminals=7) == ""


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"oom_kills": 3}, "the memory limit of 128 MiB was reached: 1 process was killed"),
        ({"oom_kills": 5}, "the memory limit of 128 MiB was reached: 3 processes were killed"),
        ({"forks_refused": 8}, "the limit of 64 processes was reached: 1 was refused"),
        ({"forks_refused": 10}, "the limit of 64 processes was reached: 3 were refused"),
        ({"terminals": 8}, "the limit of 8 open terminals was reached"),
        ({"disk_bytes": (10 << 20) + 1}, disk(LIMITS)),
    ],
)
def test_each_limit_is_told_with_what_it_did(changed, expected):
    assert words(**changed) == expected


def test_several_limits_are_told_together():
    assert words(oom_kills=3, forks_refused=8) == (
        "the memory limit of 128 MiB was reached: 1 process was killed; "
        "the limit of 64 processes was reached: 1 was refused"
    )


def test_what_was_told_before_is_not_told_again():
    full = replace(BEFORE, terminals=8, disk_bytes=11 << 20)
    assert reached(full, full, LIMITS) == ""


def test_the_disk_limit_says_that_the_box_was_stopped():
    assert disk(LIMITS) == "the disk limit of 10 MiB was reached: the box was stopped"
