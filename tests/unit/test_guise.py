"""What a box with a clock of its own sees of the machine, as text."""

from sandbox.model.task import Digest
from sandbox.runtime.embedded import clock, guise
from sandbox.runtime.embedded.still import UPTIME_SECONDS
from sandbox.runtime.freeze import machine
from sandbox.runtime.processors import Processors
from sandbox.runtime.spec import BoxSpec, Image, Stillness

AT = 1_715_774_400
IMAGE = Image(name="none", digest=Digest(""), config=None, layers=(), env={})  # type: ignore[arg-type]
BORN = clock.Birth(5, 0)


def spec(**still: object) -> BoxSpec:
    return BoxSpec(image=IMAGE, still=Stillness(at_ns=AT * 10**9, **still))  # type: ignore[arg-type]


def test_the_machine_was_started_a_while_before_the_box():
    shown = clock.seen(spec(), 1)
    assert shown
    assert f"\nbtime {AT - UPTIME_SECONDS}\n" in shown["/proc/stat"]


def test_every_box_s_kernel_was_started_as_the_same_one():
    assert guise.files(2, 0)["/proc/sys/kernel/random/boot_id"] == f"{guise.BOOT_ID}\n"


def test_all_else_is_what_any_runtime_says():
    assert machine.texts(2, AT).items() <= guise.files(2, AT).items()


def test_a_box_without_a_clock_has_no_guise_and_none_to_start():
    plain = BoxSpec(image=IMAGE)
    assert clock.seen(plain, 2) is None
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
