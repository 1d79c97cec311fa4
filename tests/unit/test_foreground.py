"""Who waits for somebody to type: real programs, as jobs of a bash, on real terminals."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.runtime import foreground
from tests.support.waiting import eventually

A_WHILE = 0.3
READY = b"rea" + b"dy"
SHELL = 'exec 250<&0 252<>"$0" >&252 2>&252; exec bash --norc --noprofile --noediting -i <&250'


class Terminal:
    """A bash with job control, which gets its commands by a pipe and leads a terminal's session."""

    def __init__(self, folder: Path) -> None:
        self.master, slave = os.openpty()
        os.set_blocking(self.master, False)
        reading, self.commands = os.pipe()
        keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.shell = subprocess.Popen(
            ["bash", "-c", SHELL, os.ttyname(slave)],
            stdin=reading,
            cwd=folder,
            env=keep | {"HOME": str(folder), "TERM": "xterm", "LESSHISTFILE": "-"},
            start_new_session=True,
        )
        os.close(reading)
        self.slave = slave  # kept: a terminal that nobody has open yet would be taken for hung up
        self.control = os.readlink(f"/proc/self/fd/{self.commands}")
        self.printed = b""

    def drain(self) -> bytes:
        try:
            while part := os.read(self.master, 65536):
                self.printed = (self.printed + part)[-100_000:]
        except OSError:
            pass
        return self.printed

    def run(self, line: str) -> None:
        done = f"eval {shlex.quote(line)} <&252 250<&- 252<&-\n"
        os.write(self.commands, done.encode())

    def look(self) -> tuple[str, str, str] | None:
        self.drain()
        return foreground.look(self.shell.pid, self.control)

    def doing(self) -> str:
        return (self.look() or ("",))[0]

    def command(self) -> str:
        return (self.look() or ("", ""))[1]

    def awaits_input(self) -> bool:
        """As a caller has to ask: two looks that say the same, and nothing printed in between."""
        before, first = self.drain(), self.look()
        return (
            first is not None
            and first[0] == "input"
            and self.look() == first
            and self.drain() == before
        )

    def close(self) -> None:
        for _ in range(5):  # who makes children while they are ended
            for pid in self._pids():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.shell.wait()
        for handle in (self.master, self.slave, self.commands):
            os.close(handle)
        assert eventually(lambda: not self._pids())

    def _pids(self) -> list[int]:
        found = {pid for pid, _ in foreground._walk(self.shell.pid)}
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    if os.getsid(int(name)) == self.shell.pid:
                        found.add(int(name))
                except ProcessLookupError:
                    pass
        return sorted(found)


@pytest.fixture
def terminal(tmp_path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    made.close()


def py(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def case(line: str, name: str = "") -> object:
    return pytest.param(line, id=name or line)


IMPORTS = "import asyncio, os, select, selectors, signal, socket, sys, threading, time;"
AWAITS = [
    case("cat"),
    case("cat -u /dev/tty"),
    case('cat "$(tty)"', "cat by the terminal's name"),
    case("read x", "bash read"),
    case("read -s x </dev/tty", "bash read -s"),
    case("read -n 1 x", "bash read -n"),
    case("read -e x", "bash read -e"),
    case("read -t 100 x", "bash read -t"),
    case("select x in a b; do :; done", "bash select"),
    case("sh -i", "sh prompt"),
    case("bash --norc --noprofile -i", "nested bash"),
    case("bash --norc --noprofile --noediting -i", "nested bash without readline"),
    case("tee"),
    case("sort"),
    case("head -n1"),
    case("wc"),
    case("tr a b"),
    case("sed s/a/b/"),
    case("dd status=none"),
    case("xargs"),
    case("od -c"),
    case("tac"),
    case("md5sum"),
    case("cat | sort"),
    case("cat | cat | cat"),
    case("true | cat /dev/tty", "the first of a pipeline is over"),
    case("sleep 100 | cat /dev/tty", "beside one that sleeps"),
    case("sleep 100 & cat", "with a job in the background"),
    case("sh -c cat"),
    case("sh -c 'cat; :'", "sh which waits for cat"),
    case("(read x)", "subshell"),
    case("x=$(cat)", "command substitution"),
    case("while read x; do :; done", "while read"),
    case("timeout --foreground 100 cat"),
    case("env nice cat"),
    case("stty raw -echo; cat", "raw mode"),
    case(f"{shlex.quote(sys.executable)} -q", "python REPL"),
    case(py("input()"), "python input"),
    case(py("import getpass; getpass.getpass()"), "python getpass"),
    case(py(f"{IMPORTS} select.select([0], [], [])"), "python select"),
    case(py(f"{IMPORTS} select.select([0], [], [0], 100)"), "python select with a timeout"),
    case(py(f"{IMPORTS} p = select.poll(); p.register(0, 1); p.poll()"), "python poll"),
    case(py(f"{IMPORTS} p = select.epoll(); p.register(0, 1); p.poll()"), "python epoll"),
    case(
        py(
            f"{IMPORTS} p = select.epoll(); p.register(0, 1); "
            "q = select.epoll(); q.register(p.fileno(), 1); q.poll()"
        ),
        "an epoll in an epoll",
    ),
    case(
        py(f"{IMPORTS} s = selectors.DefaultSelector(); s.register(0, 1); s.select()"),
        "python selectors",
    ),
    case(
        py(f"{IMPORTS} l = asyncio.new_event_loop(); l.add_reader(0, print); l.run_forever()"),
        "python asyncio",
    ),
    case(
        py(
            f"{IMPORTS} a, b = socket.socketpair(); r, w = os.pipe(); select.select([a, r, 0],[],[])"
        ),
        "select with a pipe and a UNIX socket",
    ),
    case(py(f"{IMPORTS} os.readv(0, [bytearray(9)])"), "python readv"),
    case(
        py(f"{IMPORTS} t = threading.Thread(target=input); t.start(); t.join()"),
        "a thread reads, the first waits for it",
    ),
    case(
        py(
            f"{IMPORTS} threading.Thread(target=time.sleep, args=[100], daemon=True).start(); input()"
        ),
        "a thread sleeps",
    ),
    case(py("import subprocess; subprocess.run(['cat'])"), "a child of python"),
    case(py("import pty; pty.spawn(['cat'])"), "cat on a terminal within"),
    case(py("import pty; pty.spawn(['bash', '--norc', '-i'])"), "bash on a terminal within"),
]
IF_THERE = {
    "less": "seq 1000 | less",
    "more": "seq 1000 | more",
    "vi": "vi file",
    "vim": "vim file",
    "nano": "nano file",
    "ed": "ed",
    "bc": "bc -q",
    "dc": "dc",
    "sqlite3": "sqlite3",
    "gdb": "gdb -q -nx",
    "awk": "awk 1",
    "perl": "perl -e '<STDIN>'",
    "script": "script -qc cat /dev/null",
    "busybox": "busybox sh",
    "node": "node",
    "tclsh": "tclsh",
}


@pytest.mark.parametrize("line", AWAITS)
def test_a_program_that_reads_the_terminal_awaits_input(terminal, line):
    terminal.run(line)
    assert eventually(terminal.awaits_input, 20), (terminal.look(), terminal.printed)
    assert terminal.awaits_input()


@pytest.mark.parametrize("program", IF_THERE)
def test_so_does_what_may_be_installed(terminal, program):
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")
    terminal.run(IF_THERE[program])
    assert eventually(terminal.awaits_input, 20), (terminal.look(), terminal.printed)


SAY = f"{IMPORTS} print('rea' + 'dy', flush=True);"
SOCKET = "s = socket.create_connection(('127.0.0.1', int(os.environ['PORT'])));"
OTHERS = [
    case("echo ready; sleep 100", "sleep"),
    case("echo ready; sleep 100 | cat", "sleep | cat"),
    case("echo ready; while :; do :; done", "busy bash"),
    case("echo ready; while :; do sleep 0.01; done", "a loop of sleeps"),
    case("echo ready; while :; do read -t 0.01 x </dev/null; done", "a loop of empty reads"),
    case("sh -c 'echo ready; sleep 100; :'", "waits for a child"),
    case("sleep 100 & echo ready; wait", "bash wait"),
    case("mkfifo f; echo ready; read x <f", "bash opens a fifo"),
    case("mkfifo f; sleep 100 >f & echo ready; read x <f", "bash reads a fifo"),
    case("echo ready; read x < <(sleep 100)", "bash reads a pipe"),
    case("echo ready; x=$(sleep 100)", "bash reads what a command prints"),
    case("mkfifo f; sleep 100 >f & echo ready; cat f", "cat of a fifo"),
    case("echo ready; yes >/dev/null", "yes"),
    case("echo ready; dd if=/dev/zero of=/dev/null status=none", "dd"),
    case("echo ready; tail -f /dev/null", "tail -f of a device"),
    case("touch f; echo ready; tail -f f", "tail -f"),
    case("echo ready; timeout 100 sleep 100", "timeout"),
    case("echo ready; timeout --foreground 100 sleep 100", "timeout in the foreground"),
    case("sh -c 'sh -c \"echo ready; kill -STOP \\$\\$\"; :'", "a child is stopped"),
    case("sh -c 'sh -c \"kill -STOP \\$\\$\" & echo ready; exec cat'", "stopped beside a reader"),
    case("sh -c 'while :; do :; done & echo ready; exec cat'", "busy beside a reader"),
    case("echo ready; while :; do :; done | cat /dev/tty", "a pipeline with a busy one"),
    case(py(f"{SAY}\nwhile True: pass"), "busy python"),
    case(py(f"{SAY}\nwhile True: time.sleep(0.001)"), "naps"),
    case(py(f"{SAY} s = socket.create_server(('127.0.0.1', 0)); s.accept()"), "accept"),
    case(
        py(f"{SAY} s = socket.create_server(('127.0.0.1', 0)); select.select([s], [], [])"),
        "select on a server",
    ),
    case(py(f"{IMPORTS} {SOCKET} {SAY} s.recv(1)"), "recv"),
    case(py(f"{IMPORTS} {SOCKET} {SAY} os.read(s.fileno(), 1)"), "read of a socket"),
    case(py(f"{IMPORTS} {SOCKET} {SAY} select.select([0, s], [], [])"), "select on both"),
    case(
        py(
            f"{IMPORTS} {SOCKET} {SAY} p = select.poll(); p.register(0, 1); p.register(s, 1); p.poll()"
        ),
        "poll on both",
    ),
    case(
        py(
            f"{IMPORTS} {SOCKET} {SAY} p = select.epoll(); p.register(0, 1); p.register(s, 1); p.poll()"
        ),
        "epoll on both",
    ),
    case(
        py(f"{SAY} s = socket.socket(type=socket.SOCK_DGRAM); select.select([0, s], [], [])"),
        "select with a datagram socket",
    ),
    case(py(f"{SAY} r, w = os.pipe(); os.read(r, 1)"), "read of a pipe"),
    case(py(f"{SAY} a, b = socket.socketpair(); a.recv(1)"), "recv of a UNIX socket"),
    case(py(f"{SAY} import fcntl; fcntl.flock(open(os.environ['LOCK']), fcntl.LOCK_EX)"), "flock"),
    case(py(f"{SAY} threading.Event().wait()"), "a futex"),
    case(py(f"{SAY} threading.Event().wait(100)"), "a futex with a timeout"),
    case(py(f"{SAY} select.select([], [], [], 100)"), "select on nothing"),
    case(py(f"{SAY} select.select([], [], [0], 100)"), "select for exceptions only"),
    case(py(f"{SAY} select.poll().poll(100000)"), "poll on nothing"),
    case(py(f"{SAY} signal.sigwait([signal.SIGUSR1])"), "sigwait"),
    case(py(f"{SAY} signal.pause()"), "pause"),
    case(
        py(f"{IMPORTS} threading.Thread(target=input).start(); {SAY}\nwhile True: pass"),
        "a thread reads, another is busy",
    ),
    case(py(f"{SAY} m, s = os.openpty(); os.read(s, 1)"), "read of another terminal"),
    case(py(f"{SAY} m, s = os.openpty(); os.read(m, 1)"), "read of another terminal's other end"),
    case(py(f"import pty; {SAY} pty.spawn(['sleep', '100'])"), "sleep on a terminal within"),
    case(py(f"{SAY} asyncio.run(asyncio.sleep(100))"), "asyncio sleep"),
]


@pytest.mark.parametrize("line", OTHERS)
def test_a_program_that_waits_for_something_else_does_not(terminal, tmp_path, line):
    import fcntl

    lock = tmp_path / "lock"
    lock.touch()
    with socket.create_server(("127.0.0.1", 0)) as silent, lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        terminal.run(f"export PORT={silent.getsockname()[1]} LOCK={shlex.quote(str(lock))}")
        terminal.run(line)
        assert eventually(lambda: READY in terminal.drain(), 20)
        assert not eventually(terminal.awaits_input, A_WHILE), (terminal.look(), terminal.printed)
        assert terminal.doing() == "other"
