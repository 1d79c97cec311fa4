"""Who waits for somebody to type, and who only seems to."""

import pytest

from sandbox.model.step import Keys, Run, Status
from tests.contract.terminal.table import skip_without

LISTENS = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); "
WAIT = {
    "cat": "cat",
    "cat of /dev/tty": "cat </dev/tty",
    "cat behind a pipe": "cat | cat",
    "head": "head -1",
    "wc": "wc",
    "sort": "sort",
    "tee": "tee /dev/null",
    "sed": "sed s/a/b/",
    "grep": "grep x",
    "od": "od -An -tx1",
    "read": "read x",
    "read of a secret": "read -s -p 'Password: ' x",
    "read in a loop": "while read -r x; do :; done",
    "read with a limit": "read -t 100 x",
    "select": "select x in a b; do break; done",
    "sh": "sh",
    "bash": "bash --norc",
    "bash without readline": "bash --norc --noediting",
    "a script in a terminal": "script -q /dev/null",
    "less": "seq 1000 | less",
    "vi": "vi -u NONE -n /tmp/some",
    "python": "python3 -q",
    "python's input": "python3 -c 'input()'",
    "python's stdin": "python3 -c 'import sys; sys.stdin.read()'",
    "python's getpass": "python3 -c 'import getpass; getpass.getpass()'",
    "python's pdb": "python3 -c 'breakpoint()'",
    "python's select": "python3 -c 'import select; select.select([0], [], [])'",
    "python's poll": "python3 -c 'import select; p = select.poll(); p.register(0, 1); p.poll()'",
    "python's child": "python3 -c 'import os; os.system(\"cat\")'",
    "python of /dev/tty": "python3 -c 'open(\"/dev/tty\").read()' </dev/null",
    "rm that asks": "touch /tmp/ask; rm -i /tmp/ask",
}
DO_NOT = {
    "sleep": "sleep 50",
    "a busy loop": "while :; do :; done",
    "a busy python": "python3 -c 'while True: pass'",
    "a sleeping python": "python3 -c 'import time; time.sleep(50)'",
    "a server": f'python3 -c "{LISTENS}s.accept()"',
    "a client": f'python3 -c "{LISTENS}c = socket.create_connection(s.getsockname()); c.recv(1)"',
    "select of a socket": f'python3 -c "{LISTENS}import select; select.select([s], [], [])"',
    "poll of a pipe": "python3 -c 'import os, select; p = select.poll(); p.register(os.pipe()[0], 1); p.poll()'",
    "read of a pipe": "sleep 50 | cat",
    "read of a fifo": "mkfifo /tmp/fifo; cat /tmp/fifo",
    "a lock": "python3 -c 'import threading; l = threading.Lock(); l.acquire(); l.acquire()'",
    "a thread that works": "python3 -c 'import threading; threading.Thread(target=input).start()\nwhile True: pass'",
    "a file lock": 'python3 -c \'import fcntl; a = open("/tmp/l", "w"); fcntl.flock(a, 2); b = open("/tmp/l", "w"); fcntl.flock(b, 2)\'',
    "wait": "sleep 50 & wait",
    "a signal": "python3 -c 'import signal; signal.pause()'",
    "a child": "python3 -c 'import os; os.system(\"sleep 50\")'",
    "tail -f": "tail -f /etc/passwd",
    "timeout": "timeout 50 sleep 50",
    "a reader whose peer works": "cat | (while :; do :; done)",
    "yes into nothing": "yes >/dev/null",
    "pipes without end": "yes | cat >/dev/null",
    "a cat that is behind": "(sleep 50; cat)",
    "nohup": "nohup sleep 50 2>/dev/null",
    "epoll": "python3 -c 'import select; select.epoll().poll()'",
}


@pytest.mark.parametrize("name", WAIT)
def test_it_waits_for_somebody_to_type(common_box, start, name):
    skip_without(WAIT[name])
    terminal = start(common_box)
    seen = terminal.do(Run(WAIT[name], seconds=20, on_timeout="keep"))
    assert (seen.status, seen.exit_code) == (Status.AWAITING_INPUT, None)
    assert seen.seconds < 19


@pytest.mark.parametrize("name", DO_NOT)
def test_it_does_not_wait_for_anybody(common_box, start, name):
    terminal = start(common_box)
    seen = terminal.do(Run(DO_NOT[name], seconds=0.7, on_timeout="keep"))
    assert (seen.status, seen.exit_code) == (Status.RUNNING, None)


def test_in_a_thousand_short_commands_there_is_no_false_alarm(common_box, start):
    terminal = start(common_box)
    commands = ("true", "echo a", "/bin/true", "cat </dev/null", "echo a | cat", "(exit 0)")
    for number in range(1000):
        run = Run(commands[number % len(commands)], tty=number % 7 > 0, on_timeout="keep")
        assert terminal.do(run).status is Status.EXITED


def test_what_is_typed_ahead_is_no_false_alarm(common_box, start):
    terminal = start(common_box)
    terminal.do(Run("sleep 1; read x; read y; echo $x$y", seconds=0.1, on_timeout="keep"))
    seen = terminal.do(Keys("a\rb\r", seconds=20, until="exit"))
    assert (seen.exit_code, seen.output.endswith("ab\n")) == (0, True)
