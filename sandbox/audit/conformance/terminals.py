"""What a terminal in a box promises: `open_pty`, and the Pty it gives."""

import os
import select
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from sandbox.audit.conformance.bench import Bench, dead, eventually, expect, hold, refused, run, see
from sandbox.audit.conformance.registry import Group
from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box, Pty

GROUP = Group("terminal")
_RAW = "stty raw -echo; printf ready; head -c 255 | od -An -v -tu1"
_SECONDS = 30.0


@contextmanager
def terminal(box: Box, *argv: str, **options: Any) -> Iterator[Pty]:
    with closing(box.open_pty(argv, **options)) as pty:
        yield pty


def read_until(pty: Pty, end: bytes) -> bytes:
    """What the program printed, up to `end`; fails when that does not come."""
    seen = b""
    deadline = time.monotonic() + _SECONDS
    while end not in seen:
        block = _read(pty, deadline - time.monotonic())
        hold(block, f"{end!r} is printed; only {seen!r} was")
        seen += block
    return seen


def read_all(pty: Pty) -> bytes:
    seen = b""
    deadline = time.monotonic() + _SECONDS
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


@GROUP.check()
def a_program_has_a_terminal_of_the_wanted_size(bench: Bench) -> None:
    """`rows` and `cols`; all three streams are the terminal."""
    script = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size"
    with bench.box() as box:
        with terminal(box, "sh", "-c", script, rows=33, cols=99) as pty:
            expect(read_until(pty, b"\n"), b"33 99\r\n", "size")
            expect(pty.wait(_SECONDS), 0, "exit code")
        with terminal(box, "stty", "size") as pty:
            expect(read_until(pty, b"\n"), b"40 160\r\n", "size when nothing is said")


@GROUP.check()
def a_program_sees_a_change_of_size(bench: Bench) -> None:
    """`resize`, and the signal for it."""
    script = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done"
    with bench.box() as box, terminal(box, "bash", "-c", script) as pty:
        read_until(pty, b"ready")
        pty.resize(50, 120)
        hold(b"50 120" in read_until(pty, b"120"), "the new size is seen")
        expect(pty.wait(_SECONDS), 0, "exit code")


@GROUP.check()
def what_is_typed_is_echoed_and_read(bench: Bench) -> None:
    """`os.write` types; a usual terminal echoes."""
    with bench.box() as box, terminal(box, "cat") as pty:
        os.write(pty.fileno(), b"hello\n")
        expect(read_until(pty, b"hello\r\nhello\r\n"), b"hello\r\nhello\r\n", "echo and answer")
        os.write(pty.fileno(), b"\x04")
        expect(pty.wait(_SECONDS), 0, "exit code after ^D")


@GROUP.check()
def every_byte_but_zero_can_be_typed(bench: Bench) -> None:
    """Nothing between here and there takes a byte for itself."""
    with bench.box() as box, terminal(box, "sh", "-c", _RAW) as pty:
        read_until(pty, b"ready")
        os.write(pty.fileno(), bytes(range(1, 256)))
        said = read_until(pty, b"255")
        expect([int(n) for n in said.split()], list(range(1, 256)), "bytes that arrived")
        expect(pty.wait(_SECONDS), 0, "exit code")


@GROUP.check()
def control_p_arrives_alone(bench: Bench) -> None:
    """Docker's command line waits here for a ^Q that detaches."""
    script = "stty raw -echo; printf ready; head -c 1 | od -An -tu1"
    with bench.box() as box, terminal(box, "sh", "-c", script) as pty:
        read_until(pty, b"ready")
        os.write(pty.fileno(), b"\x10")
        read_until(pty, b"16")


@GROUP.check()
def control_c_interrupts_the_program(bench: Bench) -> None:
    """It has a controlling terminal, and is in its foreground."""
    with bench.box() as box, terminal(box, "sh", "-c", "echo ready; exec sleep 60") as pty:
        read_until(pty, b"ready")
        os.write(pty.fileno(), b"\x03")
        expect(pty.wait(_SECONDS), 130, "exit code")


@GROUP.check()
def its_exit_code_is_known_when_it_has_ended(bench: Bench) -> None:
    """`Pty.wait`: None while it runs; the same answer the second time."""
    with bench.box() as box, terminal(box, "sh", "-c", "read line; exit 7") as pty:
        expect([pty.wait(0), pty.wait(0.2)], [None, None], "while it runs")
        os.write(pty.fileno(), b"\n")
        expect([pty.wait(_SECONDS), pty.wait(0)], [7, 7], "afterwards")


@GROUP.check()
def not_a_byte_of_a_quick_program_s_output_is_lost(bench: Bench) -> None:
    """All that was printed can be read, then there is an end of file."""
    wanted = "".join(f"{n}\r\n" for n in range(1, 2001)).encode()
    with bench.box() as box:
        for _ in range(5):
            with terminal(box, "sh", "-c", "seq 1 2000; exit 3") as pty:
                found = read_all(pty)
                hold(
                    found == wanted, f"2000 lines: {found[-20:]!r} is the end of {len(found)} bytes"
                )
                expect(pty.wait(_SECONDS), 3, "exit code")


@GROUP.check()
def it_is_the_leader_of_its_own_session(bench: Bench) -> None:
    """`open_pty`: as its session leader."""
    script = "import os; print(os.getsid(0) == os.getpid() == os.getpgrp() == os.tcgetpgrp(0))"
    with bench.box() as box, terminal(box, "python3", "-c", script) as pty:
        expect(read_until(pty, b"\n"), b"True\r\n", "session, group and foreground are its own")


@GROUP.check()
def it_starts_as_it_is_told(bench: Bench) -> None:
    """`cwd`, `env` and `user`, and what holds when they are not given."""
    script = 'pwd; id -u; id -g; echo "$TASK:$EXTRA"; echo end'
    with bench.box() as box:
        with terminal(box, "sh", "-c", script) as pty:
            found = read_until(pty, b"end\r\n").split(b"\r\n")
            expect(found[:4], [b"/root", b"0", b"0", b"one two:"], "when nothing is said")
        told = {"cwd": "/tmp", "env": {"EXTRA": "x"}, "user": "1234:2345"}
        with terminal(box, "sh", "-c", script, **told) as pty:
            found = read_until(pty, b"end\r\n").split(b"\r\n")
            expect(found[:4], [b"/tmp", b"1234", b"2345", b"one two:x"], "as it was told")


@GROUP.check()
def somebody_who_is_not_root_can_use_their_terminal(bench: Bench) -> None:
    """It is theirs: programs like `mesg`, `screen` and shells open it by name."""
    script = 'echo by name > "$(readlink /proc/self/fd/0)"; echo also > /dev/tty; echo end'
    with bench.box() as box, terminal(box, "sh", "-c", script, user="1234:2345", cwd="/") as pty:
        expect(read_until(pty, b"end\r\n"), b"by name\r\nalso\r\nend\r\n", "what was printed")


@GROUP.check()
def an_interactive_shell_works(bench: Bench) -> None:
    """With job control."""
    with bench.box() as box, terminal(box, "bash", "--norc", "--noprofile", "-i") as pty:
        os.write(pty.fileno(), b"PS1=; echo $((6 * 7)); sleep 60 & jobs; kill %1; exit 5\n")
        said = read_all(pty)
        hold(b"42" in said, f"it reckons: {said!r}")
        hold(b"Running" in said, f"it knows its jobs: {said!r}")
        hold(b"no job control" not in said, f"it has job control: {said!r}")
        expect(pty.wait(_SECONDS), 5, "exit code")


@GROUP.check()
def closing_hangs_up(bench: Bench) -> None:
    """`Pty.close`: the program gets SIGHUP; harmless the second time."""
    script = "trap 'echo hung up > /tmp/said; exit' HUP; echo ready; while :; do sleep 0.05; done"
    with bench.box() as box:
        pty = box.open_pty(["sh", "-c", script])
        read_until(pty, b"ready")
        pty.close()
        pty.close()
        hung = eventually(lambda: run(box, "cat", "/tmp/said").stdout == b"hung up\n")
        hold(hung, "the program is told")


@GROUP.check()
def closing_ends_what_runs_in_the_foreground_of_a_shell(bench: Bench) -> None:
    """A hang-up reaches the job, as with any terminal."""
    marker = f"4242.{time.time_ns()}"
    with bench.box() as box:
        pty = box.open_pty(["bash", "--norc", "--noprofile", "-i"])
        os.write(pty.fileno(), f"sleep {marker}\n".encode())
        see(marker)
        pty.close()
        hold(dead(marker), "the job has ended")


@GROUP.check()
def two_terminals_in_one_box_do_not_mix(bench: Bench) -> None:
    """Each has its own pair of ends."""
    with bench.box() as box, terminal(box, "cat") as one, terminal(box, "cat") as two:
        os.write(one.fileno(), b"one\n")
        os.write(two.fileno(), b"two\n")
        expect(read_until(one, b"one\r\none\r\n"), b"one\r\none\r\n", "the first")
        expect(read_until(two, b"two\r\ntwo\r\n"), b"two\r\ntwo\r\n", "the second")


@GROUP.check()
def a_terminal_ends_with_its_box(bench: Bench) -> None:
    """The host's end reads its end."""
    box = bench.box()
    with terminal(box, "cat") as pty:
        box.destroy()
        expect(read_all(pty), b"", "what is left to read")


@GROUP.check()
def a_program_that_is_not_there_gets_no_terminal(bench: Bench) -> None:
    """A RuntimeFault at once, or an exit code that is not 0: never a terminal that hangs."""
    with bench.box() as box:
        try:
            pty = box.open_pty(["/no/such"])
        except RuntimeFault:
            return
        with closing(pty):
            hold(pty.wait(_SECONDS) not in (0, None), "it ends, and not well")


@GROUP.check()
def there_is_no_terminal_in_a_stopped_box(bench: Bench) -> None:
    """`stop`: nothing runs any more."""
    with bench.box() as box:
        box.stop()
        with refused("a terminal", RuntimeFault):
            box.open_pty(["cat"])
