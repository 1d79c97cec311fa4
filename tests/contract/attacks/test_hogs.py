"""A box that takes all it can get of something: bounded, and no harm to anything else."""

import time
from contextlib import suppress
from typing import Any

from sandbox.audit.conformance import Bench
from sandbox.audit.conformance.bench import run, said
from sandbox.audit.conformance.tars import Entry, make_tar
from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box, ExecResult
from tests.contract.attacks.table import INSIDE, attack

ATTACKS = (
    "fork without end",
    "take all memory",
    "fill shared memory",
    "keep memory in System V segments",
    "make message queues without end",
    "fill the disk",
    "fill the disk with empty files",
    "open every terminal",
    "open every file",
)


def hog(box: Box, what: str, seconds: float = 60) -> ExecResult | None:
    """None when the box was stopped for it meanwhile."""
    program = (INSIDE / "hogs.py").read_bytes()
    box.put(make_tar([Entry(name="hogs.py", content=program)]), "/tmp")
    with suppress(RuntimeFault):
        return run(box, "python3", "/tmp/hogs.py", what, seconds=seconds)
    return None


def taken(bench: Bench, what: str, **limits: Any) -> int:
    """How much it got; the box answers after it."""
    with bench.limited(**{"memory_mib": 256, "pids": 64, **limits}) as box:
        result = hog(box, what)
        assert said(box, "echo", "usable") == "usable\n"
    assert result is not None
    return int(result.stdout or b"0")


@attack("fork without end")
def test_forking_ends_at_the_limit_and_with_the_box(bench: Bench):
    with bench.limited(memory_mib=256, pids=64) as box:
        hog(box, "forks", 10)
        with bench.box() as other:
            assert said(other, "echo", "fine") == "fine\n"
        began = time.monotonic()
    assert time.monotonic() - began < 20


@attack("take all memory")
def test_who_takes_all_memory_is_killed(bench: Bench):
    with bench.limited(memory_mib=128) as box:
        result = hog(box, "memory")
        assert result is not None
        assert result.exit_code == 137
        assert "memory" in result.limit
        assert said(box, "echo", "usable") == "usable\n"


@attack("fill shared memory")
def test_shared_memory_has_a_size(bench: Bench):
    assert taken(bench, "shared_files") <= 64


@attack("keep memory in System V segments")
def test_segments_are_the_box_s_memory(bench: Bench):
    """They belong to no process, so killing one frees nothing: the limit holds all the same."""
    with bench.limited(memory_mib=128) as box:
        result = hog(box, "segments")
        assert result is None or int(result.stdout or b"0") <= 128
        assert not box.lost()


@attack("make message queues without end")
def test_message_queues_have_a_limit(bench: Bench):
    assert taken(bench, "queues") < 1000


@attack("fill the disk")
def test_the_disk_has_a_limit(bench: Bench):
    with bench.limited(disk_mib=64) as box:
        assert "disk" in words_of(box, hog(box, "disk", 40))


@attack("fill the disk with empty files")
def test_empty_files_count(bench: Bench):
    with bench.limited(disk_mib=16) as box:
        assert "disk" in words_of(box, hog(box, "inodes", 40))


def words_of(box: Box, result: ExecResult | None) -> str:
    """Which limit was reached; what is measured is noticed a little later."""
    words = result.limit if result else ""
    if not words and not box.lost():
        with suppress(RuntimeFault):
            words = run(box, "sleep", "30", seconds=20).limit
    return words + box.reached()


@attack("open every terminal")
def test_terminals_have_a_limit(bench: Bench):
    assert taken(bench, "terminals", terminals=256) <= 256


@attack("open every file")
def test_open_files_have_a_limit(bench: Bench):
    assert taken(bench, "files", open_files=1000) <= 1000
