"""Who waits for somebody to type: real programs, as jobs of a bash, on real terminals."""

import ast
import fcntl
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.runtime import foreground, procs
from tests.support.jobs import py
from tests.support.waiting import eventually

A_WHILE = 0.3
READY = b"ready"


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
    case(
        py(
            "import ctypes; b = ctypes.create_string_buffer(b'\\1' + bytes(9999) + b'\\377' * 200000);"
            "ctypes.CDLL(None).select(1 << 20, b, None, None, None)"
        ),
        "select with a count beyond all descriptors",
    ),
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
    case(
        py(f"{SAY} m, s = os.openpty(); select.select([0, m], [], [])"),
        "a terminal within with nobody on it",
    ),
    case(py(f"{SAY} asyncio.run(asyncio.sleep(100))"), "asyncio sleep"),
]


@pytest.mark.parametrize("line", OTHERS)
def test_a_program_that_waits_for_something_else_does_not(terminal, tmp_path, line):
    lock = tmp_path / "lock"
    lock.touch()
    with socket.create_server(("127.0.0.1", 0)) as silent, lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        terminal.run(f"export PORT={silent.getsockname()[1]} LOCK={shlex.quote(str(lock))}")
        terminal.run(line)
        assert eventually(lambda: READY in terminal.drain(), 20)
        assert not eventually(terminal.awaits_input, A_WHILE), (terminal.look(), terminal.printed)
        assert terminal.doing() == "other"


def test_a_shell_that_waits_for_its_next_command_is_told_by_its_control(terminal):
    assert eventually(lambda: terminal.doing() == "control")
    shell = terminal.shell.pid
    assert terminal.command() == "bash"
    assert (foreground.look(shell) or ("",))[0] == "control"
    assert (foreground.look(shell, "none") or ("",))[0] == "other"


def test_a_shell_that_has_lost_its_control_waits_for_it_in_vain(terminal):
    assert eventually(lambda: terminal.doing() == "control")
    assert (foreground.look(terminal.shell.pid, "pipe:[1]") or ("",))[0] == "control"


def test_it_is_so_again_when_a_command_is_over(terminal):
    terminal.run("cat")
    assert eventually(terminal.awaits_input)
    assert terminal.command() == "cat"
    os.write(terminal.master, b"\x04")
    assert eventually(lambda: terminal.doing() == "control")
    terminal.run("sh -c 'kill -STOP $$'")
    terminal.run("echo stopped")
    assert eventually(lambda: b"stopped" in terminal.drain())
    assert eventually(lambda: terminal.doing() == "control")


def test_the_one_that_waits_is_named_and_not_the_groups_first(terminal):
    terminal.run("sleep 100 | cat /dev/tty | sort")
    assert eventually(terminal.awaits_input)
    assert terminal.command() == "cat"


def test_a_name_with_brackets_and_blanks_is_read_right(terminal, tmp_path):
    shutil.copy(shutil.which("cat") or "", tmp_path / "a) R 1 (b\n")
    terminal.run("./$'a) R 1 (b\\n'")
    assert eventually(terminal.awaits_input)
    assert terminal.command() == "a) R 1 (b\n"


def test_the_trace_changes_with_every_line_that_is_read(terminal):
    terminal.run("while read x; do :; done")
    traces = set()
    for _ in range(5):
        assert eventually(terminal.awaits_input)
        traces.add(terminal.look())
        os.write(terminal.master, b"line\n")
        assert eventually(lambda: terminal.look() not in traces)
    assert len(traces) == 5


def test_a_poll_with_a_timeout_still_awaits_input_after_a_stop(terminal):
    code = f"p = select.poll(); p.register(0, 1); {SAY} print('=%d=' % os.getpid()); p.poll(100000)"
    terminal.run(f"sh -c {shlex.quote(py(f'{IMPORTS} {code}') + '; :')}")
    assert eventually(terminal.awaits_input, 20)
    pid = int(terminal.printed.split(b"=")[-2])
    os.kill(pid, signal.SIGSTOP)
    assert eventually(lambda: terminal.doing() == "other")
    os.kill(pid, signal.SIGCONT)
    assert eventually(terminal.awaits_input)


def test_who_has_lost_its_parent_is_found_too(terminal):
    terminal.run("sh -c 'sh -c \"(echo ready; cat /dev/tty) & exit\"' | sleep 100")
    assert eventually(terminal.awaits_input)
    assert terminal.command() == "cat"


def test_a_kernel_that_does_not_list_children_is_searched(terminal):
    terminal.run("cat | sort | wc")
    assert eventually(terminal.awaits_input)
    stat = procs.stat_of(f"/proc/{terminal.shell.pid}")
    assert stat is not None
    work = procs.Work()
    found = {pid for pid, _ in procs.members_of(terminal.shell.pid, stat.tpgid, work)}
    assert len(found) == 3
    assert {pid for pid, _ in procs.scan(stat.tpgid, work)} == found


def test_a_process_that_is_gone_or_has_no_terminal_is_not_guessed_about(terminal):
    alone = subprocess.Popen(["sleep", "100"], start_new_session=True)
    assert foreground.look(alone.pid) is None
    alone.kill()
    alone.wait()
    assert foreground.look(alone.pid) is None
    terminal.shell.kill()
    assert eventually(lambda: terminal.look() is None)


def test_a_thousand_commands_never_seem_to_await_input(terminal):
    assert eventually(lambda: terminal.doing() == "control")
    terminal.run("for i in {1..1000}; do env true; done; echo re''ady")
    seen = set()
    while READY not in terminal.drain():
        seen.add(terminal.doing())
    assert eventually(lambda: terminal.doing() == "control")
    for number in range(100):
        terminal.run(f"/bin/echo =$(({number}))=")
        wanted = f"={number}=".encode()
        while wanted not in terminal.drain():
            seen.add(terminal.doing())
    assert seen <= {"other", "control"}


def test_it_runs_on_the_oldest_python_that_may_be_in_a_box(terminal):
    code, name = "import sys\n", ""
    for module in (procs, foreground):
        text = Path(module.__file__ or "").read_text()
        imported = {line.split()[1] for line in text.splitlines() if line.startswith("import ")}
        assert imported == {"os"}
        ast.parse(text, feature_version=(3, 8))
        name = f"sys.modules[{module.__name__!r}]"
        code += f"{name} = type(sys)('it')\nexec({text!r}, {name}.__dict__)\n"
    terminal.run("cat")
    assert eventually(terminal.awaits_input)
    code += f"print({name}.look({terminal.shell.pid})[:2])"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, check=True)
    assert done.stdout == b"('input', 'cat')\n"
