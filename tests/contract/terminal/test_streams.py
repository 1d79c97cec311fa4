"""What goes in and what comes out: all of it, in bounds, and what is kept of it."""

import hashlib
import re

import pytest

from sandbox.model.step import Run, Status

MEGABYTES_5 = "x" * 5_000_000


@pytest.fixture
def terminal(common_box, start):
    return start(common_box)


@pytest.mark.parametrize("tty", [True, False])
@pytest.mark.parametrize(
    ("command", "stdin", "output"),
    [
        ("cat", "no newline at its end", "no newline at its end"),
        ("cat", "", ""),
        ("cat; echo $?", "é\udcff", "é\\xff0\n"),
        ("read x; read y; echo $x$y", "a\nb", "ab\n"),
        ("wc -c", MEGABYTES_5, "5000000\n"),
        ("head -c 3", MEGABYTES_5, "xxx"),
        ("echo it is not read", MEGABYTES_5, "it is not read\n"),
        ("cat <<< other", "x", "other\n"),
        ("exec 0</etc/passwd; head -c 4", "x", "root"),
    ],
)
def test_text_is_given_to_a_command(terminal, tty, command, stdin, output):
    seen = terminal.do(Run(command, stdin=stdin, tty=tty))
    assert (seen.output, seen.exit_code, seen.background) == (output, 0, "")
    assert terminal.do(Run("echo fine")).output == "fine\n"


@pytest.mark.parametrize(
    "run", [Run("a\0b"), Run("\ud800"), Run("cat", stdin="\0"), Run("cat", stdin="\ud8ff")]
)
def test_nul_and_half_characters_are_refused_and_nothing_is_run(terminal, run):
    seen = terminal.do(run)
    assert (seen.status, seen.exit_code) == (Status.REFUSED, None)
    assert terminal.do(Run("echo fine")).output == "fine\n"


@pytest.mark.parametrize("tty", [True, False])
def test_output_is_cut_where_it_is_longer_than_what_is_shown(common_box, start, tty):
    terminal = start(common_box, output_bytes=100)
    for size in (99, 100):
        seen = terminal.do(Run(f"printf %0{size}d 0", tty=tty))
        assert (seen.output, seen.truncated, seen.total_bytes) == ("0" * size, False, size)
    seen = terminal.do(Run("printf %0101d 0", tty=tty))
    assert seen.output == f"{'0' * 50}\n[… 1 bytes left out …]\n{'0' * 50}"
    assert (seen.truncated, seen.total_bytes, seen.spool) == (True, 101, "")


def test_a_character_that_is_cut_shows_as_its_bytes(common_box, start):
    terminal = start(common_box, output_bytes=10)
    seen = terminal.do(Run("printf 漢%.0s 1 2 3 4 5", tty=False))
    assert seen.output == "漢\\xe6\\xbc\n[… 5 bytes left out …]\n\\xbc\\xa2漢"


@pytest.mark.parametrize("tty", [True, False])
def test_all_of_a_long_output_is_in_a_file_and_its_sum_is_right(common_box, start, tmp_path, tty):
    terminal = start(common_box, output_bytes=1000, folder=tmp_path)
    seen = terminal.do(Run("seq 1 100000", tty=tty))
    newline = "\r\n" if tty else "\n"
    whole = "".join(f"{n}{newline}" for n in range(1, 100_001)).encode()
    assert (tmp_path / seen.spool).read_bytes() == whole
    assert (seen.total_bytes, seen.sha256) == (len(whole), hashlib.sha256(whole).hexdigest())
    assert seen.truncated
    assert terminal.do(Run("echo short", tty=tty)).spool == ""


@pytest.mark.parametrize("tty", [True, False])
@pytest.mark.parametrize(
    "command", ["head -c 10000000 /dev/zero | tr '\\0' x; (exit 6)", "seq 1 300000; (exit 6)"]
)
def test_megabytes_keep_their_exit_code(terminal, tty, command):
    seen = terminal.do(Run(command, tty=tty, seconds=90))
    assert (seen.exit_code, seen.status, seen.truncated) == (6, Status.EXITED, True)
    wanted = 10_000_000 if command.startswith("head") else 1_988_895 + 300_000 * tty
    assert seen.total_bytes == wanted
    assert terminal.do(Run("echo fine", tty=tty)).output == "fine\n"


@pytest.mark.parametrize("tty", [True, False])
def test_output_without_an_end_is_ended(common_box, start, tmp_path, tty):
    terminal = start(common_box, output_bytes=1000, folder=tmp_path)
    seen = terminal.do(Run("yes", tty=tty, seconds=0.3))
    assert (seen.status, seen.exit_code, seen.signals) == (Status.TIMED_OUT, 130, ("INT",))
    assert seen.total_bytes > 100_000
    spooled = (tmp_path / seen.spool).read_bytes()
    assert len(spooled) == min(seen.total_bytes, 64 << 20)
    if len(spooled) == seen.total_bytes:
        assert hashlib.sha256(spooled).hexdigest() == seen.sha256
    assert terminal.do(Run("echo fine", tty=tty)).output == "fine\n"


def test_a_job_that_floods_the_terminal_is_no_part_of_the_next_command(common_box, start):
    """But of one with the terminal it is, as far as both print at once."""
    terminal = start(common_box, output_bytes=1 << 23)
    terminal.do(Run("yes & sleep 0.1"))
    for _ in range(20):
        seen = terminal.do(Run("echo clean", tty=False))
        assert (seen.output, seen.exit_code) == ("clean\n", 0)
        assert len(seen.background) < 9000
        seen = terminal.do(Run("echo clean"))
        assert re.fullmatch(r"[y\n]*clean\n[y\n]*", seen.output)
    assert terminal.do(Run("kill -9 %1; wait", tty=False)).exit_code == 0
    assert terminal.do(Run("echo fine")).output == "fine\n"


def test_a_job_that_reads_the_terminal_is_stopped(terminal):
    seen = terminal.do(Run("cat & sleep 0.2; jobs"))
    assert seen.output.endswith("[1]+  Stopped                 cat\n")
    assert terminal.do(Run("kill -9 %1; wait 2>/dev/null")).exit_code == 0
    assert terminal.do(Run("echo fine")).output.endswith("fine\n")


def test_of_a_progress_bar_its_last_state_is_shown(terminal):
    bar = "for i in 1 2 3; do printf \"${i}0%%\\r\"; done; echo; printf 'a\\rb\\nc\\r'"
    for tty in (True, False):
        assert terminal.do(Run(bar, fold=True, tty=tty)).output == "30%\nb\nc"
    assert terminal.do(Run(bar, tty=False)).output == "10%\r20%\r30%\na\rb\nc\r"


def test_coprocesses_and_substitutions_are_bash_s(terminal):
    talks = "coproc cat; echo hi >&${COPROC[1]}; read -u ${COPROC[0]} x; echo got $x"
    seen = terminal.do(Run(talks))
    assert re.fullmatch(r"\[1\] \d+\ngot hi\n", seen.output)
    assert (
        terminal.do(Run("cat <(echo b) <(echo c); echo d > >(cat); wait $!")).output == "b\nc\nd\n"
    )


def test_disowned_jobs_go_on_and_are_no_jobs(terminal):
    assert re.fullmatch(r"\[1\] \d+\n", terminal.do(Run("sleep 100 & gone=$!; disown -a")).output)
    assert terminal.do(Run("jobs; kill $gone")).exit_code == 0
