"""Ready boxes: as many as are wanted, never more than allowed, each used once."""

import itertools
import threading
import time
from dataclasses import replace

import pytest

from sandbox.errors import RuntimeFault
from sandbox.runtime.fake import NO_IMAGE
from sandbox.runtime.pool import Pool
from sandbox.runtime.spec import BoxSpec

SPEC = BoxSpec(image=NO_IMAGE)
OTHER = replace(SPEC, hostname="other")
SECONDS = 30


class Workshop:
    """Makes numbered boxes, and knows which are still there."""

    def __init__(self, *, weight: int = 1) -> None:
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self.weight = weight
        self.alive: set[int] = set()
        self.broken = False
        self.faults: list[RuntimeFault] = []
        """Raised one after the other, before anything is made."""

    def make(self, spec: BoxSpec) -> int:
        if self.broken:
            raise RuntimeFault("no more")
        if self.faults:
            raise self.faults.pop()
        with self._lock:
            number = next(self._numbers)
            self.alive.add(number)
            return number

    def drop(self, number: int) -> None:
        with self._lock:
            self.alive.remove(number)

    def pool(self, **bounds: int) -> Pool[int]:
        return Pool(self.make, self.drop, lambda _: self.weight, **bounds)


@pytest.fixture
def shop():
    return Workshop()


def test_nothing_is_ready_unless_it_was_asked_for(shop: Workshop):
    assert shop.pool().take(SPEC) is None
    assert not shop.alive


def test_as_many_as_wanted_are_made_and_each_is_given_once(shop: Workshop):
    pool = shop.pool()
    pool.keep(SPEC, 3)
    assert pool.full(SPEC, SECONDS)
    taken = []
    for _ in range(6):
        taken.append(pool.take(SPEC))
        assert pool.full(SPEC, SECONDS)
    assert taken == [1, 2, 3, 4, 5, 6]
    pool.close()
    assert shop.alive == set(taken)


def test_an_equal_spec_is_the_same_one_and_another_is_not(shop: Workshop):
    pool = shop.pool()
    pool.keep(SPEC, 1)
    assert pool.full(SPEC, SECONDS)
    assert pool.take(OTHER) is None
    assert pool.take(BoxSpec(image=NO_IMAGE)) == 1
    pool.close()


def test_wanting_none_drops_those_that_are_ready(shop: Workshop):
    pool = shop.pool()
    pool.keep(SPEC, 2)
    assert pool.full(SPEC, SECONDS)
    pool.keep(SPEC, 0)
    assert not shop.alive
    assert pool.take(SPEC) is None
    pool.close()


def test_there_are_never_more_than_allowed_and_the_oldest_kind_gives_way(shop: Workshop):
    pool = shop.pool(most_boxes=3)
    pool.keep(SPEC, 3)
    assert pool.full(SPEC, SECONDS)
    pool.keep(OTHER, 2)
    assert pool.full(OTHER, SECONDS)
    assert len(shop.alive) == 3
    pool.keep(OTHER, 99)
    assert pool.full(OTHER, SECONDS)
    assert len(shop.alive) == 3
    pool.close()
    assert not shop.alive


def test_memory_is_bounded_too():
    shop = Workshop(weight=100)
    pool = shop.pool(most_bytes=250)
    pool.keep(SPEC, 10)
    assert pool.full(SPEC, SECONDS)
    assert len(shop.alive) == 3  # the one that was too many is kept, and no further one is made
    pool.close()
    assert not shop.alive


def test_one_that_cannot_be_made_is_not_tried_for_ever(shop: Workshop):
    shop.broken = True
    pool = shop.pool()
    pool.keep(SPEC, 2)
    assert pool.full(SPEC, SECONDS)
    assert pool.take(SPEC) is None
    shop.broken = False
    pool.keep(SPEC, 1)
    assert pool.full(SPEC, SECONDS)
    assert pool.take(SPEC) == 1
    pool.close()


@pytest.mark.parametrize(("retry", "wanted"), [(True, 1), (False, None)])
def test_a_fault_that_may_pass_is_tried_once_more(
    shop: Workshop, *, retry: bool, wanted: int | None
):
    shop.faults = [RuntimeFault("just now", retry=retry)]
    pool = shop.pool()
    pool.keep(SPEC, 2)
    assert pool.full(SPEC, SECONDS)
    assert pool.take(SPEC) == wanted
    pool.close()


def test_closing_drops_everything_and_nothing_is_made_afterwards(shop: Workshop):
    pool = shop.pool()
    pool.keep(SPEC, 2)
    pool.close()
    pool.close()
    assert not shop.alive
    pool.keep(SPEC, 2)
    assert pool.take(SPEC) is None
    assert not shop.alive


def test_changing_one_s_mind_does_not_end_the_filling(shop: Workshop):
    pool = shop.pool()
    for _ in range(5):
        pool.keep(SPEC, 1)
        time.sleep(0.005)
        pool.keep(SPEC, 0)
        time.sleep(0.05)
    pool.keep(SPEC, 1)
    assert pool.full(SPEC, SECONDS)
    pool.close()
    assert not shop.alive


def test_whatever_goes_wrong_with_one_others_are_made(shop: Workshop):
    def fail(_: BoxSpec) -> int:
        raise OSError

    pool = Pool(
        lambda spec: fail(spec) if spec == OTHER else shop.make(spec), shop.drop, lambda _: 1
    )
    pool.keep(OTHER, 1)
    assert pool.full(OTHER, SECONDS)
    pool.keep(SPEC, 1)
    assert pool.full(SPEC, SECONDS)
    pool.close()
