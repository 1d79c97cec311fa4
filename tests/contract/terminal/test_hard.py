"""What a review found: long lines beside a command, full terminals, lost shells, things left unsaid."""

import time

import pytest

from sandbox.model.step import Keys, Run, Signal, Status, Wait
from sandbox.runtime.base import Box
from tests.support.waiting import eventually

FULL = "python3 -c \"import time, tty; tty.setraw(0); print('ready', flush=True); time.sleep(600)\""


@pytest.fixture
def terminal(common_box, start):
    return start(common_box, command_seconds=10.0)


def keep(command: str, seconds: float = 10.0) -> Run:
    return Run(command, seconds=seconds, on_timeout="keep")


def fine(terminal) -> bool:
    seen = terminal.do(Run('echo ali"ve"42'))
    return (seen.output, seen.exit_code, seen.status) == ("alive42\n", 0, Status.EXITED)


def test_a_job_that_prints_a_line_of_a_megabyte_holds_nobody_up(terminal):
    line = "python3 -c \"print('var a=1;return _b(builtin);' * 40000)\""
    terminal.do(Run(f"{line} > /tmp/min.js; (sleep 0.2; cat /tmp/min.js) &"))
    terminal.do(Wait(1.0, until="quiet"))
    assert fine(terminal)


def test_what_is_not_taken_in_time_is_told(terminal, shared):
    assert "ready" in terminal.do(Run(FULL, seconds=1.0, on_timeout="keep")).output
    seen = terminal.do(Keys("x" * 100_000, seconds=1.0))
    assert seen.status is Status.RUNNING
    if shared[0].kind == "embedded":  # an engine takes much more before it waits for the program
        assert "of 100000 bytes were typed" in seen.limit
    assert terminal.do(Signal("KILL", seconds=10.0)).exit_code == 137


def test_typing_into_a_flood_ends_in_time(terminal):
    terminal.do(Run("stty raw -echo -isig; yes", seconds=0.2, on_timeout="keep"))
    began = time.monotonic()
    seen = terminal.do(Keys("x" * 100_000, seconds=0.5))
    assert seen.status is Status.RUNNING
    assert time.monotonic() - began < 20
    assert terminal.do(Signal("KILL", seconds=10.0)).exit_code == 137
    terminal.do(Run("stty sane"))
    assert fine(terminal)


def meanwhile(box: Box, does: str) -> None:
    """While nobody looks at the terminal; however busy the machine is, it has happened then."""
    assert box.exec(["sh", "-c", does], seconds=60).exit_code == 0


def test_a_command_is_not_done_in_a_shell_that_was_not_its_own(terminal, common_box):
    shell = terminal.do(Run("rm -f /tmp/done; echo $$")).output.strip()
    meanwhile(common_box, f"kill -9 {shell}; while [ -e /proc/{shell} ]; do sleep 0.02; done")
    seen = terminal.do(Run("touch /tmp/done"))
    assert (seen.status, seen.exit_code) == (Status.RESTARTED, 137)
    assert "not done" in seen.output
    assert terminal.do(Run("test -e /tmp/done")).exit_code == 1


def test_keys_for_a_program_that_has_just_ended_are_no_command(terminal, common_box):
    waits = "until [ -e /tmp/go ]; do sleep 0.02; done; rm /tmp/go; (exit 3)"
    terminal.do(Run("rm -f /tmp/y /tmp/go"))
    assert terminal.do(Run(waits, 0.1, on_timeout="keep")).status is Status.RUNNING
    meanwhile(common_box, "> /tmp/go; while [ -e /tmp/go ]; do sleep 0.02; done")
    time.sleep(1.0)  # there is its report to come
    seen = terminal.do(Keys("touch /tmp/y\r"))
    assert (seen.status, seen.exit_code) == (Status.EXITED, 3)
    assert terminal.do(Run("test -e /tmp/y")).exit_code == 1


def test_what_was_printed_since_the_last_look_is_found(terminal):
    terminal.do(Run("sleep 0.2; echo ready; sleep 60", 0.1, on_timeout="keep"))
    time.sleep(1.0)
    began = time.monotonic()
    seen = terminal.do(Wait(30.0, text="ready"))
    assert "ready" in seen.output
    assert time.monotonic() - began < 20
    assert terminal.do(Signal("KILL", seconds=10.0)).exit_code == 137


def test_an_output_that_was_stopped_goes_on_when_the_program_is_ended(terminal):
    terminal.do(keep("cat", 1.0))
    terminal.do(Keys("\x13"))
    assert terminal.do(Signal("KILL", seconds=1.0)).exit_code == 137
    assert fine(terminal)


def test_a_loop_of_the_shell_s_own_is_interrupted_by_a_signal(terminal):
    terminal.do(Run("while :; do :; done", 0.2, on_timeout="keep"))
    seen = terminal.do(Signal("INT", seconds=10.0))
    assert (seen.status, seen.exit_code) == (Status.EXITED, 130)
    assert fine(terminal)


def test_a_signal_that_nobody_gets_is_refused(terminal):
    assert terminal.do(Signal("TERM")).status is Status.REFUSED
    assert terminal.do(Signal("TERM", target="session")).status is Status.REFUSED
    long = terminal.do(Signal("X" * 100_000))
    assert (long.status, len(long.output) < 1000) == (Status.REFUSED, True)


def test_the_folder_is_where_the_shell_is_whatever_it_says(terminal):
    assert terminal.do(Run("cd /tmp; PWD=/lies")).cwd == "/tmp"
    assert terminal.do(Run("unset PWD; kill -9 $$")).status is Status.RESTARTED
    assert terminal.do(Run("pwd -P")).output == "/tmp\n"


def test_a_restricted_shell_works_as_one(terminal):
    terminal.do(Run("set -r"))
    assert terminal.do(Run("echo fine")).output == "fine\n"
    assert terminal.do(Run("cd /; false")).exit_code == 1


def test_a_box_full_of_what_spins_is_ended_and_goes_on(own_box, start):
    terminal = start(own_box)
    spins = "set +m; for i in $(seq 100); do (trap '' INT TERM; while :; do :; done) & done; wait"
    assert terminal.do(Run(spins, seconds=1.0)).status is Status.TIMED_OUT
    assert fine(terminal)
    assert not own_box.lost()


def test_a_box_that_is_gone_stays_gone(own_box, start):
    terminal = start(own_box)
    own_box.destroy()
    for _ in range(2):
        assert terminal.do(Run("true")).status is Status.BOX_LOST


def test_what_goes_wrong_with_one_terminal_stops_no_other(common_box, start, tmp_path):
    broken = start(common_box, folder=tmp_path / "not there", output_bytes=100)
    other = start(common_box)
    broken.do(Run("sleep 0.2; seq 1000; sleep 60", 0.1, on_timeout="keep"))
    other.do(Run("sleep 0.4; seq 100000; touch /tmp/printed; sleep 60", 0.1, on_timeout="keep"))
    checks = ["test", "-e", "/tmp/printed"]
    assert eventually(lambda: common_box.exec(checks, seconds=30).exit_code == 0)
    seen = broken.do(Signal("KILL", seconds=10.0))
    assert (seen.exit_code, seen.truncated, seen.spool) == (137, True, "")
    assert other.do(Signal("KILL", seconds=10.0)).exit_code == 137
