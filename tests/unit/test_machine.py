"""What a box is told of the machine it runs on."""

import pytest

from sandbox.runtime.freeze.machine import cpuinfo, online, processors, stat, texts

STAT = b"""cpu  10 0 5 100 1 0 0 0 0 0
cpu0 5 0 3 50 1 0 0 0 0 0
cpu1 5 0 2 50 0 0 0 0 0 0
cpu10 5 0 2 50 0 0 0 0 0 0
intr 936501 0 0
ctxt 2650423
btime 1796019081
processes 4
"""
CPUINFO = b"processor\t: 0\nmodel name\t: x\n\nprocessor\t: 1\nmodel name\t: x\n\n"


@pytest.mark.parametrize(
    ("cpus", "there", "seen"),
    [(1.0, 8, 1), (0.25, 8, 1), (1.5, 8, 2), (2.0, 8, 2), (16.0, 8, 8), (0.0, 8, 1)],
)
def test_a_box_sees_as_many_processors_as_it_may_use(cpus: float, there: int, seen: int):
    assert processors(cpus, there) == seen


def test_the_machine_started_when_the_box_s_clock_says_so():
    assert b"\nbtime 1715774400\nprocesses" in stat(STAT, 2, 1715774400 * 10**9 + 999_999_999)


def test_a_machine_that_ran_before_time_began_started_with_it():
    assert b"\nbtime 0\n" in stat(STAT, 2, -1)


def test_only_the_processors_that_are_seen_are_counted():
    assert stat(STAT, 1, 0).count(b"\ncpu") == 1
    assert stat(STAT, 2, 0).count(b"\ncpu") == 2
    assert stat(STAT, 11, 1796019081 * 10**9) == STAT


def test_only_the_processors_that_are_seen_are_described():
    assert cpuinfo(CPUINFO, 1) == b"processor\t: 0\nmodel name\t: x\n\n"
    assert cpuinfo(CPUINFO, 2) == CPUINFO
    assert cpuinfo(CPUINFO + b"Hardware\t: y\n", 1).endswith(b"\n\nHardware\t: y\n\n")


def test_processors_are_numbered_from_zero():
    assert (online(1), online(2), online(64)) == (b"0\n", b"0-1\n", b"0-63\n")


def test_it_is_this_machine_that_is_described():
    found = texts(1, 0)
    assert found["/sys/devices/system/cpu/online"] == b"0\n"
    assert found["/proc/cpuinfo"].count(b"processor") == 1
    assert b"btime" in found["/proc/stat"]
