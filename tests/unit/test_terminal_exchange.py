"""Bytes of a terminal to output, exit code and folder, however they are cut."""

import re
import subprocess
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.runtime.stream import HeadTail, Scanner, quote, unquote

NONCE, OTHER = "0123456789abcdef", "fedcba9876543210"
BEGIN = f"\x1b]7133;B;{NONCE}\x07".encode()
END = f"\x1b]7133;D;{NONCE};3;$'/a\\tb'\x07".encode()
FORGED = [
    f"\x1b]7133;D;{OTHER};0;/\x07".encode(),
    f"\x1b]7133;B;{OTHER}\x07".encode(),
    f"\x1b]7133;R;{OTHER};0;/\x07".encode(),
]
noise = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.sampled_from([b"\x1b", b"\x1b]", b"\x1b]7133;", b"\x1b[31m", b"\x07", b"\r\n", *FORGED]),
        st.just(END[:-1].replace(NONCE.encode(), OTHER.encode())),
    ),
    max_size=8,
).map(b"".join)


def scanned(*blocks: bytes, limit: int = 1 << 20) -> tuple[Scanner, HeadTail]:
    sink = HeadTail(limit)
    scanner = Scanner(NONCE, sink)
    for block in blocks:
        scanner.feed(block)
    return scanner, sink


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = [0, *sorted(p % (len(data) + 1) for p in places), len(data)]
    return [data[a:b] for a, b in pairwise(at)]


def test_a_command_s_output_exit_code_and_folder():
    scanner, sink = scanned(b"typed ahead" + BEGIN + b"hello\r\n" + END + b"later")
    assert scanner.ended == (3, "/a\tb")
    assert sink.text() == "hello\n"
    assert scanner.rest == b"later"


@given(noise, noise, noise, st.lists(st.integers(0, 10_000), max_size=8))
def test_how_the_stream_is_cut_makes_no_difference(before, output, after, places):
    stream = before + BEGIN + output + END + after
    whole, text = scanned(stream)
    pieces, same = scanned(*cut(stream, places))
    assert pieces.ended == whole.ended == (3, "/a\tb")
    assert (same.text(), same.total) == (text.text(), text.total)
    assert pieces.rest == whole.rest == after


@given(noise, st.lists(st.integers(0, 10_000), max_size=8))
def test_a_stream_without_an_end_is_all_output_once_it_is_flushed(output, places):
    whole, text = scanned(BEGIN + output)
    whole.flush()
    pieces, same = scanned(*cut(BEGIN + output, places))
    pieces.flush()
    assert pieces.ended is whole.ended is None
    assert (same.text(), same.total) == (text.text(), text.total)


@given(st.lists(st.sampled_from(FORGED), min_size=1).map(b"".join))
def test_forged_marks_end_nothing_and_are_not_shown(forged):
    scanner, sink = scanned(BEGIN + b"a" + forged + b"b")
    assert scanner.ended is None
    assert sink.text() == "ab"


@given(st.binary(max_size=50).filter(lambda b: b"\x1b" not in b))
def test_nothing_is_output_before_the_command_begins(before):
    _, sink = scanned(before + BEGIN + b"x")
    assert sink.text() == "x"


@pytest.mark.parametrize(
    "mark",
    [b"D;%s", b"D;%s;;", b"D;%s;1", b"R;%s;x;/", b"D;%s;" + b"9" * 5000 + b";/", b"B;%s;1;/"],
)
def test_a_program_that_knows_the_number_cannot_break_the_reading(mark):
    forged = b"\x1b]7133;" + mark.replace(b"%s", NONCE.encode()) + b"\x07"
    scanner, _ = scanned(BEGIN + forged + END)
    assert scanner.ended == (3, "/a\tb")


def test_the_longest_path_arrives_in_pieces():
    word = b"$'" + b"\\377" * 4095 + b"'"
    mark = b"\x1b]7133;D;%s;0;%s\x07" % (NONCE.encode(), word)
    scanner, _ = scanned(BEGIN, *cut(mark, list(range(0, 20_000, 1000))))
    assert scanner.ended == (0, "\udcff" * 4095)


def test_an_escape_without_an_end_holds_nothing_back_for_ever():
    scanner, sink = scanned(BEGIN + b"\x1b]7133;D;" + NONCE.encode() + b";0;" + b"x" * 40_000)
    assert scanner.ended is None
    assert sink.total > 40_000


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(0, 60))
def test_head_and_tail_stay_within_their_bounds(blocks, limit):
    data = b"".join(blocks).replace(b"\r\n", b"")
    sink = HeadTail(limit)
    for block in cut(data, [len(b) for b in blocks]):
        sink.write(block)
    assert sink.total == len(data)
    assert sink.truncated == (len(data) > limit)
    head, tail = data[: (limit + 1) // 2], data[len(data) - limit // 2 :]
    left_out = len(data) - limit
    if sink.truncated:
        assert f"[… {left_out} bytes left out …]" in sink.text()
        assert sink.text().startswith(shown(head))
        assert sink.text().endswith(shown(tail))
    else:
        assert sink.text() == shown(data)


def shown(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").replace("\r\n", "\n").replace("\0", "\\x00")


def test_memory_stays_bounded_under_a_flood():
    sink = HeadTail(1000)
    for _ in range(3000):
        sink.write(b"y" * 1000)
    assert sink.total == 3_000_000
    assert len(sink._tail) < 20_000
    assert len(sink.text()) < 1100


@given(st.binary(max_size=200))
def test_a_quoted_command_is_one_line_of_printable_ascii(command):
    assert re.fullmatch(rb"\$'[ -~]*'", quote(command))


@given(st.binary(max_size=200))
def test_unquote_reverses_quote(command):
    assert unquote(quote(command)) == command.decode("utf-8", "surrogateescape")


def bash(script: bytes) -> bytes:
    done = subprocess.run(
        ["bash", "--noprofile", "--norc"],
        input=script,
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )
    return done.stdout


words = st.lists(
    st.binary(max_size=60).map(lambda b: b.replace(b"\0", b"")), min_size=1, max_size=60
)


@settings(max_examples=25, deadline=None)
@given(words)
def test_bash_reads_a_quoted_word_as_it_was(found):
    script = b"".join(b"printf '%%s\\0' %s\n" % quote(word) for word in found)
    assert bash(script) == b"".join(word + b"\0" for word in found)


@settings(max_examples=25, deadline=None)
@given(words)
@pytest.mark.parametrize("how", ["bytes", "text"])
def test_what_bash_quotes_is_unquoted(how, found):
    if how == "text":
        found = [word.decode("latin-1").encode() for word in found]
    script = b"".join(b"printf '%%q\\0' %s\n" % quote(word) for word in found)
    quoted = bash(script).split(b"\0")[:-1]
    assert [unquote(q) for q in quoted] == [w.decode("utf-8", "surrogateescape") for w in found]
