"""What a terminal in a box promises, on every runtime."""

import contextlib
import os
import select
import time
from collections.abc import Iterator, Sequence

import pytest

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box, Pty
from tests.contract.conftest import host_processes
from tests.support.waiting import eventually

RAW = "stty raw -echo; printf ready; head -c 255 | od -An -v -tu1"


@contextlib.contextmanager
def terminal(box: Box, argv: Sequence[str], *, rows: int = 40, cols: int = 160) -> Iterator[Pty]:
    pty = box.open_pty(argv, rows=rows, cols=cols)
    try:
        yield pty
    finally:
        pty.close()


def read_until(pty: Pty, end: bytes, seconds: float = 20) -> bytes:
    """What the program printed, up to `end`; fails when that does not come."""
    seen = b""
    deadline = time.monotonic() + seconds
    while end not in seen:
        block = _read(pty, deadline - time.monotonic())
        assert block, f"waited for {end!r}, saw {seen!r}"
        seen += block
    return seen


def read_all(pty: Pty, seconds: float = 30) -> bytes:
    seen = b""
    deadline = time.monotonic() + seconds
    while block := _read(pty, deadline - time.monotonic()):
        seen += block
    return seen


def _read(pty: Pty, seconds: float) -> bytes:
    """Empty at the end, which terminals tell with an error, and when the time is up."""
    if not select.select([pty.fileno()], [], [], max(0.0, seconds))[0]:
        return b""
    try:
        return os.read(pty.fileno(), 1 << 16)
    except OSError:
        return b""


def test_a_program_has_a_terminal_of_the_wanted_size(box: Box):
    script = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size"
    with terminal(box, ["sh", "-c", script], rows=33, cols=99) as pty:
        assert read_until(pty, b"\n") == b"33 99\r\n"
        assert pty.wait(20) == 0


def test_a_program_sees_a_change_of_size(box: Box):
    script = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done"
    with terminal(box, ["bash", "-c", script]) as pty:
        read_until(pty, b"ready")
        pty.resize(50, 120)
        assert b"50 120" in read_until(pty, b"120")
        assert pty.wait(20) == 0


def test_what_is_typed_is_echoed_and_read(box: Box):
    with terminal(box, ["cat"]) as pty:
        os.write(pty.fileno(), b"hello\n")
        assert read_until(pty, b"hello\r\nhello\r\n") == b"hello\r\nhello\r\n"
        os.write(pty.fileno(), b"\x04")
        assert pty.wait(20) == 0


def test_every_byte_but_zero_can_be_typed(box: Box):
    with terminal(box, ["sh", "-c", RAW]) as pty:
        read_until(pty, b"ready")
        os.write(pty.fileno(), bytes(range(1, 256)))
        read_until(pty, b"255", 20)
        assert pty.wait(20) == 0


def test_control_p_arrives_alone(box: Box):
    script = "stty raw -echo; printf ready; head -c 1 | od -An -tu1"
    with terminal(box, ["sh", "-c", script]) as pty:
        read_until(pty, b"ready")
        os.write(pty.fileno(), b"\x10")
        read_until(pty, b"16")


def test_control_c_interrupts_the_program(box: Box):
    with terminal(box, ["sh", "-c", "echo ready; exec sleep 60"]) as pty:
        read_until(pty, b"ready")
        os.write(pty.fileno(), b"\x03")
        assert pty.wait(20) == 130


def test_its_exit_code_is_known_when_it_has_ended(box: Box):
    with terminal(box, ["sh", "-c", "read line; exit 7"]) as pty:
        assert pty.wait(0) is None
        assert pty.wait(0.2) is None
        os.write(pty.fileno(), b"\n")
        assert pty.wait(20) == 7
        assert pty.wait(0) == 7


def test_it_ends_with_an_end_of_file(box: Box):
    with terminal(box, ["echo", "all of it"]) as pty:
        assert read_all(pty) == b"all of it\r\n"


def test_not_a_byte_of_a_quick_program_s_output_is_lost(box: Box):
    for _ in range(5):
        with terminal(box, ["sh", "-c", "seq 1 2000; exit 3"]) as pty:
            expected = "".join(f"{n}\r\n" for n in range(1, 2001)).encode()
            assert read_all(pty) == expected
            assert pty.wait(20) == 3


def test_it_is_the_leader_of_its_own_session(box: Box):
    script = "import os; print(os.getsid(0) == os.getpid() == os.getpgrp() == os.tcgetpgrp(0))"
    with terminal(box, ["python3", "-c", script]) as pty:
        assert read_until(pty, b"\n") == b"True\r\n"


def test_it_starts_in_the_working_directory_or_where_it_is_told(box: Box):
    with terminal(box, ["sh", "-c", "pwd"]) as pty:
        assert read_until(pty, b"\n") == b"/root\r\n"
    with contextlib.closing(box.open_pty(["sh", "-c", "pwd"], cwd="/tmp")) as pty:
        assert read_until(pty, b"\n") == b"/tmp\r\n"


def test_an_interactive_shell_works(box: Box):
    with terminal(box, ["bash", "--norc", "--noprofile", "-i"]) as pty:
        os.write(pty.fileno(), b"PS1=; echo $((6 * 7)); sleep 60 & jobs; kill %1; exit 5\n")
        said = read_all(pty)
        assert b"42" in said
        assert b"Running" in said
        assert b"no job control" not in said
        assert pty.wait(20) == 5


def test_closing_hangs_up(box: Box):
    script = "trap 'echo hung up > /tmp/said; exit' HUP; echo ready; while :; do sleep 0.05; done"
    pty = box.open_pty(["sh", "-c", script])
    read_until(pty, b"ready")
    pty.close()
    pty.close()
    assert eventually(lambda: box.exec(["cat", "/tmp/said"], seconds=30).stdout == b"hung up\n")


def test_closing_ends_what_runs_in_the_foreground_of_a_shell(box: Box):
    marker = f"4242.{time.time_ns()}"
    pty = box.open_pty(["bash", "--norc", "--noprofile", "-i"])
    os.write(pty.fileno(), f"sleep {marker}\n".encode())
    assert eventually(lambda: len(host_processes(marker)) == 1)
    pty.close()
    assert eventually(lambda: not host_processes(marker))


def test_two_terminals_in_one_box_do_not_mix(box: Box):
    with terminal(box, ["cat"]) as one, terminal(box, ["cat"]) as two:
        os.write(one.fileno(), b"one\n")
        os.write(two.fileno(), b"two\n")
        assert read_until(one, b"one\r\none\r\n") == b"one\r\none\r\n"
        assert read_until(two, b"two\r\ntwo\r\n") == b"two\r\ntwo\r\n"


def test_a_terminal_ends_with_its_box(box: Box):
    with terminal(box, ["cat"]) as pty:
        box.destroy()
        assert read_all(pty) == b""


def test_there_is_no_terminal_in_a_stopped_box(box: Box):
    box.stop()
    with pytest.raises(RuntimeFault):
        box.open_pty(["cat"])
