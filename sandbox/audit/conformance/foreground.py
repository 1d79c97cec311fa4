"""What is told of a terminal's foreground: whether it waits for somebody to type."""

import os
import signal
import time
from collections.abc import Callable

from sandbox.audit.conformance.bench import Bench, Unseen, eventually, expect, hold, said
from sandbox.audit.conformance.registry import Group
from sandbox.audit.conformance.terminals import read_until, terminal
from sandbox.runtime.base import CONTROL, Box, Foreground, Pty

GROUP = Group("foreground")
_SECONDS = 30.0
_AROUND = 'sh -c "$0"; echo over; sleep 60; true'
_WAIT: dict[str, list[str]] = {
    "cat": ["cat"],
    "bash": ["bash", "-c", "read -r line"],
    "python3": ["python3", "-c", "input('name? ')"],
    "sh": ["sh", "-c", "true & read -r line"],
}
_DO_NOT: dict[str, list[str]] = {
    "sleeping": ["sleep", "60"],
    "busy": ["bash", "-c", "while :; do :; done"],
    "waiting for a child": ["bash", "-c", "sleep 60; true"],
    "reading a pipe": ["bash", "-c", "read -r line < <(sleep 60)"],
    "waiting for a connection": [
        "python3", "-c", "import socket; s = socket.create_server(('127.0.0.1', 0)); s.accept()",
    ],
}  # fmt: skip


def look(pty: Pty) -> Foreground:
    found = pty.foreground()
    if found is None:
        raise Unseen("this runtime cannot tell, here, what a terminal's foreground does")
    return found


def comes_to(pty: Pty, true: Callable[[Foreground], bool], what: str) -> None:
    look(pty)
    reached = eventually(lambda: true(look(pty)), _SECONDS)
    hold(reached, f"{what}; found was {look(pty)}")


def _waits(pty: Pty, command: str) -> None:
    comes_to(pty, lambda f: (f.doing, f.command) == ("input", command), f"{command} waits")
    one, two = look(pty), look(pty)
    expect(two, one, "a second look at a program that waits")


def _does_not(pty: Pty, name: str) -> None:
    time.sleep(0.3)
    found = [look(pty).doing for _ in range(5)]
    expect(found, ["other"] * 5, f"a program that is {name}")


def _each(box: Box, **options: str) -> None:
    for command, argv in _WAIT.items():
        with terminal(box, *argv, **options) as pty:
            _waits(pty, command)
    for name, argv in _DO_NOT.items():
        with terminal(box, *argv, **options) as pty:
            look(pty)
            _does_not(pty, name)


@GROUP.check()
def who_waits_for_somebody_to_type_is_told_from_all_others(bench: Bench) -> None:
    """`input`, with the name of the one that waits, or `other`."""
    with bench.box() as box:
        _each(box)


@GROUP.check()
def that_of_somebody_who_is_not_root_is_told_too(bench: Bench) -> None:
    """`user`."""
    with bench.box() as box:
        _each(box, user="1234:2345", cwd="/")


@GROUP.check()
def what_has_been_typed_makes_a_difference(bench: Bench) -> None:
    """`trace` is another as soon as anything was done."""
    with bench.box() as box, terminal(box, "cat") as pty:
        _waits(pty, "cat")
        before = look(pty)
        os.write(pty.fileno(), b"line\n")
        read_until(pty, b"line\r\nline\r\n")
        _waits(pty, "cat")
        hold(look(pty).trace != before.trace, "it can be seen that it did something")


@GROUP.check()
def the_job_of_a_shell_is_looked_at_and_not_the_shell(bench: Bench) -> None:
    """The group that the keys go to."""
    argv = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
    with bench.box() as box, terminal(box, *argv, env={"PS1": "$ "}) as pty:
        _waits(pty, "bash")
        for line, command in ((b"sleep 60 | cat\n", "sleep"), (b"\x03cat\n", "cat")):
            os.write(pty.fileno(), line)
            comes_to(pty, lambda f, c=command: f.command == c, f"{command} is in front")  # type: ignore[misc]
            if command == "cat":
                _waits(pty, "cat")
            else:
                _does_not(pty, "a pipe of which nobody reads the terminal")


@GROUP.check()
def a_shell_that_waits_for_its_control_is_told_apart(bench: Bench) -> None:
    """`control`: another pipe is not it."""
    script = f"read -r one <&{CONTROL}; read -r two; read -r three < <(sleep 60)"
    with bench.box() as box, terminal(box, "bash", "-c", script, wires=True) as pty:
        comes_to(pty, lambda f: f.doing == "control", "it waits for its control")
        wires = pty.wires
        hold(wires is not None and wires.send(b"x\n", _SECONDS), "it is taken")
        _waits(pty, "bash")
        os.write(pty.fileno(), b"x\n")
        comes_to(pty, lambda f: f.doing == "other", "it waits for another pipe")
        _does_not(pty, "reading another pipe")


@GROUP.check()
def of_a_program_that_has_ended_nothing_is_told(bench: Bench) -> None:
    """`foreground`: None."""
    with bench.box() as box, terminal(box, "true") as pty:
        expect(pty.wait(_SECONDS), 0, "exit code")
        expect(pty.foreground(), None, "what is told afterwards")


@GROUP.check()
def what_is_in_front_is_signalled_with_all_it_has_started(bench: Bench) -> None:
    """`signal`: also what left the group; the leader only when it is named; 0 signals nobody."""
    inner = "setsid sleep 60 & echo $PPID $$ $!; wait; true"
    with bench.box() as box, terminal(box, "bash", "-c", _AROUND, inner) as pty:
        shell, *started = map(int, read_until(pty, b"\n").split())
        hold(eventually(lambda: _left(box, started[1]), _SECONDS), "one has left the group")
        expect(box.signal(shell, 0), sorted(started), "who is there")
        expect(box.signal(shell, 0, scope="none"), [], "nobody")
        expect(box.signal(shell, signal.SIGKILL), sorted(started), "who was killed")
        hold(b"over" in read_until(pty, b"over\r\n"), "the leader goes on")
        expect(box.signal(shell, signal.SIGKILL, scope="none", more=[shell]), [shell], "the leader")
        expect(pty.wait(_SECONDS), 137, "the leader's exit code")


def _left(box: Box, pid: int) -> bool:
    return said(box, "cut", "-d", " ", "-f", "5", f"/proc/{pid}/stat").strip() == str(pid)
