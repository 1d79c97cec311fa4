"""Folders with odd names, boxes that are full, and boxes that end under a terminal."""

import threading

import pytest

from sandbox.model.step import Keys, Run, Signal, Status, Wait
from tests.contract.terminal.conftest import agents_box
from tests.support.waiting import eventually

NAMES = ("a\nb", "a'b\"c\\d", "\udcff\udcfe", "é漢", " ", "-n", "$(x)", "*", "\t\x1b]7133;2\x07")

NOT_DONE = "the shell had ended before: this was not done\n"
NOT_KNOWN = "the shell has ended: whether this was begun is not known\n"
DIED_AT_ONCE = ((Status.RESTARTED, 9, ""), (Status.EXITED, 0, "a\n"))
DIED_LATER = ((Status.EXITED, 0, ""), (Status.RESTARTED, 9, NOT_DONE))
DIED_WITH_THE_NEXT = ((Status.EXITED, 0, ""), (Status.RESTARTED, 9, ""))
DIED_UNSEEN = ((Status.EXITED, 0, ""), (Status.RESTARTED, 9, NOT_KNOWN))


@pytest.mark.parametrize("name", NAMES)
def test_the_folder_is_told_and_kept_whatever_its_name(common_box, start, name):
    terminal = start(common_box)
    quoted = name.replace("'", "'\\''")
    terminal.do(Run(f"mkdir -p -- '/tmp/q/{quoted}'; cd -- '/tmp/q/{quoted}'"))
    assert terminal.do(Run("true")).cwd == f"/tmp/q/{name}"
    seen = terminal.do(Run("exit 3"))
    assert (seen.status, seen.exit_code) == (Status.RESTARTED, 3)
    if name != "\udcff\udcfe":  # Docker starts nothing in a folder that is no UTF-8
        assert seen.cwd == f"/tmp/q/{name}"
    assert terminal.do(Run('[ . -ef "$PWD" ]')).exit_code == 0


@pytest.mark.parametrize("tty", [True, False])
@pytest.mark.parametrize("nth", range(1, 9))
def test_a_shell_that_ends_after_a_command_says_whether_that_was_done(common_box, start, nth, tty):
    """Between two of our own words: told with the command, or with the next, never with both."""
    told = set()
    for _ in range(3):
        terminal = start(common_box)
        trap = f"n=0; trap '((n++ < {nth})) || exit 9' DEBUG"
        both = [terminal.do(Run(command, tty=tty)) for command in (trap, "echo a")]
        told.add(tuple((seen.status, seen.exit_code, seen.output) for seen in both))
    # Which it is, is the shell's to say as long as its last words reach us; an engine may lose them.
    assert told <= {DIED_AT_ONCE, DIED_LATER, DIED_WITH_THE_NEXT, DIED_UNSEEN}
    assert len(told - {DIED_UNSEEN}) <= 1


@pytest.mark.parametrize("tty", [True, False])
def test_a_command_that_was_done_is_told_so_though_the_shell_ends_at_once(
    shared, common_box, start, tty
):
    """On Docker its mark, its report and the end of the shell may come in any order."""
    undone = {NOT_DONE} if shared[0].runtime.name == "embedded" else {NOT_DONE, NOT_KNOWN}
    for _ in range(15):
        terminal = start(common_box)
        done, after = (
            terminal.do(Run(command, tty=tty))
            for command in ("echo last; PROMPT_COMMAND='exit 7'", "echo a")
        )
        assert (done.output, done.exit_code, done.status) == ("last\n", 0, Status.EXITED)
        assert (after.exit_code, after.status) == (7, Status.RESTARTED)
        assert after.output in undone


def test_a_folder_of_4000_characters_is_told_and_kept(common_box, start):
    terminal = start(common_box)
    deep = "cd /tmp; for i in {1..20}; do d=$(printf %0199d $i); mkdir -p $d; cd $d; done"
    terminal.do(Run(deep))
    assert len(terminal.do(Run("true")).cwd) == 4004
    assert terminal.do(Run("exit 3")).status is Status.RESTARTED
    assert terminal.do(Run("echo ${#PWD}; cd /; rm -r /tmp/000*")).output == "4004\n"


def test_a_folder_that_is_gone_is_left_only_by_a_new_shell(common_box, start):
    terminal = start(common_box)
    terminal.do(Run("mkdir /tmp/gone; cd /tmp/gone; rm -r /tmp/gone"))
    assert terminal.do(Run("echo fine")).output == "fine\n"
    assert terminal.do(Keys("echo $((40+2))\r", seconds=20, text="42\r\n")).status is Status.RUNNING
    assert terminal.do(Run("exit 3")).cwd == "/"
    assert terminal.do(Run("pwd")).output == "/\n"


def test_a_fork_bomb_leaves_a_shell(shared, start):
    with agents_box(shared[0], pids=32) as box:
        terminal = start(box)
        bomb = terminal.do(Run("bomb() { bomb | bomb & }; bomb; sleep 1", seconds=3))
        assert bomb.status in (Status.EXITED, Status.TIMED_OUT, Status.RESTARTED)
        for _ in range(3):
            seen = terminal.do(Run("echo ok", tty=False))
            assert (seen.output, seen.status) == ("ok\n", Status.EXITED)


def test_a_box_full_of_processes_has_room_again_once_they_are_ended(shared, start):
    """Which bash itself may not see: interrupted in a fork, it can wait for ever."""
    with agents_box(shared[0], pids=24) as box:
        terminal = start(box)
        seen = terminal.do(Run("while sleep 1000 & do :; done", seconds=1))
        assert seen.status in (Status.TIMED_OUT, Status.RESTARTED)
        assert seen.seconds < 7
        assert "limit of 24 processes" in seen.limit
        ends = "jobs -p >/tmp/jobs; while read -r job; do kill -9 $job; done </tmp/jobs"
        terminal.do(Run(ends, seconds=2))  # without a process of its own
        assert eventually(lambda: terminal.do(Run("/bin/echo ok", seconds=1)).output == "ok\n", 30)


@pytest.mark.parametrize("hog", ["x=a; while :; do x=$x$x; done", "mapfile -t x < <(yes)"])
def test_a_shell_that_takes_all_memory_is_replaced(shared, start, hog):
    with agents_box(shared[0], memory_mib=64) as box:
        terminal = start(box)
        seen = terminal.do(Run(hog, seconds=60))
        assert (seen.status, seen.exit_code) == (Status.RESTARTED, 137)
        assert "memory limit of 64 MiB was reached" in seen.limit
        seen = terminal.do(Run("echo fine"))
        assert (seen.output, seen.status, seen.limit) == ("fine\n", Status.EXITED, "")


def test_a_program_that_takes_all_memory_is_killed_alone(shared, start):
    with agents_box(shared[0], memory_mib=64) as box:
        terminal = start(box)
        seen = terminal.do(Run("x=1; python3 -c 'x = b\"x\" * 10**9'", seconds=60))
        assert (seen.output, seen.exit_code) == ("Killed\n", 137)
        assert "memory limit of 64 MiB was reached" in seen.limit
        assert terminal.do(Run("echo $x")).output == "1\n"


ENDS = {
    "stop": Status.SHELL_LOST,
    "destroy": Status.BOX_LOST,
    "kill_all": Status.RESTARTED,
    "reset": Status.RESTARTED,
}


@pytest.mark.parametrize("verb", ENDS)
def test_the_box_ends_under_a_command(own_box, start, verb):
    terminal = start(own_box)
    timer = threading.Timer(0.3, getattr(own_box, verb))
    timer.start()
    seen = terminal.do(Run("echo begun; sleep 33", seconds=30))
    timer.join()
    assert seen.output == "begun\n"
    assert seen.status is ENDS[verb] or verb == "destroy"  # which takes its time
    after = terminal.do(Run("echo fine"))
    if ENDS[verb] is Status.RESTARTED:
        assert (after.output, after.status) == ("fine\n", Status.EXITED)
    else:
        assert after.status in (Status.SHELL_LOST, Status.BOX_LOST)


@pytest.mark.parametrize("verb", ENDS)
@pytest.mark.parametrize("action", [Run("echo hi"), Keys("x"), Wait(0.1), Signal("INT")])
def test_the_box_ends_while_nobody_looks(own_box, start, verb, action):
    terminal = start(own_box)
    terminal.do(Run("sleep 33", seconds=0.1, on_timeout="keep"))
    getattr(own_box, verb)()
    terminal.do(action)
    after = terminal.do(Run("echo fine"))
    if ENDS[verb] is Status.RESTARTED:
        assert eventually(lambda: terminal.do(Run("echo fine")).output == "fine\n")
    else:
        assert after.status in (Status.SHELL_LOST, Status.BOX_LOST)
