"""Two boxes on one machine: neither can see, reach or harm the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.audit.conformance import Bench
from sandbox.audit.conformance.bench import (
    alive,
    background,
    eventually,
    exists,
    python,
    run,
    sh,
    sleeper,
)
from sandbox.runtime.base import Box
from tests.contract.attacks.table import attack

ATTACKS = (
    "see another box's processes",
    "kill another box's processes",
    "reach another box's abstract sockets",
    "reach another box's System V memory, semaphores and queues",
    "reach another box's message queues",
    "reach another box's shared memory",
    "tell a later box by the names that it looks for",
)
_NAMES = 150_000
_LOOK = f"import os\nfor i in range({_NAMES}): os.path.exists(f'/usr/lib/absent-{{i}}')"
_LISTEN = """
import socket, time
s = socket.socket(socket.AF_UNIX)
s.bind("\\0attack")
s.listen()
open("/tmp/listening", "w").close()
time.sleep(1000)
"""
_CONNECT = """
import errno, socket
try:
    socket.socket(socket.AF_UNIX).connect("\\0attack")
    print("OK")
except OSError as e:
    print(errno.errorcode[e.errno])
"""
_SYSTEM_V = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
make = 0o1000 if sys.argv[1] == "make" else 0
print([libc.shmget(4242, 4096, make | 0o666) >= 0, libc.semget(4242, 1, make | 0o666) >= 0, libc.msgget(4242, make | 0o666) >= 0])
"""


@contextmanager
def two(bench: Bench) -> Iterator[tuple[Box, Box]]:
    with bench.box() as one, bench.box() as other:
        yield one, other


@attack("see another box's processes")
def test_processes_are_not_seen(bench: Bench):
    with two(bench) as (one, other):
        marker = sleeper(one)
        assert marker not in sh(other, "cat /proc/[0-9]*/cmdline || true")


@attack("kill another box's processes")
def test_processes_are_not_killed(bench: Bench):
    with two(bench) as (one, other):
        marker = sleeper(one)
        run(
            other,
            "sh",
            "-c",
            "i=2; while [ $i -lt 3000 ]; do kill -KILL $i; i=$((i+1)); done 2>/dev/null; kill -KILL -1",
        )
        assert alive(marker)


@attack("reach another box's abstract sockets")
def test_abstract_sockets_are_not_reached(bench: Bench):
    with two(bench) as (one, other):
        background(one, "python3", "-c", _LISTEN)
        assert eventually(lambda: exists(one, "/tmp/listening"), 30)
        assert python(one, _CONNECT) == "OK"
        assert python(other, _CONNECT) == "ECONNREFUSED"


@attack("reach another box's System V memory, semaphores and queues")
def test_system_v_objects_are_not_reached(bench: Bench):
    with two(bench) as (one, other):
        assert python(one, _SYSTEM_V, "make") == "[True, True, True]"
        assert python(other, _SYSTEM_V, "look") == "[False, False, False]"


@attack("reach another box's message queues")
def test_message_queues_are_not_reached(bench: Bench):
    with two(bench) as (one, other):
        sh(one, ": > /dev/mqueue/attack")
        assert exists(one, "/dev/mqueue/attack")
        assert not exists(other, "/dev/mqueue/attack")


@attack("reach another box's shared memory")
def test_shared_memory_is_not_reached(bench: Bench):
    with two(bench) as (one, other):
        sh(one, "echo x > /dev/shm/attack")
        assert not exists(other, "/dev/shm/attack")


@attack("tell a later box by the names that it looks for")
def test_names_that_are_not_there_are_forgotten_with_the_box(bench: Bench):
    """The kernel keeps them: what is asked for a second time is answered sooner."""
    before = _absent_names()
    with bench.box() as box:
        python(box, _LOOK)
    assert _absent_names() - before < _NAMES / 2


def _absent_names() -> int:
    return int(Path("/proc/sys/fs/dentry-state").read_text().split()[4])
