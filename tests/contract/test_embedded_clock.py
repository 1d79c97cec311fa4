"""The clock of an embedded box, where that differs from other runtimes'."""

import io
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import RuntimeFault
from sandbox.model.task import Limits
from sandbox.runtime.base import Box
from sandbox.runtime.embedded import guise
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.embedded.still import UPTIME_SECONDS
from sandbox.runtime.spec import BoxSpec, Image, Stillness
from sandbox.runtime.store import Store
from tests.support.absent import absent

pytestmark = pytest.mark.box
AT = 1_715_774_400
NOW = "import time; print(time.time_ns())"


@pytest.fixture
def runtime(store: Store) -> Iterator[EmbeddedRuntime]:
    made = EmbeddedRuntime(store)
    try:
        if why := made.capabilities().still:
            absent(why)
    except RuntimeFault as e:
        absent(e)
    yield made
    made.close()


@pytest.fixture
def spec(image: Image) -> BoxSpec:
    limits = Limits(memory_mib=256, pids=32, cpus=1.0, disk_mib=32)
    return BoxSpec(image=image, limits=limits, still=Stillness(at_ns=AT * 10**9))


@pytest.fixture
def box(runtime: EmbeddedRuntime, spec: BoxSpec) -> Iterator[Box]:
    with runtime.create(spec) as made:
        yield made


def said(box: Box, *argv: str, user: str | None = None, trusted: bool = False) -> str:
    done = box.exec(argv, seconds=60, user=user, trusted=trusted)
    assert done.exit_code == 0, done
    return done.stdout.decode()


def since_start(box: Box, *, trusted: bool = False) -> float:
    return int(said(box, "python3", "-c", NOW, trusted=trusted)) / 1e9 - AT


def test_a_box_that_waited_to_be_taken_has_not_used_its_time(runtime, spec):
    runtime.warm(spec, 1)
    assert runtime._pool.full(spec, 60)
    time.sleep(0.5)
    began = time.monotonic()
    with runtime.create(spec) as box:
        assert 0 <= since_start(box) <= time.monotonic() - began
        assert 0 <= since_start(box, trusted=True) <= time.monotonic() - began
        box.reset()
        assert 0 <= since_start(box) <= time.monotonic() - began


def test_a_box_made_before_there_was_any_clock_is_not_taken_for_one_with(runtime, spec):
    with runtime.create(replace(spec, still=None)) as plain:
        assert since_start(plain) > 10**6
    for _ in range(4):
        with runtime.create(spec) as box:
            assert 0 <= since_start(box) < 60


def test_users_that_are_the_host_s_have_the_clock_as_well(runtime, spec):
    """Kernels before 5.19: there are no others."""
    crew = runtime._ready()
    crew.mapped, crew._proved = False, True
    with runtime.create(spec) as box:
        for user in ("0:0", "1234:2345"):
            for trusted in (False, True):
                shown = said(box, "bash", "-c", "echo $EPOCHSECONDS", user=user, trusted=trusted)
                assert 0 <= int(shown) - AT < 60
        assert "00000000000404fb" in said(box, "grep", "CapEff", "/proc/1/status")


def test_nothing_that_was_staged_for_the_box_has_the_machine_s_date(box):
    places = "/ /dev /dev/mqueue /dev/shm /dev/pts /dev/fd /etc/hosts /etc/resolv.conf /proc /sys"
    for name in (*places.split(), "/proc/stat", "/proc/cmdline", "/proc/self", "/proc/1"):
        for date in said(box, "stat", "-c", "%Y %Z", name).split():
            assert 0 <= int(date) - AT < 60, name


def test_the_machine_is_nobody_s_in_particular(box):
    assert said(box, "cat", "/proc/sys/kernel/random/boot_id").strip() == guise.BOOT_ID
    up = float(said(box, "cat", "/proc/uptime").split()[0])
    assert UPTIME_SECONDS <= up < UPTIME_SECONDS + 60
    assert f"btime {AT - UPTIME_SECONDS}\n" in said(box, "cat", "/proc/stat")
    assert 0 <= float(said(box, "python3", "-c", "import time; print(time.monotonic())")) - up < 60


def test_what_the_box_sees_of_the_machine_is_not_to_be_written(box):
    for name in ("/proc/stat", "/proc/cpuinfo", "/.stillroom/still"):
        assert box.exec(["bash", "-c", f": >> {name}"], seconds=60).exit_code != 0
    assert box.changes() == []


def test_a_program_in_the_place_of_ours_has_no_part_in_what_is_trusted(box):
    said(box, "bash", "-c", "mv /.stillroom /x; mkdir /.stillroom; cp /bin/false /.stillroom/still")
    assert 0 <= since_start(box, trusted=True) < 60


def test_a_program_that_is_not_there_is_a_fault_when_it_is_trusted_too(box):
    with pytest.raises(RuntimeFault, match="no-such"):
        box.exec(["no-such"], seconds=60, trusted=True)


def test_a_clock_that_steps_goes_on_from_where_a_snapshot_was_taken(runtime, spec, tmp_path):
    spec = replace(spec, still=Stillness(at_ns=AT * 10**9, mode="step"))
    with runtime.create(spec) as box:
        before = int(said(box, "python3", "-c", NOW))
        taken = box.snapshot(tmp_path / "tar")
        assert taken.clock_ns
        assert before < taken.clock_ns < int(said(box, "python3", "-c", NOW))
    with runtime.create(replace(spec, snapshot=taken)) as box:
        assert int(said(box, "python3", "-c", NOW)) >= taken.clock_ns


def test_the_snapshot_of_a_stopped_box_has_the_time_at_which_it_was_stopped(box, tmp_path):
    said(box, "true")
    box.stop()
    one = box.snapshot(tmp_path / "one")
    assert box.snapshot(tmp_path / "two").clock_ns == one.clock_ns


def test_files_that_are_got_have_the_box_s_dates(box):
    said(box, "touch", "/tmp/new")
    with tarfile.open(fileobj=io.BytesIO(b"".join(box.get("/tmp/new")))) as tar:
        assert 0 <= tar.getmember("new").mtime - AT < 60


def test_nothing_of_it_is_left_when_the_runtime_is_closed(store, spec):
    made = EmbeddedRuntime(store)
    with made.create(spec) as box:
        first = box._body._blank.pid
    made.close()
    assert not Path(f"/proc/{first}").exists()
    shown = subprocess.run(
        [sys.executable, "-c", NOW], capture_output=True, text=True, check=True
    ).stdout
    assert int(shown) / 1e9 - AT > 10**6
