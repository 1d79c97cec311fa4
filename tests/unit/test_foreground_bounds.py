"""What a look at a terminal's foreground costs, whoever is looked at; and a shell past its limits."""

import os
import sys
from types import FrameType

import pytest

from sandbox.runtime import foreground
from tests.support.jobs import Terminal, py
from tests.support.waiting import eventually

A_WHILE = 0.3
READY = b"ready"
MOST_CALLS = 200_000
"""Into C. A look at a usual program is made of some hundred."""
IMPORTS = (
    "import ctypes, os, pty, resource, select, subprocess, sys, threading, time;"
    "most = resource.getrlimit(resource.RLIMIT_NOFILE)[1];"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most));"
    "threading.stack_size(65536);"
    "say = lambda: print('rea' + 'dy', flush=True);"
)
THREADS = "[threading.Thread(target={}, daemon=True).start() for _ in range({})];"
EPOLLS = f"""{IMPORTS}
inner = [select.epoll() for _ in range(WIDE)]
outer = [select.epoll() for _ in range(WIDE)]
for one in outer:
    for other in inner:
        one.register(other.fileno(), 1)
top = select.epoll()
top.register(0, 1)
for one in outer:
    top.register(one.fileno(), 1)
{THREADS.format("top.poll", 60)}
say()
top.poll()
"""
POLLS = f"""{IMPORTS}
poll = ctypes.CDLL(None).poll
table = (ctypes.c_uint64 * 5000)(*[1 << 32] * 5000)
wait = lambda: poll(table, 5000, -1)
{THREADS.format("wait", 400)}
say()
wait()
"""
SELECTS = f"""{IMPORTS}
top = min(most, 1 << 16) - 8
for number in range(48, top):
    os.dup2(1, number)
full = bytes(48 // 8) + b'\\xff' * ((top - 56) // 8) + bytes(64)
wait = lambda: ctypes.CDLL(None).select(top, None, None, ctypes.create_string_buffer(full), None)
{THREADS.format("wait", 100)}
say()
wait()
"""
RELAYS = f"""{IMPORTS}
masters = [os.openpty()[0] for _ in range(200)]
for _ in range(200):
    if os.fork() == 0:
        time.sleep(1000)
wait = lambda: select.select([0, *masters], [], [])
say()
wait()
"""
TOO_MUCH = {
    "epolls in epolls, each in many": EPOLLS.replace("WIDE", "300"),
    "threads, each with a long poll": POLLS,
    "threads, each with a full select": SELECTS,
    "terminals within, and processes to look for them": RELAYS,
    "threads": f"{IMPORTS} {THREADS.format('lambda: time.sleep(1000)', 600)} say(); input()",
}


def calls_of_a_look(terminal: Terminal) -> tuple[int, str]:
    """How many calls a look makes, and what it finds. It is stopped where it makes very many."""
    count = 0

    def called(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "c_call"
        if count > MOST_CALLS:
            raise AssertionError("a look without an end")

    sys.setprofile(called)
    try:
        found = foreground.look(terminal.shell.pid, terminal.control)
    finally:
        sys.setprofile(None)
    return count, (found or ("",))[0]


@pytest.mark.parametrize("code", TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_look_comes_to_an_end_however_much_there_is(terminal: Terminal, code: str):
    terminal.run(py(code))
    assert eventually(lambda: READY in terminal.drain(), 60), terminal.printed
    for _ in range(3):
        calls, doing = calls_of_a_look(terminal)
        assert calls < MOST_CALLS
        assert doing == "other"
    assert len((terminal.look() or ("", "", ""))[2]) < 100


def test_what_cannot_be_looked_through_is_called_by_its_name(terminal: Terminal):
    terminal.run(py(TOO_MUCH["threads"]))
    assert eventually(lambda: READY in terminal.drain(), 60), terminal.printed
    assert terminal.command().startswith("python")


def test_many_threads_that_share_what_they_wait_for_are_looked_through(terminal: Terminal):
    terminal.run(py(EPOLLS.replace("WIDE", "20")))
    assert eventually(lambda: READY in terminal.drain(), 60), terminal.printed
    assert eventually(terminal.awaits_input)


@pytest.mark.parametrize("most", [4, 12, 60, 251])
def test_a_shell_that_cannot_put_its_descriptors_back_has_lost_its_control(
    terminal: Terminal, most: int
):
    assert eventually(lambda: terminal.doing() == "control")
    terminal.run(f"ulimit -n {most}")
    assert eventually(lambda: b"Bad file descriptor" in terminal.drain())
    assert eventually(lambda: terminal.doing() == "control")
    terminal.run("echo re''ady")
    assert not eventually(lambda: READY in terminal.drain(), A_WHILE)


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("read x", b"x\n"),
        ("read -n 9 x", b"x\n"),
        ("read -t 100 x", b"x\n"),
        ("mapfile x", b"\x04"),
    ],
)
def test_not_before_the_command_is_over(terminal: Terminal, line: str, typed: bytes):
    terminal.run(f"ulimit -n 60; {line}")
    assert eventually(terminal.awaits_input)
    os.write(terminal.master, typed)
    assert eventually(lambda: terminal.doing() == "control")


@pytest.mark.parametrize("line", ["read -N 1024 x", "(ulimit -n 60; exec cat)"])
def test_nor_is_it_lost_when_only_one_of_the_two_signs_is_there(terminal: Terminal, line: str):
    terminal.run(line)
    assert eventually(terminal.awaits_input)
    assert not eventually(lambda: terminal.doing() == "control", A_WHILE)
