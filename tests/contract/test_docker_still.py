"""What is particular to the docker runtime's way of holding a box's clock."""

import io
import os
import signal
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from sandbox.audit.conformance.bench import host_processes
from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box
from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.spec import BoxSpec, Image, Stillness
from sandbox.runtime.store import Store
from tests.contract.conftest import LIMITS
from tests.support.tars import Entry, make_tar
from tests.support.tinyimage import with_layer
from tests.support.waiting import eventually

pytestmark = [pytest.mark.box, pytest.mark.docker]

NANO = 1_000_000_000
AT = 1_715_774_400
"""2024-05-15 12:00 UTC."""
CLOCK = ["bash", "-c", "echo $EPOCHSECONDS"]
SERVER = """
import os
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) != os.getpid():
        with open(f"/proc/{name}/stat") as f:
            text = f.read()
        if "(init)" in text and text.rpartition(")")[2].split()[1] == "1":
            print(name)
"""
"""Prints the number of the process that is below the supervisor and serves."""
TOUCH = """
import ctypes, os, resource, sys
pid = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
tries = {
    "kill": lambda: os.kill(pid, 9),
    "stop": lambda: os.kill(pid, 19),
    "pidfd": lambda: __import__("signal").pidfd_send_signal(os.pidfd_open(pid), 9),
    "limits": lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0)),
    "memory": lambda: open(f"/proc/{pid}/mem", "r+b"),
    "descriptors": lambda: os.readlink(f"/proc/{pid}/fd/0"),
}
for name, attempt in tries.items():
    try:
        attempt()
        print(name)
    except OSError:
        pass
if libc.ptrace(16, pid, 0, 0) == 0:
    print("trace")
"""


@pytest.fixture(scope="module")
def runtime(docker_runtime: DockerRuntime) -> DockerRuntime:
    return docker_runtime


@pytest.fixture
def still(spec: BoxSpec) -> BoxSpec:
    return replace(spec, still=Stillness(at_ns=AT * NANO))


@pytest.fixture
def box(runtime: DockerRuntime, still: BoxSpec) -> Iterator[Box]:
    with runtime.create(still) as made:
        yield made


@pytest.fixture
def bare(still: BoxSpec, store: Store) -> BoxSpec:
    """Of an image in which our server has nothing to run with."""
    without = with_layer(store, still.image, make_tar([Entry(name="usr/bin/.wh.python3")]))
    return replace(still, image=without)


def seconds(box: Box, **how: bool | str) -> int:
    result = box.exec(CLOCK, seconds=30, **how)  # type: ignore[arg-type]
    assert result.exit_code == 0, result
    return int(result.stdout) - AT


def _gone(marker: str) -> bool:
    return not host_processes(marker)


def number_of_server(box: Box) -> str:
    return box.exec(["python3", "-c", SERVER], seconds=30).stdout.decode().strip()


def test_it_is_held_here(runtime: DockerRuntime):
    assert runtime.capabilities().still == ""


def test_an_image_without_python_has_the_clock_too(runtime: DockerRuntime, bare: BoxSpec):
    with runtime.create(bare) as box:
        assert 0 <= seconds(box) < 60
        assert box.exec(["sh", "-c", "cat; exit 3"], seconds=30, input=b"in").exit_code == 3
        assert box.stats().processes >= 1
        box.exec(["sh", "-c", "sleep 60 > /dev/null 2>&1 &"], seconds=30)
        box.kill_all()
        said = box.exec(["sh", "-c", "ps ax; kill -9 1; kill -9 -1"], seconds=30)
        assert said.stdout.count(b"sleep") == 0
        assert 0 <= seconds(box) < 60
        assert not box.lost()


def test_orphans_are_reaped_where_there_is_no_server(runtime: DockerRuntime, bare: BoxSpec):
    with runtime.create(bare) as box:
        box.exec(["sh", "-c", "(sh -c 'sleep 0.1' &); sleep 0.3"], seconds=30)
        left = box.exec(["sh", "-c", "grep -l '^State:.Z' /proc/[0-9]*/status"], seconds=30)
        assert left.stdout == b""


def test_the_server_is_as_untouchable_as_the_first_process(box: Box):
    number = number_of_server(box)
    assert number.isdigit()
    for user in ("0:0", "1234:1234"):
        found = box.exec(["python3", "-c", TOUCH, number], seconds=30, user=user, cwd="/")
        assert (found.exit_code, found.stdout) == (0, b""), found
    assert 0 <= seconds(box) < 60


def test_both_are_the_last_to_be_killed_for_memory(box: Box):
    own = int(box.exec(["cat", "/proc/self/oom_score_adj"], seconds=30).stdout)
    for number in ("1", number_of_server(box)):
        later = ["sh", "-c", f"sleep 0.2; cat /proc/{number}/oom_score_adj"]
        assert own >= int(box.exec(later, seconds=30).stdout) + 500


def test_a_box_ends_with_its_supervisor_and_with_its_server(runtime: DockerRuntime, still: BoxSpec):
    for which in (0, 1):
        with runtime.create(still) as box:
            marker = f"4242.{time.time_ns()}"
            box.exec(["sh", "-c", f"setsid sleep {marker} > /dev/null 2>&1 &"], seconds=30)
            pids = [box._container.state()["Pid"]]
            pids += Path(f"/proc/{pids[0]}/task/{pids[0]}/children").read_text().split()[:1]
            os.kill(int(pids[which]), signal.SIGKILL)
            assert eventually(box.lost)
            assert eventually(partial(_gone, marker))


def test_what_cannot_be_started_is_a_fault_and_nobody_else_can_say_so(
    runtime: DockerRuntime, still: BoxSpec
):
    lie = "ps axww -o args >&2; echo 'still: /x: No such file or directory' >&2; exit 127"
    for umask in (0o022, 0o077):
        with runtime.create(replace(still, umask=umask)) as box:
            with pytest.raises(RuntimeFault, match="/x"):
                box.exec(["/x"], seconds=30, trusted=True)
            with pytest.raises(RuntimeFault, match=r"[Pp]ermission"):
                box.exec(["/etc/passwd"], seconds=30, trusted=True)
            assert box.exec(["sh", "-c", lie], seconds=30, trusted=True).exit_code == 127


def test_many_terminals_and_programs_from_outside_have_the_clock(box: Box):
    terminals = [box.open_pty(["sh", "-c", "read x"]) for _ in range(12)]
    try:
        assert 0 <= seconds(box, trusted=True) < 60
    finally:
        for terminal in terminals:
            terminal.close()
    for _ in range(66):  # more than a supervisor serves at one time
        assert box.exec(["true"], seconds=30, trusted=True).exit_code == 0


def test_a_box_that_is_full_of_processes_lets_a_trusted_program_in(box: Box):
    fill = "while :; do sleep 600 > /dev/null 2>&1 & done"
    box.exec(["setsid", "-f", "bash", "-c", fill], seconds=30)
    assert eventually(lambda: box.stats().forks_refused > 0)
    for _ in range(3):
        assert 0 <= seconds(box, trusted=True) < 60


def test_boxes_with_a_clock_are_not_made_ahead_of_time(runtime: DockerRuntime, still: BoxSpec):
    runtime.warm(still, 1)
    assert runtime._pool.take(still) is None
    with runtime.create(still) as box:
        assert 0 <= seconds(box) < 60


def test_its_files_go_with_a_box(tmp_path: Path, still: BoxSpec):
    with closing(DockerRuntime(Store(tmp_path))) as runtime:
        box = runtime.create(still)
        files = list(tmp_path.glob("docker/*/*/proc-stat"))
        assert len(files) == 1
        assert (
            f"btime {AT - int(time.clock_gettime(time.CLOCK_BOOTTIME))}"[:11]
            in files[0].read_text()
        )
        box.destroy()
        assert not list(tmp_path.glob("docker/*/*"))
    assert [path.name for path in (tmp_path / "docker").iterdir()] == ["id"]


def test_files_of_the_dead_are_reaped(tmp_path: Path, still: BoxSpec):
    with closing(DockerRuntime(Store(tmp_path))) as runtime:
        left = tmp_path / "docker" / "0123456789abcdef"
        (left / "box").mkdir(parents=True)
        left.with_suffix(".lease").touch()
        with runtime.create(still):
            runtime.reap()
            assert not left.exists()
            assert len(list(tmp_path.glob("docker/*/*/proc-stat"))) == 1


def test_a_box_that_cannot_start_leaves_no_files(tmp_path: Path, still: BoxSpec):
    broken = replace(still, workdir="/etc/passwd")
    with closing(DockerRuntime(Store(tmp_path))) as runtime:
        with pytest.raises(RuntimeFault):
            runtime.create(broken)
        assert not list(tmp_path.glob("docker/*/*"))


def test_an_engine_that_does_not_see_the_store_cannot_hold_a_clock(
    tmp_path: Path, image: Image, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    elsewhere = Store(Path("/proc/self/cwd"))  # which is another folder to every process
    with closing(DockerRuntime(elsewhere)) as runtime:
        assert "does not see the store" in runtime.capabilities().still
        with pytest.raises(RuntimeFault, match="does not see the store") as fault:
            runtime.create(BoxSpec(image=image, limits=LIMITS, still=Stillness(at_ns=AT * NANO)))
        assert not fault.value.retry


def test_what_the_engine_makes_for_its_mounts_is_no_change(box: Box, tmp_path: Path):
    box.put(make_tar([Entry(name="file", content=b"x")]), "/tmp")
    assert [change.path for change in box.changes()] == ["/tmp/file"]
    with tarfile.open(box.snapshot(tmp_path / "tar").tar) as tar:
        assert tar.getnames() == ["tmp/file"]


def test_what_is_read_from_outside_has_the_box_s_dates(box: Box):
    box.exec(
        ["sh", "-c", "mkdir /tmp/d; echo x > /tmp/d/new; touch -d @1500000000 /tmp/d/old"],
        seconds=30,
    )
    with tarfile.open(fileobj=io.BytesIO(b"".join(box.get("/tmp/d")))) as tar:
        found = {member.name: int(member.mtime) - AT for member in tar}
    assert found["d/old"] == 1_500_000_000 - AT
    assert 0 <= found["d"] < 60
    assert 0 <= found["d/new"] < 60


def test_a_daemon_that_gave_up_its_rights_has_the_clock(box: Box):
    script = """
import os, threading, time
os.setgroups([]); os.setgid(1234); os.setuid(1234)
lock = threading.Lock()
lock.acquire()
began = time.monotonic()
assert not lock.acquire(timeout=0.2)
assert 0.2 <= time.monotonic() - began < 20
os.close(os.open("/tmp/daemon", os.O_CREAT | os.O_WRONLY))
print(int(os.stat("/tmp/daemon").st_mtime))
"""
    for trusted in (False, True):
        made = box.exec(["python3", "-c", script], seconds=60, trusted=trusted)
        assert made.exit_code == 0, made
        assert 0 <= int(made.stdout) - AT < 60
        box.exec(["rm", "/tmp/daemon"], seconds=30)
