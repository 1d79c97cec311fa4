"""System calls in a box of the docker runtime, made one by one: the profile holds them back."""

import errno
import os
from collections.abc import Iterator

import pytest

from sandbox.runtime.base import Box
from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.spec import BoxSpec, Image
from tests.contract.conftest import LIMITS

pytestmark = [pytest.mark.box, pytest.mark.docker]

CALLS = """
import ctypes, errno, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
column = ("x86_64", "aarch64").index(platform.machine())
for line in sys.stdin:
    name, *words = line.split()
    numbers, arguments = [int(n) for n in words[:2]], [int(n, 0) for n in words[2:]]
    ctypes.set_errno(0)
    values = [ctypes.c_long(n) for n in (arguments + [0] * 6)[:6]]
    result = libc.syscall(ctypes.c_long(numbers[column]), *values)
    print(name, errno.errorcode[ctypes.get_errno()] if result == -1 else "done")
"""
REFUSED = {
    "io_uring_setup": ((425, 425), (8, 0), "EPERM"),
    "unshare": ((272, 97), (0x1000_0000,), "EPERM"),
    "setns": ((308, 268), (0, 0), "EPERM"),
    "mount": ((165, 40), (0, 0, 0, 0, 0), "EPERM"),
    "fsopen": ((430, 430), (0, 0), "EPERM"),
    "open_tree": ((428, 428), (0, 0, 0), "EPERM"),
    "bpf": ((321, 280), (0, 0, 0), "EPERM"),
    "perf_event_open": ((298, 241), (0, 0, 0, 0, 0), "EPERM"),
    "userfaultfd": ((323, 282), (1,), "EPERM"),
    "keyctl": ((250, 219), (0, 0), "EPERM"),
    "clone3": ((435, 435), (0, 0), "ENOSYS"),
    "clone-newuser": ((56, 220), (0x1000_0011,), "EPERM"),
    "clone-newnet": ((56, 220), (0x4000_0011,), "EPERM"),
    "vsock": ((41, 198), (40, 1, 0), "EAFNOSUPPORT"),
    "alg": ((41, 198), (38, 5, 0), "EAFNOSUPPORT"),
    "packet": ((41, 198), (17, 3, 0), "EAFNOSUPPORT"),
    "vsock-pair": ((53, 199), (40, 1, 0, 0), "EAFNOSUPPORT"),
    "tiocsti": ((16, 29), (0, 0x5412, 0), "EPERM"),
    "tiocsti-high": ((16, 29), (0, 0x1_0000_5412, 0), "EPERM"),
    "ptrace-init": ((101, 117), (16, 1, 0, 0), "EPERM"),
    "prlimit-init": ((302, 261), (1, 7, 0, 0), "EPERM"),
    "affinity-init": ((203, 122), (1, 0, 0), "EPERM"),
    "nice-init": ((141, 140), (0, 1, 19), "EPERM"),
    "ioprio-init": ((251, 30), (1, 1, 0), "EPERM"),
    "memory-of-init": ((310, 270), (1, 0, 0, 0, 0, 0), "EPERM"),
}
ALLOWED = {
    "unix": ((41, 198), (1, 1, 0)),
    "inet": ((41, 198), (2, 1, 0)),
    "inet6": ((41, 198), (10, 1, 0)),
    "netlink": ((41, 198), (16, 3, 0)),
    "own-limits": ((302, 261), (0, 7, 0, 0)),
    "own-nice": ((141, 140), (0, 0, 5)),
}
TRACE = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
pid = os.fork()
if pid == 0:
    libc.ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(7)
_, status = os.waitpid(pid, 0)
assert os.WIFSTOPPED(status), status
assert libc.ptrace(7, pid, 0, 0) == 0
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
INIT = "cat /proc/1/environ /proc/1/maps; echo x > /proc/1/mem; ls -l /proc/1/fd/; : > /proc/1/fd/1"


@pytest.fixture(scope="module")
def box(docker_runtime: DockerRuntime, image: Image) -> Iterator[Box]:
    with docker_runtime.create(BoxSpec(image=image, limits=LIMITS)) as made:
        yield made


def made(box: Box, calls: dict[str, tuple[tuple[int, int], tuple[int, ...]]]) -> dict[str, str]:
    lines = [f"{name} {' '.join(map(str, (*n, *given)))}" for name, (n, given) in calls.items()]
    typed = "\n".join(lines).encode()
    result = box.exec(["python3", "-c", CALLS], seconds=30, input=typed)
    assert result.exit_code == 0, result
    return dict(line.split() for line in result.stdout.decode().splitlines())


def test_calls_that_have_no_business_in_a_box_are_refused(box: Box):
    expected = {name: error for name, (_, _, error) in REFUSED.items()}
    assert set(expected.values()) <= set(errno.errorcode.values())
    assert made(box, {name: (n, given) for name, (n, given, _) in REFUSED.items()}) == expected


def test_what_programs_need_is_allowed(box: Box):
    assert made(box, ALLOWED) == dict.fromkeys(ALLOWED, "done")


def test_a_program_can_trace_its_own_children(box: Box):
    assert box.exec(["python3", "-c", TRACE], seconds=30).stdout == b"7\n"


def test_nothing_is_seen_of_the_first_process(box: Box):
    result = box.exec(["sh", "-c", INIT], seconds=30)
    assert b"->" not in result.stdout
    assert b"PATH=" not in result.stdout
    assert result.stderr.lower().count(b"permission denied") >= 4
    assert box.exec(["cat", "/proc/1/comm"], seconds=30).stdout == b"init\n"


def test_the_first_process_is_the_last_to_be_killed_for_memory(box: Box):
    own = int(box.exec(["cat", "/proc/self/oom_score_adj"], seconds=30).stdout)
    later = ["sh", "-c", "sleep 0.2; cat /proc/1/oom_score_adj"]  # it starts with its parent's
    assert own >= int(box.exec(later, seconds=30).stdout) + 500
    pty = box.open_pty(["cat", "/proc/self/oom_score_adj"])
    assert int(os.read(pty.fileno(), 100)) >= 500
    pty.close()
