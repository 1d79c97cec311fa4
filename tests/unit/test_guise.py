"""What a box with a clock of its own sees of the machine, as text."""

from sandbox.runtime.embedded.processors import Processors

from sandbox.model.task import Digest
from sandbox.runtime.embedded import clock, guise
from sandbox.runtime.spec import BoxSpec, Image, Stillness

AT = 1_715_774_400
CPUINFO = "\n\n".join(f"processor\t: {n}\nmodel name\t: any" for n in range(4)) + "\n\n"
IMAGE = Image(name="none", digest=Digest(""), config=None, layers=(), env={})  # type: ignore[arg-type]
BORN = clock.Birth(5, 0)


def spec(**still: object) -> BoxSpec:
    return BoxSpec(image=IMAGE, still=Stillness(at_ns=AT * 10**9, **still))  # type: ignore[arg-type]


def test_processors_are_those_of_the_box_and_no_more():
    shown = guise.files(2, AT, CPUINFO)
    assert shown["sys/devices/system/cpu/online"] == "0-1\n"
    assert shown["proc/cpuinfo"].count("processor") == 2
    assert [line for line in shown["proc/stat"].splitlines() if line.startswith("cpu")] == [
        "cpu  0 0 0 20000 0 0 0 0 0 0",
        "cpu0 0 0 0 10000 0 0 0 0 0 0",
        "cpu1 0 0 0 10000 0 0 0 0 0 0",
    ]


def test_one_processor_is_no_range():
    assert guise.files(1, AT, CPUINFO)["sys/devices/system/cpu/present"] == "0\n"


def test_the_machine_was_started_when_it_is_said_to_have_been():
    assert f"\nbtime {AT}\n" in guise.stat_text(1, AT)


def test_a_machine_that_says_nothing_of_its_processors_is_left_as_it_is():
    assert "proc/cpuinfo" not in guise.files(1, AT, "")


def test_a_box_without_a_clock_has_no_guise_and_none_to_start():
    plain = BoxSpec(image=IMAGE)
    assert clock.guise(plain, 2) is None
    assert clock.request(plain, BORN, begin=True) is None


def test_a_clock_is_asked_for_by_name_and_value():
    asked = clock.request(spec(mode="step", step_ns=7, seed=3, aslr=False), BORN, begin=True)
    assert asked
    assert asked["options"] == f"at={AT}000000000 mode=step since=5 step=7 seed=3 aslr=0"


def test_a_clock_that_is_for_later_has_no_start_yet():
    assert clock.request(spec(), BORN, begin=False) == {}


def test_boxes_are_spread_over_the_processors_and_give_them_back():
    processors = Processors()
    there = len(processors.take(1000.0))
    one, two = processors.take(1.0), processors.take(0.5)
    assert len(one) == len(two) == 1
    assert (one == two) == (there == 1)
    processors.give_back(one)
    assert processors.take(1.0) == one
