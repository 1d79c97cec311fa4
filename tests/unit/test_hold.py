"""A box's clock is held of every program, or of most and then told; never left alone silently."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import RuntimeFault
from sandbox.model.task import ClockSpec, RandomSpec
from sandbox.runtime.fake import NO_IMAGE, FakeRuntime
from sandbox.runtime.freeze.hold import held, stillness
from sandbox.runtime.freeze.preload import LIBRARY
from sandbox.runtime.spec import BoxSpec
from tests.support.homes import with_library

AT = "2024-05-15T12:00:00Z"
SECONDS = 1_715_774_400
CLOCK = ClockSpec(at=AT)
SPEC = BoxSpec(image=NO_IMAGE, env={"A": "1"}, still=stillness(CLOCK))
WHY = "the kernel is too old"


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_what_a_task_says_of_clock_and_chance_is_what_its_box_holds():
    clock = ClockSpec(at=AT, mode="step", step_seconds=0.25)
    still = stillness(clock, RandomSpec(aslr=False, seed=7))
    assert (still.at_ns, still.mode, still.step_ns) == (SECONDS * 10**9, "step", 250_000_000)
    assert (still.aslr, still.seed) == (False, 7)
    assert (stillness(clock).aslr, stillness(clock).seed) == (True, None)


def test_where_every_program_s_clock_can_be_held_the_box_does_it():
    with held(SPEC, FakeRuntime(), scratch, strict=True) as hold:
        assert hold.spec == SPEC
    assert hold.clock is not None
    assert (hold.clock.at, hold.clock.coverage, hold.clock.warning) == (AT, "full", "")


def test_a_box_that_shall_not_be_held_is_left_alone():
    spec = replace(SPEC, still=None)
    with held(spec, FakeRuntime(still=WHY), scratch, strict=True) as hold:
        assert (hold.spec, hold.clock) == (spec, None)


def test_elsewhere_the_library_is_in_the_environment_and_in_files_nobody_can_change(tmp_path: Path):
    spec = replace(SPEC, image=with_library(tmp_path))
    with held(
        spec, FakeRuntime(still=WHY), scratch, strict=False, now=lambda: SECONDS + 100.25
    ) as hold:
        assert hold.spec.still is None
        assert hold.spec.env["A"] == "1"
        assert hold.spec.env["LD_PRELOAD"] == LIBRARY
        assert hold.spec.env["FAKETIME"] == "-100.250000s"
        files = {m.target: m.source.read_text() for m in hold.spec.mounts}
        assert files == {
            "/etc/ld.so.preload": LIBRARY + "\n",
            "/etc/faketimerc": "-100.250000s\n",
        }
        sources = [m.source for m in hold.spec.mounts]
    assert not any(source.exists() for source in sources)
    assert hold.clock is not None
    assert hold.clock.coverage == "partial"
    assert WHY in hold.clock.warning


@pytest.mark.parametrize(
    ("still", "strict", "library", "says"),
    [
        (stillness(CLOCK), True, True, "clock.strict"),
        (stillness(CLOCK), False, False, "the image none has no /usr/lib/stillroom"),
        (stillness(ClockSpec(at=AT, mode="fixed")), False, True, "clock.mode: fixed"),
        (stillness(ClockSpec(at=AT, mode="step")), False, True, "clock.mode: step"),
        (stillness(CLOCK, RandomSpec(seed=1)), False, True, "under `random`"),
        (stillness(CLOCK, RandomSpec(aslr=False)), False, True, "under `random`"),
    ],
)
def test_what_nobody_can_do_here_is_a_fault_and_no_box(
    tmp_path: Path, still, strict, library, says
):
    image = with_library(tmp_path) if library else NO_IMAGE
    spec = replace(SPEC, image=image, still=still)
    with (
        pytest.raises(RuntimeFault, match=says) as caught,
        held(spec, FakeRuntime(still=WHY), scratch, strict=strict),
    ):
        pytest.fail("nothing should have been given")
    assert WHY in str(caught.value)
    assert not caught.value.retry
    assert "freeze.md" in caught.value.hint


def test_a_runtime_that_is_asked_for_more_than_it_can_refuses():
    with pytest.raises(RuntimeFault, match=WHY):
        FakeRuntime(still=WHY).create(SPEC)
