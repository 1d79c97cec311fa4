"""What a box cannot reach or use up, on every runtime."""

import os
import time

import pytest

from sandbox.runtime.base import Box, BoxSpec, Runtime
from sandbox.runtime.store import Store
from tests.contract.conftest import LIMITS, host_processes
from tests.support.waiting import eventually

CONNECT = """
import errno, socket, sys, time
began = time.monotonic()
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)
except OSError as e:
    print(errno.errorcode[e.errno], time.monotonic() - began < 2)
else:
    print("connected")
"""
SERVE = """
import socket
server = socket.create_server(("127.0.0.1", 4242))
print("listening", flush=True)
server.accept()[0].sendall(b"hello")
"""
FORKS = """
import os, signal, time
children = []
try:
    while len(children) < 500:
        if (pid := os.fork()) == 0:
            time.sleep(60)
            os._exit(0)
        children.append(pid)
except BlockingIOError:
    pass
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print(len(children))
"""


LIMIT = """
import resource
resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))
"""


MANY_SMALL = """
import os
os.execvp("sh", ["sh", "-c", '''
for i in $(seq 50); do (v=xxxxxxxx; while [ ${#v} -lt 1500000 ]; do v=$v$v; done; sleep 60)& done
wait
'''])
"""


def python(box: Box, script: str, *arguments: str, seconds: float = 30) -> str:
    result = box.exec(["python3", "-c", script, *arguments], seconds=seconds)
    assert result.exit_code == 0, result
    return result.stdout.decode().strip()


def test_loopback_is_the_only_network_interface(box: Box):
    table = box.exec(["cat", "/proc/net/dev"], seconds=30).stdout.decode()
    assert [line.partition(":")[0].strip() for line in table.splitlines()[2:]] == ["lo"]


def test_loopback_is_up(box: Box):
    assert python(box, CONNECT, "127.0.0.1", "9") == "ECONNREFUSED True"


def test_other_hosts_are_out_of_reach_at_once(box: Box):
    said = python(box, CONNECT, "192.0.2.1", "80")
    assert said in {"ENETUNREACH True", "ECONNREFUSED True"}


def test_a_server_in_one_box_is_not_seen_from_another(runtime: Runtime, spec: BoxSpec):
    with runtime.create(spec) as one, runtime.create(spec) as two:
        serve = 'python3 -c "$1" > /tmp/said 2>&1 &'
        assert one.exec(["sh", "-c", serve, "sh", SERVE], seconds=30).exit_code == 0
        assert eventually(
            lambda: one.exec(["cat", "/tmp/said"], seconds=30).stdout == b"listening\n"
        )
        assert python(two, CONNECT, "127.0.0.1", "4242") == "ECONNREFUSED True"
        assert python(one, CONNECT, "127.0.0.1", "4242") == "connected"


def test_boxes_do_not_see_each_other_s_files_or_processes(runtime: Runtime, spec: BoxSpec):
    marker = f"4242.{time.time_ns()}"
    with runtime.create(spec) as one, runtime.create(spec) as two:
        script = f"echo x > /tmp/file; echo x > /dev/shm/file; sleep {marker} > /dev/null 2>&1 &"
        assert one.exec(["sh", "-c", script], seconds=30).exit_code == 0
        look = "ls /tmp /dev/shm; cat /proc/[0-9]*/cmdline"
        seen = two.exec(["sh", "-c", look], seconds=30).stdout
        assert b"file" not in seen
        assert marker.encode() not in seen


def test_nothing_of_the_host_s_file_system_is_visible(box: Box, store: Store):
    (store.root / "host-only").write_text("host")
    assert box.exec(["ls", str(store.root)], seconds=30).exit_code != 0
    root = set(box.exec(["ls", "-A", "/"], seconds=30).stdout.decode().splitlines())
    image = {path.name for path in (store.root / "layers").glob("*/*")}
    assert root <= image | {"dev", "proc", "sys", ".dockerenv"}


def test_the_host_s_environment_is_not_visible(box: Box):
    assert "PYTEST_CURRENT_TEST" in os.environ
    result = box.exec(["sh", "-c", "cat /proc/[0-9]*/environ"], seconds=30)
    assert b"PYTEST" not in result.stdout


def test_the_host_s_processes_are_not_visible(box: Box):
    result = box.exec(["sh", "-c", "cat /proc/[0-9]*/cmdline"], seconds=30)
    assert b"pytest" not in result.stdout


@pytest.mark.parametrize(
    "forbidden",
    [
        ["mount", "-t", "tmpfs", "none", "/tmp"],
        ["mknod", "/tmp/disk", "b", "8", "0"],
        ["unshare", "--user", "true"],
        ["unshare", "--mount", "true"],
        ["sh", "-c", "echo x > /proc/sys/kernel/core_pattern"],
        ["sh", "-c", "echo b > /proc/sysrq-trigger"],
        ["sh", "-c", "echo x > /sys/kernel/mm/ksm/run"],
    ],
    ids=" ".join,
)
def test_it_is_forbidden(box: Box, forbidden: list[str]):
    assert box.exec(forbidden, seconds=30).exit_code not in {0, 127}


def test_more_memory_than_allowed_kills_the_program_not_the_box(box: Box):
    script = f"head -c {3 * LIMITS.memory_mib}M /dev/zero | tail -n 1 > /dev/null"
    assert box.exec(["sh", "-c", script], seconds=60).exit_code == 137
    assert box.exec(["echo", "usable"], seconds=30).stdout == b"usable\n"


def test_a_fork_bomb_is_bounded_and_the_box_usable_after_it(box: Box):
    assert 20 < int(python(box, FORKS, seconds=60)) < LIMITS.pids
    assert box.exec(["echo", "usable"], seconds=30).stdout == b"usable\n"


def test_a_fork_bomb_that_never_ends_dies_when_its_time_is_up(box: Box):
    began = time.monotonic()
    result = box.exec(["bash", "-c", "bomb() { bomb | bomb & }; bomb; sleep 60"], seconds=2)
    assert result.exit_code != 0
    box.destroy()
    assert time.monotonic() - began < 30


def test_children_nobody_waits_for_do_not_use_up_the_process_limit(box: Box):
    script = f"for i in $(seq {2 * LIMITS.pids}); do (true &); done"
    assert box.exec(["sh", "-c", script], seconds=60).exit_code == 0
    assert eventually(lambda: b"Z (zombie)" not in states(box))


def states(box: Box) -> bytes:
    return box.exec(["sh", "-c", "grep -h State /proc/[0-9]*/status"], seconds=30).stdout


def test_a_box_survives_its_programs_killing_everything(box: Box):
    script = "sleep 60 & kill -KILL -1; kill -TERM 1; kill -KILL 1; exit 0"
    assert box.exec(["sh", "-c", script], seconds=30).exit_code in {0, 137}
    assert box.exec(["echo", "usable"], seconds=30).stdout == b"usable\n"


def test_small_programs_that_use_up_the_memory_are_no_fault_of_the_box(box: Box):
    """The kernel kills the largest process, which may be the first: a program ended, no more."""
    box.exec(["python3", "-c", MANY_SMALL], seconds=60)
    assert not box.lost()


def test_a_box_survives_its_programs_limiting_its_first_process(box: Box):
    box.exec(["python3", "-c", LIMIT], seconds=30)
    assert box.exec(["echo", "fine"], seconds=30).stdout == b"fine\n"


def test_no_daemon_outlives_its_box(runtime: Runtime, spec: BoxSpec):
    marker = f"4242.{time.time_ns()}"
    with runtime.create(spec) as box:
        script = f"trap '' HUP TERM; (setsid nohup sleep {marker} > /dev/null 2>&1 &)"
        assert box.exec(["sh", "-c", script], seconds=30).exit_code == 0
        assert eventually(lambda: len(host_processes(marker)) == 1)
    assert not host_processes(marker)
