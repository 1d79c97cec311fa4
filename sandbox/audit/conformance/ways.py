"""A box with a clock of its own, and the ways in which a program in it can be started and read that."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sandbox.audit.conformance.bench import Bench, eventually, hold, python, run, said
from sandbox.audit.conformance.terminals import read_all, terminal
from sandbox.runtime.base import Box
from sandbox.runtime.spec import Stillness

SECOND = 1_000_000_000
AT = 1_715_774_400 * SECOND
"""2024-05-15 12:00 UTC: a Wednesday, mid-month, at noon."""
STEP = 1_000_000
READ = "import time; print(time.time_ns())"
SHELL = "echo $(( ${EPOCHREALTIME/./} * 1000 ))"
RAW = """
import ctypes, os, struct
number = {"x86_64": 228, "aarch64": 113}[os.uname().machine]
found = ctypes.create_string_buffer(16)
ctypes.CDLL(None).syscall(number, 0, found)
seconds, rest = struct.unpack("qq", found.raw)
print(seconds * 10**9 + rest)
"""
_DAEMON = """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
with open("/tmp/daemon.new", "w") as f:
    f.write(str(time.time_ns()))
os.rename("/tmp/daemon.new", "/tmp/daemon")
"""


@contextmanager
def clocked(bench: Bench, mode: str = "ticking", **changes: Any) -> Iterator[Box]:
    still = Stillness(at_ns=AT, mode=mode, step_ns=STEP)  # type: ignore[arg-type]
    with bench.box(still=still, **changes) as box:
        yield box


def _terminal(box: Box) -> int:
    with terminal(box, "bash", "-c", SHELL) as pty:
        return int(read_all(pty))


def _daemon(box: Box) -> int:
    said(box, "rm", "-f", "/tmp/daemon")
    said(box, "python3", "-c", _DAEMON)
    hold(
        eventually(lambda: run(box, "test", "-e", "/tmp/daemon").exit_code == 0),
        "a daemon writes down what time it is",
    )
    return int(said(box, "cat", "/tmp/daemon"))


WAYS: dict[str, Callable[[Box], int]] = {
    "a program": lambda box: int(python(box, READ)),
    "a shell": lambda box: int(said(box, "bash", "-c", SHELL)),
    "a terminal's shell": _terminal,
    "a trusted program": lambda box: int(python(box, READ, trusted=True)),
    "a program without environment": lambda box: int(
        said(box, "env", "-i", "/usr/bin/bash", "-c", SHELL)
    ),
    "a bare system call": lambda box: int(python(box, RAW)),
    "a bare system call of a trusted program": lambda box: int(python(box, RAW, trusted=True)),
    "another user's program": lambda box: int(python(box, READ, user="1234:2345", cwd="/")),
    "another user's bare system call": lambda box: int(python(box, RAW, user="1234:2345", cwd="/")),
    "another user's trusted program": lambda box: int(
        python(box, READ, user="1234:2345", cwd="/", trusted=True)
    ),
    "a daemon": _daemon,
    "a program of the end": lambda box: int(python(box, READ)),
}
