"""What boxes of the docker runtime do beyond running programs: changes, snapshots, limits."""

import contextlib
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.audit.conformance.bench import host_processes
from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box, Change
from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.spec import BoxSpec, Mount, Seed, Snapshot
from sandbox.runtime.store import Store, sha256_file
from tests.contract.conftest import LIMITS
from tests.support.tars import Entry, make_tar, unpacked
from tests.support.tinyimage import with_layer
from tests.support.waiting import eventually

pytestmark = [pytest.mark.box, pytest.mark.docker]

HOLD = "x = bytearray(60 << 20); print('held', flush=True); import time; time.sleep(60)"


@pytest.fixture(scope="module")
def runtime(docker_runtime: DockerRuntime) -> DockerRuntime:
    return docker_runtime


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Seed:
    archive = make_tar(
        [
            Entry(name="repo", folder=True, mode=0o755),
            *(Entry(name=f"repo/{name}", content=b"seeded\n") for name in ("kept", "gone", "new")),
        ]
    )
    folder = tmp_path_factory.mktemp("seed")
    tar = folder.with_suffix(".tar")
    tar.write_bytes(archive)
    return Seed(tar=tar, folder=unpacked(archive, folder))


def sh(box: Box, script: str, *, seconds: float = 30) -> str:
    result = box.exec(["sh", "-c", script], seconds=seconds)
    assert result.exit_code == 0, result
    return result.stdout.decode()


CHANGE = "rm /repo/gone; echo changed > /repo/new; mkdir -p /repo/a/b; echo 1 > /repo/a/b/c; chmod 600 /etc/group"
CHANGED = [
    Change("/etc/group", "modified"),
    Change("/repo/a", "added"),
    Change("/repo/a/b", "added"),
    Change("/repo/a/b/c", "added"),
    Change("/repo/gone", "deleted"),
    Change("/repo/new", "modified"),
]
LOOK = "cd /repo && ls -R . && cat new a/b/c && stat -c '%a' /etc/group"


def test_a_new_box_has_no_changes(runtime: DockerRuntime, spec: BoxSpec, seed: Seed):
    with runtime.create(replace(spec, seeds=(seed,), workdir="/made/for it")) as box:
        assert box.changes() == []
        assert box.exec(["true"], seconds=30).exit_code == 0
        assert box.changes() == []


def test_changes_are_told_from_the_image_and_the_seeds(
    runtime: DockerRuntime, spec: BoxSpec, seed: Seed
):
    with runtime.create(replace(spec, seeds=(seed,))) as box:
        sh(box, CHANGE)
        assert box.changes() == CHANGED
        box.stop()
        assert box.changes() == CHANGED


def test_a_snapshot_is_the_start_of_another_box(
    runtime: DockerRuntime, spec: BoxSpec, seed: Seed, tmp_path: Path
):
    seeded = replace(spec, seeds=(seed,))
    with runtime.create(seeded) as box:
        sh(box, CHANGE)
        expected = sh(box, LOOK)
        snapshot = box.snapshot(tmp_path / "changes.tar")
        assert snapshot == box.snapshot(tmp_path / "changes.tar")
    with runtime.create(replace(seeded, snapshot=snapshot)) as box:
        assert sh(box, LOOK) == expected
        assert box.changes() == CHANGED
        sh(box, "rm -r /repo/a")
        box.reset()
        assert sh(box, LOOK) == expected


def test_a_snapshot_that_does_not_fit_is_refused(
    runtime: DockerRuntime, spec: BoxSpec, seed: Seed, tmp_path: Path
):
    with runtime.create(spec) as box:
        snapshot = box.snapshot(tmp_path / "changes.tar")
    with pytest.raises(RuntimeFault) as other:
        runtime.create(replace(spec, seeds=(seed,), snapshot=snapshot))
    assert not other.value.retry
    with snapshot.tar.open("ab") as f:
        f.write(b"more")
    with pytest.raises(RuntimeFault, match="sha256") as altered:
        runtime.create(replace(spec, snapshot=snapshot))
    assert not altered.value.retry


def test_a_snapshot_may_hold_files_that_the_engine_has_mounted(
    runtime: DockerRuntime, spec: BoxSpec, tmp_path: Path
):
    tar = tmp_path / "changes.tar"
    names = ("etc/hosts", "etc/other", "etc/.wh.resolv.conf")
    tar.write_bytes(make_tar([Entry(name=name, content=b"of the snapshot\n") for name in names]))
    snapshot = Snapshot(image=spec.image.digest, seeds=(), tar=tar, sha256=sha256_file(tar))
    with runtime.create(replace(spec, snapshot=snapshot)) as box:
        assert sh(box, "cat /etc/hosts /etc/other") == "of the snapshot\n" * 2


def test_a_fork_has_the_files_and_not_the_processes(
    runtime: DockerRuntime, spec: BoxSpec, seed: Seed, store: Store
):
    marker = f"4242.{time.time_ns()}"
    before = set((store.root / "tmp").iterdir())
    with runtime.create(replace(spec, seeds=(seed,))) as box:
        sh(box, f"{CHANGE}; sleep {marker} > /dev/null 2>&1 &")
        assert eventually(lambda: box.changes() == CHANGED)
        with box.fork() as other:
            assert other.id != box.id
            assert other.changes() == CHANGED
            assert len(host_processes(marker)) == 1
            sh(other, "rm -r /repo")
            other.reset()
            assert other.changes() == CHANGED
        assert box.changes() == CHANGED
    assert set((store.root / "tmp").iterdir()) == before


def test_a_reset_box_is_as_new_and_keeps_its_id(runtime: DockerRuntime, spec: BoxSpec):
    marker = f"4242.{time.time_ns()}"
    with runtime.create(spec) as box:
        known = box.id
        sh(box, f"echo x > /root/file; sleep {marker} > /dev/null 2>&1 &")
        box.reset()
        assert not host_processes(marker)
        assert box.id == known
        assert box.changes() == []
        box.stop()
        box.reset()
        assert sh(box, "ls /root") == ""


def test_nothing_runs_in_a_frozen_box_until_it_is_thawed(runtime: DockerRuntime, spec: BoxSpec):
    count = "while :; do echo x >> /tmp/count; sleep 0.02; done > /dev/null 2>&1 &"
    with runtime.create(spec) as box, ThreadPoolExecutor(1) as pool:
        sh(box, count)
        box.freeze()
        box.freeze()
        asked = pool.submit(box.exec, ["echo", "thawed"], seconds=60)
        assert not eventually(asked.done, 0.5)
        box.thaw()
        box.thaw()
        assert asked.result().stdout == b"thawed\n"
        box.freeze()
        assert box.exec(["true"], seconds=0.5).timed_out


def test_killing_all_leaves_the_box(runtime: DockerRuntime, spec: BoxSpec):
    marker = f"4242.{time.time_ns()}"
    with runtime.create(spec) as box:
        pty = box.open_pty(["sleep", marker])
        sh(box, f"setsid sleep {marker} > /dev/null 2>&1 &")
        assert eventually(lambda: len(host_processes(marker)) == 2)
        box.kill_all()
        assert eventually(lambda: not host_processes(marker))
        assert pty.wait(10) == 137
        pty.close()
        box.kill_all()
        assert sh(box, "echo usable") == "usable\n"


def test_what_a_box_uses_is_told(runtime: DockerRuntime, spec: BoxSpec):
    with runtime.create(spec) as box:
        idle = box.stats()
        assert idle.processes == 1
        assert 0 < idle.memory_bytes < 16 << 20
        assert idle.terminals == idle.oom_kills == idle.forks_refused == 0
        assert idle.disk_bytes < 64 << 10
        pty = box.open_pty(["python3", "-c", HOLD])
        assert b"held" in os.read(pty.fileno(), 100)
        sh(box, "head -c 1000000 /dev/zero > /root/zeros")
        busy = box.stats()
        assert busy.processes == 2
        assert busy.terminals == 1
        assert busy.memory_bytes > 60 << 20
        assert busy.disk_bytes >= 1_000_000
        assert busy.cpu_seconds > idle.cpu_seconds
        pty.close()
        box.stop()
        assert box.stats().processes == 0


def test_the_memory_limit_is_told(runtime: DockerRuntime, spec: BoxSpec):
    script = f"head -c {3 * LIMITS.memory_mib}M /dev/zero | tail -n 1 > /dev/null"
    with runtime.create(spec) as box:
        assert box.reached() == ""
        result = box.exec(["sh", "-c", script], seconds=60)
        expected = "the memory limit of 128 MiB was reached: 1 process was killed"
        assert (result.exit_code, result.limit) == (137, expected)
        assert box.reached() == expected
        assert box.reached() == ""
        assert box.exec(["true"], seconds=30).limit == ""


def test_the_process_limit_is_told(runtime: DockerRuntime, spec: BoxSpec):
    script = "for i in $(seq 80); do sleep 5 & done; true"
    with runtime.create(spec) as box:
        result = box.exec(["bash", "-c", script], seconds=60)
        assert "the limit of 64 processes was reached" in result.limit
        box.kill_all()
        assert "the limit of 64 processes was reached" in box.reached()


def test_a_box_whose_first_process_ran_out_of_memory_is_not_lost(
    runtime: DockerRuntime, spec: BoxSpec
):
    tiny = replace(spec, limits=replace(LIMITS, memory_mib=32), tmpfs={"/fill": 64})
    with runtime.create(tiny) as box:
        result = box.exec(["sh", "-c", "cat /dev/zero > /fill/file; exit 3"], seconds=60)
        assert result.exit_code in {3, 137, 1}
        assert "the memory limit of 32 MiB was reached" in result.limit
        assert not box.lost()


def test_a_box_over_its_disk_limit_is_stopped_and_says_so(runtime: DockerRuntime, spec: BoxSpec):
    small = replace(spec, limits=replace(LIMITS, disk_mib=20))
    words = "the disk limit of 20 MiB was reached: the box was stopped"
    with runtime.create(small) as box:
        script = "head -c 40M /dev/zero > /root/fill; echo filled; sleep 50"
        result = box.exec(["sh", "-c", script], seconds=60)
        assert (result.exit_code, result.limit) == (137, words)
        assert result.stdout == b"filled\n"
        assert not box.lost()
        assert box.reached() == words
        assert box.reached() == ""
        with pytest.raises(RuntimeFault):
            box.exec(["true"], seconds=30)
        assert box.stats().disk_bytes > 40_000_000
        box.reset()
        assert sh(box, "ls /root") == ""


def test_a_disk_limit_that_it_cannot_hold_is_refused_by_name(runtime: DockerRuntime, spec: BoxSpec):
    for kind in ("tmpfs", "loop"):
        asked = replace(spec, limits=replace(LIMITS, disk=kind))
        with pytest.raises(RuntimeFault, match=f"limits.disk: {kind}") as raised:
            runtime.create(asked)
        assert not raised.value.retry


def test_a_file_is_no_larger_than_it_may_be(runtime: DockerRuntime, spec: BoxSpec):
    with runtime.create(replace(spec, limits=replace(LIMITS, file_mib=2))) as box:
        for trusted in (False, True):
            script = "head -c 5M /dev/zero > /root/file; stat -c %s /root/file"
            result = box.exec(["sh", "-c", script], seconds=30, trusted=trusted)
            assert result.stdout == b"2097152\n"


def test_open_files_are_limited(runtime: DockerRuntime, spec: BoxSpec):
    with runtime.create(replace(spec, limits=replace(LIMITS, open_files=100))) as box:
        assert sh(box, "ulimit -n; ulimit -H -n") == "100\n100\n"


def test_more_open_files_than_the_engine_has_is_as_many_as_it_has(
    runtime: DockerRuntime, spec: BoxSpec
):
    with runtime.create(replace(spec, limits=replace(LIMITS, open_files=1 << 20))) as box:
        assert int(sh(box, "ulimit -n")) >= 1024


def test_programs_run_as_the_user_of_the_box_or_the_one_they_are_given(
    runtime: DockerRuntime, spec: BoxSpec
):
    with runtime.create(replace(spec, user="1000:1001", workdir="/tmp")) as box:
        for trusted in (False, True):
            told = box.exec(["id"], seconds=30, trusted=trusted).stdout
            assert told.startswith(b"uid=1000 gid=1001")
            told = box.exec(["id", "-u"], seconds=30, user="0:0", trusted=trusted).stdout
            assert told == b"0\n"
        with pytest.raises(RuntimeFault, match="no-such"):
            box.exec(["no-such"], seconds=30)
        with contextlib.closing(box.open_pty(["id", "-u"])) as pty:
            assert os.read(pty.fileno(), 100) == b"1000\r\n"
    with pytest.raises(RuntimeFault, match="`somebody`"):
        runtime.create(replace(spec, user="somebody"))


def test_mounts_are_there_to_read(runtime: DockerRuntime, spec: BoxSpec, tmp_path: Path):
    (tmp_path / "file").write_text("of the host\n")
    mounts = (Mount(source=tmp_path, target="/mnt/tools"),)
    with runtime.create(replace(spec, mounts=mounts)) as box:
        assert sh(box, "cat /mnt/tools/file") == "of the host\n"
        assert box.exec(["sh", "-c", "echo x > /mnt/tools/file"], seconds=30).exit_code != 0
        assert box.changes() == []
    missing = (Mount(source=tmp_path / "none", target="/mnt"),)
    with pytest.raises(RuntimeFault, match="none"):
        runtime.create(replace(spec, mounts=missing))


def test_folders_in_memory_have_their_size_and_are_no_change(runtime: DockerRuntime, spec: BoxSpec):
    with runtime.create(replace(spec, tmpfs={"/ram": 2}, hostname="elsewhere")) as box:
        assert box.exec(["sh", "-c", "head -c 4M /dev/zero > /ram/f"], seconds=30).exit_code != 0
        assert sh(box, "stat -c %s /ram/f; uname -n") == "2097152\nelsewhere\n"
        assert box.changes() == []


def test_an_image_without_python_is_served_by_the_engine(
    runtime: DockerRuntime, spec: BoxSpec, store: Store
):
    without = with_layer(store, spec.image, make_tar([Entry(name="usr/bin/.wh.python3")]))
    with runtime.create(replace(spec, image=without)) as box:
        assert box.exec(["sh", "-c", "cat; exit 3"], seconds=30, input=b"in").exit_code == 3
        assert box.stats().processes >= 1
        sh(box, "sleep 60 > /dev/null 2>&1 &")
        box.kill_all()
        assert box.exec(["sh", "-c", "ps ax; kill -9 1"], seconds=30).stdout.count(b"sleep") == 0
        assert not box.lost()


def test_nothing_runs_when_whoever_made_the_box_is_gone(runtime: DockerRuntime, spec: BoxSpec):
    marker = f"4242.{time.time_ns()}"
    with runtime.create(spec) as box:
        sh(box, f"setsid sleep {marker} > /dev/null 2>&1 &")
        assert eventually(lambda: len(host_processes(marker)) == 1)
        connection = box._container._connection
        assert connection is not None
        connection._sock.shutdown(socket.SHUT_RDWR)  # as the kernel does when a process dies
        assert eventually(lambda: not host_processes(marker))
        assert eventually(box.lost)


def test_ready_boxes_are_given_out_first(runtime: DockerRuntime, spec: BoxSpec):
    kind = replace(spec, env={"WARM": "yes"})
    runtime.warm(kind, 1)
    assert runtime._pool.full(kind, 60)
    began = time.monotonic()
    with runtime.create(kind) as box:
        assert sh(box, "echo $WARM") == "yes\n"
        assert time.monotonic() - began < 0.3
        runtime.warm(kind, 0)


def test_many_threads_share_one_box(runtime: DockerRuntime, spec: BoxSpec):
    data = bytes(range(256)) * 2000

    def ask(number: int) -> bool:
        told = box.exec(["cat"], seconds=60, input=data + b"%d" % number)
        return told.stdout == data + b"%d" % number

    with runtime.create(spec) as box, ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(40)))
    assert threading.active_count() < 50


@pytest.mark.timeout(120)
def test_a_second_name_is_read_however_much_comes_after_it(runtime: DockerRuntime, spec: BoxSpec):
    """The engine gives one archive of a container at a time: it would wait for its own end."""
    with runtime.create(spec) as box:
        sh(box, "mkdir -p /srv/d; cd /srv/d; echo x > a; ln a b; head -c 200000000 /dev/zero > c")
        assert sum(map(len, box.get("/srv/d"))) > 200_000_000
