"""What a box with a clock of its own is told of the machine it runs on."""

from pathlib import Path

from sandbox.runtime.freeze import machine
from sandbox.runtime.freeze.machine import cpuinfo, listed, stat, texts

CPUINFO = "processor\t: 0\nmodel name\t: x\n\nprocessor\t: 1\nmodel name\t: x\n\n"
NANO = 10**9


def test_the_machine_started_when_the_box_s_clock_says_so():
    assert "\nbtime 1715774400\nprocesses" in stat(2, 1715774400 * NANO + 999_999_999)


def test_a_machine_that_ran_before_time_began_started_with_it():
    assert "\nbtime 0\n" in stat(2, -1)


def test_only_the_processors_that_are_seen_are_counted():
    names = [line.split()[0] for line in stat(3, 0).splitlines() if line.startswith("cpu")]
    assert names == ["cpu", "cpu0", "cpu1", "cpu2"]


def test_only_the_processors_that_are_seen_are_described():
    assert cpuinfo(CPUINFO, 1) == "processor\t: 0\nmodel name\t: x\n\n"
    assert cpuinfo(CPUINFO, 2) == CPUINFO
    assert cpuinfo(CPUINFO + "Hardware\t: y\n", 1).endswith("\n\nHardware\t: y\n\n")


def test_processors_are_numbered_from_zero():
    assert (listed(1), listed(2), listed(64)) == ("0\n", "0-1\n", "0-63\n")


def test_it_is_this_machine_that_is_described():
    found = texts(1, 0)
    assert found["/sys/devices/system/cpu/online"] == "0\n"
    assert found["/proc/cpuinfo"].count("processor\t") == 1


def test_what_the_machine_says_itself_is_not_mounted():
    lists = {path: Path(path).read_text() for path in machine.LISTS}
    others = {machine.STAT: "cpu", machine.CPUINFO: Path(machine.CPUINFO).read_text()}
    assert machine.told(lists | others) == others
    assert machine.told(dict.fromkeys(machine.LISTS, "0-99\n")) == dict.fromkeys(
        machine.LISTS, "0-99\n"
    )
