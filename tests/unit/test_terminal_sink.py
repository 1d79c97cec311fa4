"""Output is kept within bounds, and all of it can be found."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.runtime.terminal.sink import SPOOL_BYTES, Fold, HeadTail, Sink
from tests.unit.test_terminal_exchange import cut


def shown(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").replace("\r\n", "\n").replace("\0", "\\x00")


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(0, 60))
def test_head_and_tail_stay_within_their_bounds(blocks, limit):
    data = b"".join(blocks).replace(b"\r\n", b"")
    sink = HeadTail(limit)
    for block in cut(data, [len(b) for b in blocks]):
        sink.write(block)
    assert sink.total == len(data)
    assert sink.truncated == (len(data) > limit)
    head, tail = data[: (limit + 1) // 2], data[len(data) - limit // 2 :]
    if sink.truncated:
        assert f"[… {len(data) - limit} bytes left out …]" in sink.text()
        assert sink.text().startswith(shown(head))
        assert sink.text().endswith(shown(tail))
        assert sink.raw().startswith(head)
    else:
        assert sink.text() == shown(data)
        assert sink.raw() == data


def test_memory_stays_bounded_under_a_flood():
    sink = HeadTail(1000)
    for _ in range(3000):
        sink.write(b"y" * 1000)
    assert sink.total == 3_000_000
    assert len(sink.raw()) < 20_000
    assert len(sink.text()) < 1100


@pytest.mark.parametrize("size", [0, 10, 100, 101, 5000])
def test_what_is_longer_than_what_is_shown_is_in_a_file(tmp_path: Path, size):
    data = bytes(i % 251 for i in range(size))
    sink = Sink(100, tmp_path / "out.txt")
    for block in cut(data, list(range(0, size, 37))):
        sink.write(block)
    sink.close()
    assert sink.truncated == (size > 100) == bool(sink.spooled) == (tmp_path / "out.txt").exists()
    if sink.spooled:
        assert (tmp_path / sink.spooled).read_bytes() == data
    assert sink.sha256 == (hashlib.sha256(data).hexdigest() if data else "")


def test_a_file_has_no_more_than_there_is_room_for(tmp_path: Path):
    sink = Sink(100, tmp_path / "out.txt", room=1000)
    for _ in range(100):
        sink.write(b"y" * 64)
    sink.close()
    assert (tmp_path / "out.txt").stat().st_size == sink.spooled_bytes == 1000
    assert sink.total == 6400
    full = Sink(100, tmp_path / "none.txt", room=0)
    full.write(b"y" * 1000)
    assert (full.spooled, (tmp_path / "none.txt").exists()) == ("", False)


def folded(*blocks: bytes) -> bytes:
    fold = Fold()
    return b"".join(fold.feed(block) for block in blocks) + fold.rest()


@pytest.mark.parametrize(
    ("drawn", "left"),
    [
        (b"a\r\nb\r\n", b"a\nb\n"),
        (b"1%\r2%\r3%\r\ndone\r\n", b"3%\ndone\n"),
        (b"1%\r2%\r3%", b"3%"),
        (b"\r1%\r2%\nnext", b"2%\nnext"),
        (b"long line\rx", b"x"),
        (b"a\r\r\nb", b"a\nb"),
        (b"", b""),
    ],
)  # fmt: skip
def test_of_a_line_that_is_drawn_again_the_last_state_is_left(drawn, left):
    assert folded(drawn) == left


@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n"]), max_size=30).map(b"".join),
    st.lists(st.integers(0, 100), max_size=6),
)
def test_how_a_progress_bar_is_cut_makes_no_difference(drawn, places):
    assert folded(*cut(drawn, places)) == folded(drawn)


@given(st.binary(max_size=300).map(lambda b: b.replace(b"\r", b"")))
def test_what_is_not_drawn_over_is_as_it_was(data):
    assert folded(data) == data


def test_a_bar_of_megabytes_takes_little_room():
    sink = Sink(1000, None)
    sink.fold()
    for i in range(50_000):
        sink.write(b"\r%6d of 50000 " % i)
    assert sink.text().strip() == "49999 of 50000"
    assert sink.total > 500_000
    assert sink.total < SPOOL_BYTES
