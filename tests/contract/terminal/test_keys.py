"""Typing into what runs, looking at it, and ending it."""

import hashlib
import time

import pytest

from sandbox.model.step import Keys, Run, Signal, Status, Wait
from tests.contract.terminal.table import skip_without
from tests.support.waiting import eventually

PASTED = "".join(f"line {i} of a paste, é\n" for i in range(4500))
WINDOW = """python3 -c '
import os, signal, time
signal.signal(signal.SIGWINCH, lambda *_: print(*os.get_terminal_size(), flush=True))
print("ready", flush=True)
while True: time.sleep(0.1)'"""


@pytest.fixture
def terminal(common_box, start):
    return start(common_box)


def keep(command: str, seconds: float = 20.0) -> Run:
    return Run(command, seconds=seconds, on_timeout="keep")


def fine(terminal) -> bool:
    seen = terminal.do(Run('echo ali"ve"42'))
    return (seen.output, seen.exit_code, seen.status) == ("alive42\n", 0, Status.EXITED)


def test_a_file_is_written_with_vi(terminal):
    skip_without("vi -u NONE")
    assert terminal.do(keep("vi -u NONE -n /tmp/written")).status is Status.AWAITING_INPUT
    seen = terminal.do(Keys("ihello", named=("Enter", "Escape"), screen=True))
    assert seen.screen is not None
    assert seen.screen.lines[:3] == ("hello", "", "~")
    assert terminal.do(Keys(":wq\r", seconds=20, until="exit")).exit_code == 0
    assert terminal.do(Run("cat /tmp/written")).output == "hello\n\n"


def test_less_is_paged_and_left(terminal):
    skip_without("less")
    seen = terminal.do(Run("seq 100 | less", on_timeout="keep", screen=True))
    assert seen.status is Status.AWAITING_INPUT
    assert seen.screen is not None
    assert seen.screen.lines == (*map(str, range(1, 40)), ":")
    seen = terminal.do(Keys("G", seconds=20, until="input", screen=True))
    assert seen.screen is not None
    assert seen.screen.lines[-2:] == ("100", "(END)")
    assert terminal.do(Keys("q", seconds=20, until="exit")).exit_code == 0
    assert fine(terminal)


def test_python_reckons(terminal):
    assert terminal.do(keep("python3 -q")).output == ">>> "
    seen = terminal.do(Keys("6*7\r", seconds=20, until="input"))
    assert (seen.output, seen.status) == ("6*7\n42\n>>> ", Status.AWAITING_INPUT)
    assert terminal.do(Keys("exit(3)\r", seconds=20, until="exit")).exit_code == 3
    assert terminal.do(Run("echo $?")).output == "3\n"


def test_a_password_is_asked_for_and_not_shown(terminal):
    seen = terminal.do(keep("read -s -p 'Password: ' p; echo; echo ${#p}"))
    assert (seen.output, seen.status) == ("Password: ", Status.AWAITING_INPUT)
    seen = terminal.do(Keys("secret\r", seconds=20, until="exit"))
    assert (seen.output, seen.exit_code) == ("\n6\n", 0)


def test_a_password_is_asked_for_in_pipe_mode(terminal):
    asks = "read -s -p 'Password: ' p </dev/tty 2>/dev/tty; echo ${#p}"
    seen = terminal.do(Run(asks, tty=False, on_timeout="keep"))
    assert (seen.background, seen.status) == ("Password: ", Status.AWAITING_INPUT)
    assert terminal.do(Keys("secret\r", seconds=20, until="exit")).output == "6\n"


def test_a_shell_in_the_shell_has_its_own_exit_code(terminal):
    assert terminal.do(keep("bash --norc")).status is Status.AWAITING_INPUT
    seen = terminal.do(Keys("echo $((40+2)); exit 4\r", seconds=20, until="exit"))
    assert seen.exit_code == 4
    assert "\r42\nexit\n" in seen.output


def test_named_keys_are_what_a_terminal_sends(terminal):
    terminal.do(keep("stty raw -echo; head -c 13 | od -An -tx1; stty sane"))
    names = ("Enter", "Tab", "Escape", "Up", "F1", "C-c", "M-x", "BSpace")
    seen = terminal.do(Keys(named=names, seconds=20, until="exit"))
    assert seen.output == " 0d 09 1b 1b 5b 41 1b 4f 50 03 1b 78 7f\n"


def test_keys_at_rest_go_to_a_shell_that_the_next_command_ends(terminal):
    seen = terminal.do(Keys("x=1; echo $((40+2))\r", seconds=20, until="input", text="42\r\n"))
    assert "\r42\n" in seen.output
    seen = terminal.do(Run("echo $x; cd /usr"))
    assert (seen.output, seen.status, seen.background) == ("\n", Status.EXITED, "")
    assert terminal.do(Keys("exit 5\r", seconds=20, until="exit")).exit_code == 5
    assert terminal.do(Run("echo $?; pwd")).output == "5\n/usr\n"


def test_stop_and_go_are_typed(terminal):
    assert terminal.do(keep("cat")).status is Status.AWAITING_INPUT
    assert terminal.do(Keys(named=("C-s",))).output == ""
    assert terminal.do(Keys("b\r", seconds=0.5, until="exit")).output == ""
    seen = terminal.do(Keys(named=("C-q",), seconds=20, text="b\r\nb\r\n"))
    assert seen.output == "b\nb\n"
    assert terminal.do(Keys(named=("C-d",), seconds=20, until="exit")).exit_code == 0
    assert fine(terminal)


def test_a_job_is_stopped_goes_on_and_comes_back(terminal):
    terminal.do(keep("sleep 100", 0.1))
    seen = terminal.do(Keys(named=("C-z",), seconds=20, until="exit"))
    assert seen.exit_code == 148
    assert seen.output == "^Z\n[1]+  Stopped                 sleep 100\n"
    assert terminal.do(Run("bg")).output == "[1]+ sleep 100 &\n"
    seen = terminal.do(keep("fg", 0.2))
    assert (seen.output, seen.status) == ("sleep 100\n", Status.RUNNING)
    seen = terminal.do(Keys(named=("C-c",), seconds=20, until="exit"))
    assert (seen.output, seen.exit_code) == ("^C\n", 130)
    assert terminal.do(Run("jobs")).output == ""


def test_while_something_runs_no_other_command_is_typed_into_it(terminal):
    assert terminal.do(keep("cat")).status is Status.AWAITING_INPUT
    seen = terminal.do(Run("echo typed"))
    assert (seen.status, seen.exit_code) == (Status.REFUSED, None)
    seen = terminal.do(Keys("a\r", seconds=20, text="a\r\na\r\n"))
    assert seen.output == "a\na\n"
    assert terminal.do(Keys(named=("C-d",), seconds=20, until="exit")).output == ""
    assert fine(terminal)


def test_a_text_is_waited_for_and_later_the_end(terminal):
    terminal.do(keep("for i in 1 2 3 4 5 6; do echo n$i; sleep 0.1; done; (exit 7)", 0.01))
    seen = terminal.do(Wait(20, text="n3"))
    assert seen.status is Status.RUNNING
    assert seen.output.endswith("n3\n")
    seen = terminal.do(Wait(20, text="nope"))
    assert (seen.output, seen.exit_code, seen.status) == ("n4\nn5\nn6\n", 7, Status.EXITED)


SIGNALS = {
    "INT": ("\n", 130),
    "TERM": ("Terminated\n", 143),
    "SIGKILL": ("Killed\n", 137),
    "quit": ("Quit\n", 131),
    "HUP": ("Hangup\n", 129),
    "USR1": ("User defined signal 1\n", 138),
    "STOP": ("\n[1]+  Stopped                 sleep 50\n", 147),
}


@pytest.mark.parametrize("name", SIGNALS)
def test_what_runs_is_sent_a_signal(terminal, name):
    terminal.do(keep("sleep 50", 0.1))
    seen = terminal.do(Signal(name, seconds=20))
    assert (seen.output, seen.exit_code) == SIGNALS[name]
    terminal.do(Run("kill -9 %1; wait"))
    assert fine(terminal)


def test_a_signal_for_the_session_spares_the_shell(terminal):
    terminal.do(Run("x=1; sleep 77 & sleep 78 &"))
    assert terminal.do(Signal("KILL", target="session")).status is Status.EXITED
    assert terminal.do(Run("wait; jobs; echo $x")).output.endswith("1\n")


def test_signals_that_are_none_and_for_nobody_are_refused(terminal):
    assert terminal.do(Signal("INT")).status is Status.REFUSED
    assert terminal.do(Signal("NOPE", target="session")).status is Status.REFUSED
    assert fine(terminal)


def test_what_ends_while_nobody_looks_is_told_to_the_next_who_waits(terminal):
    terminal.do(keep("sleep 1; echo last; (exit 6)", 0.05))
    time.sleep(2)
    seen = terminal.do(Wait(20))
    assert (seen.output, seen.exit_code, seen.status) == ("last\n", 6, Status.EXITED)
    assert terminal.do(Run("echo $?")).output == "6\n"


def test_what_ends_while_nobody_looks_is_shown_beside_the_next_command(terminal):
    for _ in range(10):  # on Docker, what says that it ended may come in another order
        before = terminal.do(keep("sleep 0.1; echo last; (exit 6)", 0.02))
        time.sleep(0.5)
        while (seen := terminal.do(Run("echo $?"))).status is Status.REFUSED:
            time.sleep(0.5)  # the machine is busy: it runs still
        # A busy machine may have been too slow not to see it.
        assert (seen.output, before.output + seen.background) == ("6\n", "last\n")


def test_what_runs_is_told_of_another_size(terminal):
    terminal.do(Run(WINDOW, seconds=0, on_timeout="keep"))
    assert eventually(lambda: "ready" in terminal.do(Wait(0.1)).output)
    terminal.resize(10, 20)
    assert eventually(lambda: "20 10\n" in terminal.do(Wait(0.1)).output)
    assert terminal.do(Signal("KILL", seconds=20)).exit_code == 137
    assert terminal.do(Run("stty size")).output == "10 20\n"


def test_a_paste_of_100_kb_arrives_whole(terminal):
    assert terminal.do(keep("cat > /tmp/pasted")).status is Status.AWAITING_INPUT
    terminal.do(Keys(PASTED, seconds=60, until="input"))
    assert terminal.do(Keys(named=("C-d",), seconds=20, until="exit")).exit_code == 0
    wanted = hashlib.md5(PASTED.encode(), usedforsecurity=False).hexdigest()
    assert terminal.do(Run("md5sum < /tmp/pasted")).output == f"{wanted}  -\n"


def test_half_characters_and_keys_that_are_none_are_refused(terminal):
    for keys in (Keys("\ud800"), Keys(named=("NoKey",)), Keys(text="\ud800")):
        assert terminal.do(keys).status is Status.REFUSED
    assert fine(terminal)
