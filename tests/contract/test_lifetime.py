"""How boxes begin and end, alone and in numbers, on every runtime."""

import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box, BoxSpec, Runtime
from sandbox.runtime.store import Store
from tests.contract.conftest import host_processes, open_runtime
from tests.support.waiting import eventually

CONTROLLER = Path(__file__).parent.parent / "support" / "controller.py"


def test_destroying_twice_is_harmless(runtime: Runtime, spec: BoxSpec):
    box = runtime.create(spec)
    box.destroy()
    box.destroy()
    box.stop()


def test_a_destroyed_box_runs_nothing(runtime: Runtime, spec: BoxSpec):
    box = runtime.create(spec)
    box.destroy()
    with pytest.raises(RuntimeFault):
        box.exec(["true"], seconds=30)
    with pytest.raises(RuntimeFault):
        box.open_pty(["true"])


def test_boxes_have_ids_of_their_own(runtime: Runtime, spec: BoxSpec):
    with runtime.create(spec) as one, runtime.create(spec) as two:
        assert one.id != two.id


def test_a_box_is_destroyed_when_its_block_fails(runtime: Runtime, spec: BoxSpec):
    with pytest.raises(ZeroDivisionError), runtime.create(spec) as box:
        _ = 1 / 0
    with pytest.raises(RuntimeFault):
        box.exec(["true"], seconds=30)


def test_twenty_boxes_at_once_from_eight_threads(runtime: Runtime, spec: BoxSpec):
    def live(number: int) -> bytes:
        with runtime.create(spec) as box:
            assert box.exec(["sh", "-c", f"echo {number} > /tmp/n"], seconds=120).exit_code == 0
            return box.exec(["cat", "/tmp/n"], seconds=120).stdout

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(live, range(20))) == [f"{n}\n".encode() for n in range(20)]


def test_twenty_boxes_live_at_one_time(runtime: Runtime, spec: BoxSpec):
    with ThreadPoolExecutor(8) as pool:
        boxes = list(pool.map(lambda _: runtime.create(spec), range(20)))

        def ask(box: Box) -> int | None:
            return box.exec(["true"], seconds=120).exit_code

        try:
            assert list(pool.map(ask, boxes)) == [0] * 20
        finally:
            list(pool.map(lambda box: box.destroy(), boxes))


def test_closing_a_runtime_destroys_its_boxes(runtime: Runtime, spec: BoxSpec, store: Store):
    marker = f"4242.{time.time_ns()}"
    other = open_runtime(runtime.name, store)
    box = other.create(spec)
    script = f"sleep {marker} > /dev/null 2>&1 &"
    assert box.exec(["sh", "-c", script], seconds=30).exit_code == 0
    assert eventually(lambda: len(host_processes(marker)) == 1)
    other.close()
    other.close()
    assert eventually(lambda: not host_processes(marker))


def test_reaping_removes_the_boxes_of_the_dead_and_leaves_those_of_the_living(
    runtime: Runtime, spec: BoxSpec, box: Box, store: Store
):
    dead, alive = f"4242.1{time.time_ns()}", f"4242.2{time.time_ns()}"
    with controller(runtime, spec, store, dead) as one, controller(runtime, spec, store, alive):
        one.send_signal(signal.SIGKILL)
        one.wait()
        runtime.reap()
        assert eventually(lambda: not host_processes(dead))
        assert len(host_processes(alive)) == 1
        assert box.exec(["echo", "alive"], seconds=30).stdout == b"alive\n"
        assert runtime.reap() == []


def test_a_box_is_lost_when_it_is_gone_but_not_when_it_was_stopped(box: Box):
    assert not box.lost()
    box.stop()
    assert not box.lost()
    box.destroy()
    assert box.lost()


def test_a_box_does_not_have_the_limits_of_whoever_made_it(runtime: Runtime, spec: BoxSpec):
    if runtime.name == "docker":
        pytest.skip("the engine makes its boxes, with limits of its own")
    old = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, old[1]))
    fresh = open_runtime(runtime.name, Store(runtime._store.root))  # type: ignore[attr-defined]
    try:
        with fresh.create(spec) as box:
            assert box.exec(["sh", "-c", "ulimit -s"], seconds=30).stdout == b"8192\n"
    finally:
        fresh.close()
        resource.setrlimit(resource.RLIMIT_STACK, old)


def test_a_store_does_not_reap_the_boxes_of_another(runtime: Runtime, box: Box, tmp_path: Path):
    other = open_runtime(runtime.name, Store(tmp_path))
    try:
        other.reap()
    finally:
        other.close()
    assert box.exec(["echo", "alive"], seconds=30).stdout == b"alive\n"


@contextmanager
def controller(
    runtime: Runtime, spec: BoxSpec, store: Store, marker: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has a box in which `sleep <marker>` runs."""
    command = [sys.executable, str(CONTROLLER), runtime.name, str(store.root), marker]
    root = CONTROLLER.parent.parent.parent
    with subprocess.Popen(command, stdin=-1, stdout=-1, cwd=root, env={"PYTHONPATH": "."}) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        kind = pickle.dumps(spec)
        other.stdin.write(b"%d\n%s" % (len(kind), kind))
        other.stdin.flush()
        try:
            assert other.stdout.readline() == b"ready\n"
            assert eventually(lambda: len(host_processes(marker)) == 1)
            yield other
        finally:
            other.communicate()
