"""What is said to bash, and that bash understands it."""

import os
import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.runtime.base import OUTPUT, STATUS
from sandbox.runtime.terminal import lines

NONCE = b"0123456789012345"
words = st.lists(
    st.binary(max_size=60).map(lambda b: b.replace(b"\0", b"")), min_size=1, max_size=60
)


def bash(script: bytes, *arguments: str) -> bytes:
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", *arguments],
        input=script,
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )
    return done.stdout


def reported(line: bytes) -> list[lines.Report]:
    """What a bash that is given this line says on its status pipe."""
    read, write = os.pipe()
    null = os.open("/dev/null", os.O_RDWR)
    bound = f"exec {lines.TERMINAL}<>/dev/null {lines.NULL}>/dev/null {OUTPUT}>/dev/null {STATUS}>&{write}\n".encode()
    subprocess.run(
        ["bash", "--noprofile", "--norc"],
        input=bound + line,
        stdout=null,
        stderr=null,
        pass_fds=[write],
        check=False,
        timeout=30,
    )
    os.close(write)
    os.close(null)
    with os.fdopen(read, "rb") as f:
        found = [lines.parse_report(said) for said in f.read().split(b"\n")[:-1]]
    return [report for report in found if report]


@given(st.binary(max_size=200))
def test_a_quoted_word_is_one_line_of_printable_ascii(word):
    assert re.fullmatch(rb"\$'[ -~]*'|[0-9A-Za-z]+", lines.quote(word))


@given(st.binary(max_size=200))
def test_unquote_reverses_quote(word):
    assert lines.unquote(lines.quote(word)) == word.decode("utf-8", "surrogateescape")


@settings(max_examples=25, deadline=None)
@given(words)
def test_bash_reads_a_quoted_word_as_it_was(found):
    script = b"".join(b"printf '%%s\\0' %s\n" % lines.quote(word) for word in found)
    assert bash(script) == b"".join(word + b"\0" for word in found)


@settings(max_examples=25, deadline=None)
@given(words)
@pytest.mark.parametrize("how", ["bytes", "text"])
def test_what_bash_quotes_is_unquoted(how, found):
    if how == "text":
        found = [word.decode("latin-1").encode() for word in found]
    script = b"".join(b"printf '%%q\\0' %s\n" % lines.quote(word) for word in found)
    quoted = bash(script).split(b"\0")[:-1]
    expected = [word.decode("utf-8", "surrogateescape") for word in found]
    assert [lines.unquote(q) for q in quoted] == expected


@pytest.mark.parametrize("tty", [True, False])
@pytest.mark.parametrize("stdin", [None, b"", b"a\nb'"])
@pytest.mark.parametrize("last", [0, 1, 255])
def test_a_command_is_two_lines_and_reports_its_status(tty, stdin, last):
    line = lines.command(b"cd /tmp; (exit 7)", NONCE, last=last, tty=tty, stdin=stdin)
    assert line.count(b"\n") == 2
    assert reported(line)[0] == lines.Report(NONCE, 7, "/tmp", late=False)


@pytest.mark.parametrize("last", [0, 1, 5, 255])
def test_a_command_finds_the_last_status(last):
    line = lines.command(b"(exit $?)", NONCE, last=last, tty=True, stdin=None)
    assert reported(line)[0].status == last


def test_nothing_of_ours_is_left_in_the_shell():
    line = lines.command(b"true", NONCE, last=3, tty=True, stdin=None)
    left = lines.command(
        b"! declare -p | grep _sb && ! declare -F | grep .", NONCE, last=0, tty=True, stdin=None
    )
    assert [r.status for r in reported(line + left) if not r.late] == [0, 0]


@pytest.mark.parametrize(
    "spoilt",
    [b"builtin() { :; }", b"builtin() { return 9; }", b"enable -n builtin", b"enable -n printf"],
)
def test_a_shell_without_its_builtins_is_mended(spoilt):
    line = lines.command(spoilt, NONCE, last=0, tty=True, stdin=None)
    assert reported(line + lines.mend(NONCE))[-1].late


def test_the_setup_says_the_process_id_and_the_folder():
    assert lines.parse_setup(b"H" + NONCE + b";12;/a\\ b", NONCE) == (12, "/a b")
    assert lines.parse_setup(b"H0123456789012340;12;/", NONCE) is None
    assert lines.parse_setup(b"bash: no such thing", NONCE) is None


def test_numbers_are_fresh_and_of_one_length():
    numbers = {lines.fresh_nonce() for _ in range(100)}
    assert len(numbers) == 100
    assert {len(n) for n in numbers} == {lines.NONCE_DIGITS}
