"""The connection to a container's first process: the real server, at the end of a socket."""

import os
import pty
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from sandbox.errors import RuntimeFault
from sandbox.runtime.docker import facts, server
from sandbox.runtime.docker.channel import Channel, Command
from sandbox.runtime.docker.main import BOOT, PLAIN, program, sizes
from sandbox.runtime.docker.programs import WentDown, ask, look, run
from tests.support.waiting import eventually

ME = (0, 0)


def framed(content: bytes, stream: int = 1) -> bytes:
    """As the engine sends what a container prints."""
    return bytes((stream, 0, 0, 0)) + len(content).to_bytes(4, "big") + content


@contextmanager
def served() -> Iterator[tuple[Channel, subprocess.Popen[bytes]]]:
    """A server as a process of ours, and between it and the channel what the engine does."""
    near, far = socket.socketpair()
    argv = [sys.executable, "-I", "-S", "-B", "-c", BOOT, *sizes()]
    with far, subprocess.Popen(argv, stdin=far.fileno(), stdout=subprocess.PIPE) as process:
        pump = threading.Thread(target=engine, args=(process, far))
        pump.start()
        channel = Channel(near)
        try:
            channel.send(program())
            assert channel.ready(30)
            yield channel, process
        finally:
            channel.close()
            process.wait()
            pump.join()


def engine(process: subprocess.Popen[bytes], far: socket.socket) -> None:
    assert process.stdout is not None
    try:
        while block := os.read(process.stdout.fileno(), 1 << 15):
            far.sendall(framed(block))
        far.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


@pytest.fixture
def channel() -> Iterator[Channel]:
    with served() as (made, _):
        yield made


def sh(script: str, *, give: bytes = b"", keep: int = 1 << 20) -> Command:
    env = {"PATH": "/usr/bin:/bin"}
    return Command(
        argv=["sh", "-c", script], env=env, cwd="/", user=ME, input=give, output_bytes=keep
    )


def test_a_program_runs_with_its_streams_apart(channel: Channel):
    ended = run(channel, sh("cat; echo err >&2; exit 5", give=b"in"), 30)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (5, b"in", b"err\n")


def test_large_input_and_output_pass_in_small_steps(channel: Channel):
    data = bytes(range(256)) * 8000
    assert run(channel, sh("cat", give=data, keep=4 << 20), 30).stdout == data


def test_only_the_beginning_of_each_stream_is_sent(channel: Channel):
    ended = run(channel, sh("head -c 9000000 /dev/zero; echo err >&2", keep=10), 30)
    assert (ended.stdout, ended.stderr, ended.truncated) == (bytes(10), b"err\n", True)


def test_programs_of_many_threads_do_not_mix(channel: Channel):
    def ask(number: int) -> bytes:
        return run(channel, sh(f"sleep 0.0{number % 5}; echo {number}"), 30).stdout

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(40))) == [b"%d\n" % n for n in range(40)]


def test_a_program_that_goes_on_does_not_hold_up_another(channel: Channel):
    slow = threading.Thread(target=run, args=(channel, sh("sleep 2"), 30))
    slow.start()
    began = time.monotonic()
    run(channel, sh("true"), 30)
    assert time.monotonic() - began < 1.5
    slow.join()


def test_what_cannot_be_started_is_told_and_the_next_one_runs(channel: Channel):
    for broken in ("no-such-program", ""):
        command = Command(argv=[broken], env={}, cwd="/", user=ME, input=b"", output_bytes=1)
        with pytest.raises(RuntimeFault, match="cannot run"):
            run(channel, command, 30)
    assert run(channel, sh("echo fine"), 30).stdout == b"fine\n"


def test_requests_that_make_no_sense_are_survived(channel: Channel):
    for kind, content in ((server.RUN, b"nonsense"), (server.INPUT, b"x"), (99, b""), (0, b"\0")):
        number = (1 << 31).to_bytes(4, "big")
        channel.send(len(content).to_bytes(4, "big") + bytes((kind,)) + number + content)
    assert run(channel, sh("echo fine"), 30).stdout == b"fine\n"


def test_time_that_is_up_is_no_exit_code(channel: Channel):
    ended = run(channel, sh("echo begun; exec sleep 60"), 0.5)
    assert (ended.exit_code, ended.stdout) == (None, b"begun\n")


def test_a_server_that_dies_ends_what_waits_for_it():
    with served() as (channel, process), ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(run, channel, sh("echo begun; exec sleep 60"), 60) for _ in range(2)]
        assert run(channel, sh("true"), 30).exit_code == 0
        process.kill()
        for one in asked:
            with pytest.raises(WentDown):
                one.result(10)
        with pytest.raises(WentDown):
            run(channel, sh("true"), 30)


@contextmanager
def on_a_terminal(*argv: str) -> Iterator[tuple[int, int]]:
    """The process and the terminal of a program that has one."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    try:
        yield pid, terminal
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def test_the_server_tells_who_waits_for_somebody_to_type(channel: Channel):
    with on_a_terminal("cat") as (cat, terminal), on_a_terminal("sleep", "60") as (sleeps, _):
        os.write(terminal, b"begun\n")
        os.read(terminal, 100)

        def told(pid: int) -> tuple[str, str] | None:
            found = look(channel, pid, "", 30)
            return None if found is None else (found.doing, found.command)

        # Either may still be this test's own program, just before it becomes the other.
        assert eventually(lambda: told(cat) == ("input", "cat"))
        assert eventually(lambda: told(sleeps) == ("other", "sleep"))


def test_of_what_is_not_there_nothing_is_told_and_the_server_goes_on(channel: Channel):
    assert look(channel, os.getpid(), "no\0pipe", 5) is None
    assert look(channel, 1 << 30, "", 5) is None
    ask(channel, server.TIE, 5, b"%d\0%d" % (1 << 30, os.getpid()))
    assert run(channel, sh("echo fine"), 30).stdout == b"fine\n"


def test_a_process_ends_with_the_one_that_it_is_tied_to(channel: Channel):
    with (
        subprocess.Popen(["sleep", "60"]) as other,
        subprocess.Popen(["sleep", "60"]) as first,
    ):
        ask(channel, server.TIE, 5, b"%d\0%d" % (first.pid, other.pid))
        assert other.poll() is None
        first.kill()
        assert other.wait(10) == -9


def test_the_server_ends_with_its_connection():
    with served() as (channel, process):
        channel.close()
        assert process.wait(10) == 0


@pytest.mark.parametrize("sent", [framed(b"\xff" * 20), framed(bytes(server.HEAD - 1) + b"\x0b")])
def test_what_is_no_frame_of_a_server_breaks_the_channel_and_no_more(sent: bytes):
    near, far = socket.socketpair()
    with far:
        far.sendall(sent)
        far.shutdown(socket.SHUT_RDWR)
        with pytest.raises(RuntimeFault, match="does not answer"):
            Channel(near).ready(5)
    near.close()


def test_a_container_without_a_server_says_so():
    near, far = socket.socketpair()
    with near, far:
        far.sendall(framed(b"noise", stream=2) + framed(PLAIN))
        assert not Channel(near).ready(5)


def test_measures_of_either_version_of_control_groups_are_read():
    one = [b"4096\n", b"under_oom 0\noom_kill 3\n", b"7\n", b"max 2\n", b"1500000000\n", b"4"]
    two = [b"4096\n", b"max 9\noom 4\noom_kill 3\n", b"7\n", b"max 2\n", b"usage_usec 1500000\n"]
    for measures in (one, [*two, b"4"]):
        found = facts.parse(b"\0".join(measures))
        assert (found.memory_bytes, found.processes, found.terminals) == (4096, 7, 4)
        assert (found.oom_kills, found.forks_refused, found.cpu_seconds) == (3, 2, 1.5)
    assert facts.parse(b"") == facts.NOTHING
