"""A limit that is reached is told in words to whoever works in the box."""

from dataclasses import replace

import pytest

from sandbox.model.step import Run, Status
from sandbox.runtime.base import Runtime
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.terminal import Terminal
from tests.contract.conftest import LIMITS


@pytest.fixture
def small(spec: BoxSpec) -> BoxSpec:
    return replace(spec, limits=replace(LIMITS, disk_mib=16, pids=24))


def seen(runtime: Runtime, spec: BoxSpec, *commands: str):
    with (
        runtime.create(spec) as box,
        Terminal(box, cwd="/root", command_seconds=60, output_bytes=65536) as terminal,
    ):
        return [terminal.do(Run(command)) for command in commands]


def test_memory(runtime: Runtime, small: BoxSpec):
    hog = "python3 -c 'bytearray(500 << 20)'"
    hit, after = seen(runtime, small, hog, "true")
    assert "the memory limit of 128 MiB was reached" in hit.limit
    assert (after.exit_code, after.limit) == (0, "")


def test_processes(runtime: Runtime, small: BoxSpec):
    bomb = "for i in $(seq 60); do sleep 1 & done; wait"
    hit, after = seen(runtime, small, bomb + "; false", "sleep 2; true")
    assert "the limit of 24 processes was reached" in hit.limit
    assert after.limit == ""


def test_processes_of_a_program_whose_time_was_up_and_of_a_trusted_one(
    runtime: Runtime, small: BoxSpec
):
    words = "the limit of 24 processes was reached"
    script = "for i in $(seq 60); do sleep 100 & done; sleep 100"
    with runtime.create(small) as box:
        assert words in box.exec(["bash", "-c", script], seconds=3, trusted=True).limit
        box.reset()
        result = box.exec(["bash", "-c", script], seconds=3)
        assert (result.exit_code, words in result.limit) == (None, True)


def test_disk_and_the_box_is_over(runtime: Runtime, small: BoxSpec):
    (hit,) = seen(runtime, small, "dd if=/dev/zero of=/root/big bs=1M count=64; sleep 50")
    assert hit.status is Status.STOPPED
    assert hit.limit == "the disk limit of 16 MiB was reached: the box was stopped"


def test_a_command_that_merely_fails_tells_of_no_limit(runtime: Runtime, small: BoxSpec):
    (failed,) = seen(runtime, small, "false")
    assert (failed.exit_code, failed.limit) == (1, "")
