"""The screen of a terminal, whatever was printed on it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.runtime.terminal.scene import EFFORT, LOOKED_AT_BYTES, effort, scene
from sandbox.runtime.terminal.screen import drawn

numbers = st.one_of(
    st.sampled_from(["", "0", "2", "4", "7", "25", "99999", "1" * 5000, "²", "٣", "1049", "-1"]),
    st.integers(0, 10**30).map(str),
)
codes = st.builds(
    lambda private, given, end: ("\x1b[" + private + ";".join(given) + end).encode(),
    st.sampled_from(["", "?", ">", "=", "<", "!", " ", "$", ":"]),
    st.lists(numbers, max_size=4),
    st.sampled_from([chr(n) for n in range(0x40, 0x7F)]),
)
others = st.sampled_from(
    [b"\x1b#8", b"\x1b(0", b"\x1b]0;t\x07", b"\x1bP", b"\r\n", b"\t", b"\b", b"\x0e", b"\x1b7",
     b"\x1b8", b"\x1bc", b"\x1bM", b"\x1bE", b"\x1b%@", b"\x1b", b"a" * 30, "世\b".encode(),
     "e\u0301".encode(), "\u200b\u1160".encode(), b"\x1b[?1049h", b"\x1b[?1049l"]
)  # fmt: skip


@given(
    st.lists(st.one_of(st.binary(max_size=2000), codes, others), max_size=30).map(b"".join),
    st.sampled_from([(5, 10), (1, 1), (2, 3)]),
)
@example("\x1b[²m".encode(), (5, 10))
@example(b"\x1b[" + b"1" * 5000 + b"m", (5, 10))
@example("世\b\ba".encode(), (5, 10))
def test_whatever_is_printed_can_be_shown(printed: bytes, size: tuple[int, int]):
    rows, cols = size
    screen = drawn(printed, rows, cols)
    assert (len(screen.lines), screen.cols) == (rows, cols)
    assert 0 <= screen.row < rows
    assert 0 <= screen.col < cols


def shown(printed: str, rows: int = 6, cols: int = 20) -> list[str]:
    """Without the empty lines at the end."""
    lines = list(drawn(printed.encode(), rows, cols).lines)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def test_what_vi_asks_its_terminal_draws_nothing():
    assert shown("a\x1b[?4mb\x1b[>4;2mc\x1b[1;2;3Ad\x1b]0;title\x07e") == ["abcde"]


def test_odd_numbers_take_nothing_along():
    assert shown("a\x1b[" + "1" * 5000 + "mb")[0][:1] == "a"
    assert "b" in shown("a\x1b[" + "1" * 5000 + "mb")[0]
    assert shown("one\r\n\x1b[²m two")[0] == "one"


def test_emptying_what_is_below_leaves_what_is_above():
    assert shown("line1\r\nline2\r\n\x1b[Jline3") == ["line1", "line2", "line3"]
    assert shown("top\r\nold\r\nolder\x1b[2;1H\x1b[Jnew") == ["top", "new"]


def test_emptying_all_leaves_the_cursor():
    assert shown("a\r\n\n\n\x1b[2Jb") == ["", "", "", "b"]
    assert shown("a\r\nb\x1b[3Jc") == ["a", "bc"]  # only what has scrolled away


@pytest.mark.parametrize(
    "fresh", ["\x1bc", "\x1b[H\x1b[2J\x1b[3J", "\x1b[2J\x1b[H", "\x1b[1;1H\x1b[0m\x1b[J"]
)
def test_it_begins_anew_where_all_was_emptied(fresh: str):
    assert shown(f"a\r\nb{fresh}c") == ["c"]
    assert "a" not in "".join(scene(f"aaa\r\nb{fresh}c".encode(), 6, 20))


def test_what_was_set_before_that_still_holds():
    scrolling = "\x1b[1;2r\x1b[H\x1b[2Ja\r\nb\r\nc"
    assert shown(scrolling) == ["b", "c"]
    assert shown("\x1b[4h\x1b[H\x1b[2Jac\x1b[1;2Hb") == ["abc"]
    assert shown("12\x1b7\x1b[H\x1b[2J\x1b8x") == ["  x"]


@pytest.mark.parametrize("number", ["47", "1047", "1049"])
def test_after_a_full_screen_program_the_main_screen_is_as_it_was(number: str):
    on, off = f"\x1b[?{number}h", f"\x1b[?{number}l"
    before = "$ one\r\ntwo\r\n$ vi"
    inside = "\x1b[1;6r\x1b[H\x1b[2J~\r\n~\x1b[6;1Hfile"
    assert shown(before + on + inside) == ["~", "~", "", "", "", "file"]
    assert shown(before + on + inside + off) == ["$ one", "two", "$ vi"]
    assert shown(before + on + inside + off + "\r\n$ ") == ["$ one", "two", "$ vi", "$"]
    assert shown(before + on + inside + off + on + "x") == ["x"]
    assert shown(before + on + inside + "\x1bcnew") == ["new"]


def test_a_pager_gives_the_screen_back():
    less = "$ less f\r\n\x1b[?1049h\x1b[22;0;0t\x1b[?1h\x1b=\rone\r\ntwo\r\n\x1b[7mf (END)\x1b[27m\x1b[K"
    assert shown(less) == ["one", "two", "f (END)"]
    end = "\r\x1b[K\x1b[?1l\x1b>\x1b[?1049l\x1b[23;0;0t$ "
    assert shown(less + end) == ["$ less f", "$"]


def test_an_editor_s_screen_is_drawn():
    vi = (
        "\x1b[?1049h\x1b[22;0;0t\x1b[>4;2m\x1b[?1h\x1b=\x1b[?2004h\x1b[1;6r\x1b[?12h\x1b[?12l"
        '\x1b[22;2t\x1b[27m\x1b[23m\x1b[29m\x1b[m\x1b[H\x1b[2J\x1b[?25l\x1b[6;1H"f" 2L\x1b[2;1H'
        "▽\x1b[6n\x1b[2;1H  \x1b[3;1H\x1bPzz\x1b\\\x1b[0%m\x1b[6n\x1b[1;1Hone\r\ntwo\r\n"
        "\x1b[94m~  \x1b[4;1H~\x1b[m\x1b[1;1H\x1b[?25h"
    )  # fmt: skip
    assert shown(vi) == ["one", "two", "~", "~", "", '"f" 2L']
    assert shown(vi + "\x1b[1;5r\x1b[1;1H\x1b[L\x1b[1;6r\x1b[1;1Hnew") == [
        "new", "one", "two", "~", "~", '"f" 2L',
    ]  # fmt: skip


def test_what_is_seldom_said_is_understood():
    assert shown("ab\x1b[3b") == ["abbbb"]
    assert shown("a\r\nb\x1b[Sc") == ["b", " c"]
    assert shown("a\x1b[Tb") == [" b", "a"]
    assert shown("\t12\x1b[Zx") == ["        x2"]
    assert shown("a\x1b[5`b\x1b[sc\x1b[ud\x1b[ue") == ["a   be"]
    assert shown("ab\x1bEc") == ["ab", "c"]


def test_letters_without_a_width_take_nothing_along():
    assert shown("a\u200bb\u1160c") == ["abc"]
    assert shown("世界\r界") == ["界界"]


def test_of_many_accents_on_one_letter_a_few_are_kept():
    assert shown("a" + "\u0323" * 16_000 + "b") == ["ạ" + "\u0323" * 7 + "b"]
    assert shown("e\u0301" * 5) == ["é" * 5]


def test_what_was_cut_off_amid_something_shows_none_of_it():
    whole = b"\x1b[31mline\r\n" * (LOOKED_AT_BYTES // 11 + 1)
    for odd in range(0, 12, 3):
        lines = drawn(whole[odd : odd + LOOKED_AT_BYTES], 6, 20).lines
        assert set(lines[:-2]) == {"line"}
    other = b"\x1b[HOTHER" * (LOOKED_AT_BYTES // 8) + b"\x1b[?1049l$ "
    assert drawn(other, 6, 20).lines[0] == "$"


HOSTILE = [
    b"\n", b"\x1bM", b"\x1b[2J", b"\x1b[J", b"\x1b[40L", b"\x1b[H\x1b[150@", b"\x1b[P", b"\t",
    b"\x1b[2K", "\u0301".encode(), "a\u0301\u0302".encode(), "á\x1b[C\x1b[D".encode(), b"\x1b",
    b"x\x1b[999b", b"\x1b[99S", b"\x1b[999Z", b"\x1b#8", b"\x1b[?5h", b"\x1b[4ha\r", b"\xff",
    b"\x1b7\x1b[H\x1b[2J\x1b8", b"\x1b[?1049hx\x1b[?1049l", b"\x1b[", b"\x1b]", b"1", b"\x1b[?3h",
    b"\x1b[1;5r", "世".encode(),
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("before", [b"", b"\x1b[4h"])
def test_what_is_drawn_is_bounded(before: bytes, piece: bytes):
    pieces = scene(before + piece * (2 * LOOKED_AT_BYTES // len(piece)), 40, 160)
    assert sum(map(len, pieces)) <= LOOKED_AT_BYTES + 10_000
    inserting = "\x1b[4h" in pieces
    assert sum(effort(p, 40, 160, inserting=inserting) for p in pieces) <= EFFORT + 100_000


@given(st.lists(st.one_of(codes, others, st.sampled_from(HOSTILE)), max_size=60).map(b"".join))
@example(b"a\x1b[H\x1b[2Jb\x1b[2J\x1b[Hc")
def test_where_it_begins_changes_nothing(printed: bytes):
    """A saved cursor that is put back at the end is one reason to draw it from the beginning."""
    from_anywhere = drawn(printed + b"\x1b[H", 5, 10)
    from_the_beginning = drawn(printed + b"\x1b[H\x1b8\x1b[H", 5, 10)
    assert from_anywhere == from_the_beginning
