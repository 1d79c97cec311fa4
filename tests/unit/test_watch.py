"""The watch over disk limits, with boxes that are numbers and a clock that is one too."""

import threading

import pytest

from sandbox.errors import RuntimeFault
from sandbox.runtime.watch import Watch
from tests.support.waiting import eventually

LIMIT = 1000


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class FakeBox:
    def __init__(self, clock: Clock | None = None, *, used: int = 0, seconds: float = 0) -> None:
        self.clock, self.used, self.seconds = clock, used, seconds
        self.told: list[int] = []
        self.fault: Exception | None = None

    def disk_bytes(self) -> int:
        if self.clock is not None:
            self.clock.now += self.seconds
        if self.fault is not None:
            raise self.fault
        return self.used

    def over_disk(self, used: int) -> None:
        self.told.append(used)


@pytest.fixture
def watch():
    made = Watch(Clock())
    yield made
    made.close()


def test_a_box_within_its_limit_hears_nothing(watch):
    box = FakeBox(used=LIMIT)
    watch.add(box, LIMIT)
    watch.look()
    assert box.told == []


def test_a_box_over_its_limit_is_told_once(watch):
    box, other = FakeBox(used=LIMIT + 1), FakeBox(used=1)
    watch.add(box, LIMIT)
    watch.add(other, LIMIT)
    watch.look()
    watch.look()
    assert box.told == [LIMIT + 1]
    assert other.told == []


def test_a_box_that_vanished_does_not_hide_the_next(watch):
    gone, missing, box = FakeBox(), FakeBox(), FakeBox(used=LIMIT + 1)
    gone.fault, missing.fault = RuntimeFault("the box is gone"), FileNotFoundError()
    for one in (gone, missing, box):
        watch.add(one, LIMIT)
    watch.look()
    assert box.told == [LIMIT + 1]


def test_a_box_that_was_destroyed_while_it_was_measured_is_left_alone(watch):
    class Leaving(FakeBox):
        def disk_bytes(self) -> int:
            watch.remove(self)
            return LIMIT + 1

    box = Leaving()
    watch.add(box, LIMIT)
    watch.look()
    assert box.told == []


def test_quick_looks_are_a_second_apart(watch):
    watch.add(FakeBox(), LIMIT)
    assert watch.look() == 1.0


def test_slow_looks_take_a_twentieth_of_the_time():
    clock = Clock()
    watch = Watch(clock)
    watch.add(FakeBox(clock, seconds=0.5), LIMIT)
    watch.add(FakeBox(clock, seconds=1.5), LIMIT)
    assert watch.look() == pytest.approx(38.0)
    watch.close()


def runs(watch: Watch) -> bool:
    return watch.running


def test_there_is_a_thread_only_while_there_is_a_box():
    watch = Watch()
    assert not runs(watch)
    box = FakeBox()
    for _ in range(2):
        watch.add(box, LIMIT)
        assert runs(watch)
        watch.remove(box)
        watch.remove(box)
        assert eventually(lambda: not runs(watch))


def test_closing_ends_the_thread():
    watch = Watch()
    watch.add(FakeBox(), LIMIT)
    watch.close()
    watch.close()
    assert not runs(watch)
    assert not [t for t in threading.enumerate() if t.name == "disk watch"]


def test_it_looks_by_itself():
    watch, box = Watch(), FakeBox(used=LIMIT + 1)
    watch.add(box, LIMIT)
    assert eventually(lambda: box.told == [LIMIT + 1])
    watch.close()


def test_a_disk_that_fills_up_is_reason_to_look_at_once():
    clock, left = Clock(), [1 << 40]
    watch, box = Watch(clock, free=lambda: left[0]), FakeBox(clock, seconds=10)
    watch.add(box, LIMIT)
    assert eventually(lambda: clock.now > 0)
    box.used, left[0] = LIMIT + 1, 1 << 39
    assert eventually(lambda: box.told == [LIMIT + 1])
    watch.close()


def test_a_box_that_comes_back_while_it_is_told_is_watched_again(watch):
    class Reset(FakeBox):
        def over_disk(self, used: int) -> None:
            super().over_disk(used)
            watch.add(self, LIMIT)

    box = Reset(used=LIMIT + 1)
    watch.add(box, LIMIT)
    watch.look()
    watch.look()
    assert box.told == [LIMIT + 1, LIMIT + 1]
