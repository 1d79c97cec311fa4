"""What a box printed, made harmless: drawing stays, all else goes, however it is cut."""

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.formats.controls import RESTORED, Screens, harmless, printable

DRAWS = [
    "plain text, ünï 漢字 🎉\r\n\tmore\b",
    "\x1b[1;31mred\x1b[0m",
    "\x1b[38;5;208mx\x1b[38:2::1:2:3mx\x1b[m",
    "\x1b[2J\x1b[H\x1b[10;20H\x1b[3A\x1b[K\x1b[?25l\x1b[?25h",
    "\x1b[?1049hvim\x1b[?1049l",
    "\x1b7\x1b[5;10r\x1bM\x1bD\x1b8",
    "\x1b(0lqk\x1b(B\x0ex\x0f",
    "\x1b[4hx\x1b[4l\x1b[3@\x1b[2P\x1b[5X\x1b[10b\x1b[!p",
    RESTORED,
]
ACTS = {
    "asking for the cursor": "\x1b[6n",
    "asking how it is": "\x1b[5n\x1b[?15n",
    "asking what it is": "\x1b[c\x1b[>c\x1b[=0c\x1b[0c\x1bZ\x05",
    "asking for a mode": "\x1b[?2004$p\x1b[4$p",
    "asking for parameters": "\x1b[x\x1b[1x",
    "a checksum of the screen": "\x1b[1;1;1;1;5;5*y",
    "the clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "asking for the clipboard": "\x1b]52;c;?\x1b\\",
    "the title": "\x1b]0;evil\x07\x1b]2;evil\nls\x1b\\",
    "a title of screen's": "\x1bkevil\x1b\\",
    "asking for the title": "\x1b[21t",
    "the window": "\x1b[8;1;1t\x1b[3;0;0t\x1b[2t\x1b[5t",
    "asking for a colour": "\x1b]11;?\x07\x1b]4;0;?\x1b\\",
    "a link": "\x1b]8;;file:///etc/passwd\x1b\\\x1b]8;;\x1b\\",
    "a notification": "\x1b]9;hi\x07\x1b]777;notify;a;b\x07",
    "of iTerm": "\x1b]1337;File=inline=1:AAAA\x07",
    "a setting asked for": "\x1bP$qm\x1b\\\x1bP+q544e\x1b\\",
    "a picture": "\x1bPq#0;2;0;0;0~-\x1b\\\x1b_Ga=T;AAAA\x1b\\",
    "strings": "\x1bXevil\x07more\x1b\\\x1b^evil\x1b\\\x1b_evil\x1b\\",
    "the mouse": "\x1b[?1000h\x1b[?1003;1006h\x1b[?1004h\x1b[1;2;3;4;5T",
    "paste and keys": "\x1b[?2004h\x1b[?1h\x1b=\x1b[>4;2m\x1b[>1u\x1b[?u\x1b[2h\x1b[12h",
    "printing": "\x1b[5i\x1b[4i\x1b[i",
    "another character set": "\x1b%@\x1b F\x1b[11m"[:-5],
    "lights and keys to come": "\x1b[1q\x1b[2 q\x1bP1;1|17/0a\x1b\\",
    "odd bytes": "\x00\x01\x05\x07\x10\x11\x13\x18\x1a\x7f",
    "long numbers": "\x1b[99999999b\x1b[99999A\x1b[1234b",
    "a string that CAN ends": "\x1b]0;x\x18\x1bPx\x1a",
    "one-character forms": "\x9b6n\x9d52;c;?\x9c\x90$qm\x9c\x9f\x9c\x9a",
    "a tab stop gone": "\x1b[3g\x1bH",
}
ALLOWED = re.compile(
    r"\x1b\[[0-9;:]*[@A-MPSTXZ`abdefmrsu]|\x1b\[\?[0-2]?[JK]|\x1b\[4[hl]|\x1b\[!p"
    r"|\x1b\[\?(?:5|6|7|25|47|1047|1048|1049|2026)[hl]|\x1b[78DEM]|\x1b[()][0AB]|\x1b#[34568]"
)
STRAY = re.compile(r"[\x00-\x07\x10-\x1f\x7f-\x9f]")
pieces = st.lists(
    st.one_of(
        st.sampled_from([*DRAWS, *ACTS.values()]),
        st.text("\x1b\x1b[]P_^X?;0123456789hlmnct \\\x07\x18\n\x9b\x9d\x9cAü", max_size=12),
        st.text(max_size=5),
    ),
    max_size=8,
).map("".join)


def tame(text: str) -> str:
    return harmless(text)[0]


@pytest.mark.parametrize("text", DRAWS, ids=ascii)
def test_what_draws_stays_as_it_is(text: str):
    assert harmless(text) == (text, "")


@pytest.mark.parametrize("name", ACTS)
def test_what_acts_is_gone(name: str):
    assert harmless(f"a{ACTS[name]}b") == ("ab", "")


def test_a_full_reset_clears_the_screen_only():
    assert tame("a\x1bcb") == "a\x1b[!p\x1b[H\x1b[2Jb"


def test_of_several_modes_the_good_ones_stay():
    assert tame("\x1b[?1049;1000;25h") == "\x1b[?1049h\x1b[?25h"


def test_a_sequence_with_something_in_the_middle_is_no_sequence():
    assert tame("\x1b[6\nn") == "6\nn"
    assert tame("\x1b[38;5\x18x\x1b[38;5\x1ay") == "xy"
    assert tame("\x1b\x1b[6n\x1b\x1b]0;x\x07") == ""


def test_a_string_without_an_end_is_held_but_not_its_text():
    text, held = harmless("a\x1b]52;c;" + "x" * 100_000)
    assert (text, held) == ("a", "\x1b]")
    assert harmless("yyy\x1b", held) == ("", "\x1b]\x1b")
    assert harmless("\\b", "\x1b]\x1b") == ("b", "")


@given(pieces)
def test_nothing_is_left_that_is_not_known_to_draw(text: str):
    assert not STRAY.search(ALLOWED.sub("", tame(text)))


@given(pieces)
def test_doing_it_twice_changes_nothing(text: str):
    once = tame(text)
    assert harmless(once) == (once, "")


@given(pieces, st.lists(st.integers(0, 200), max_size=5))
@example("\x980\x98", [2])
def test_cut_in_pieces_it_is_the_same(text: str, cuts: list[int]):
    whole, held = harmless(text)
    shown, left = "", ""
    edges = [0, *sorted(min(c, len(text)) for c in cuts), len(text)]
    for start, end in pairwise(edges):
        more, left = harmless(text[start:end], left)
        shown += more
    assert (shown, left) == (whole, held)


@given(st.text())
def test_a_line_for_a_person_has_nothing_to_obey(text: str):
    said = printable(text)
    assert said.isprintable()
    assert said.encode() or not text


def test_a_line_for_a_person_keeps_what_can_be_read():
    assert printable("grün\x1b[31m\u202etxt\n\udc80") == r"grün\x1b[31m\u202etxt\n\udc80"


def shows_the_other(*pieces: bytes) -> bool:
    screens = Screens()
    for piece in pieces:
        screens.see(piece)
    return screens.other


def test_which_screen_is_shown_is_followed_across_pieces():
    assert not shows_the_other(b"a\x1b[?10")
    assert shows_the_other(b"a\x1b[?10", b"49h")
    assert shows_the_other(b"\x1b[?1049h", b"x" * 1000)
    assert not shows_the_other(b"\x1b[?1049h", b"x" * 1000 + b"\x1b[?1049;25l")
    assert not shows_the_other(b"\x1b[?25h")


def test_a_mode_among_others_is_one_too_and_one_like_it_is_none():
    assert shows_the_other(b"\x1b[?25;1049;1h")
    assert not shows_the_other(b"\x1b[?10491;147;4h")
    assert shows_the_other(b"\x1b[?" + b"1;" * 30 + b"47", b"h")


@pytest.mark.parametrize(
    "piece",
    ["\x1b[?", "47;", "1049;", "1", ";", "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b(", " ", "!",
     "\x1b[1;", "\x1b[?1;", "\x1b]x\x1b", "\x9b", "\x9d", "\x1b[ ", "?", "m", "\x18", "\x1b\x1b["],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "\x1b[?", "\x1b[", "\x1b]", "\x1b"])
def test_long_nonsense_takes_no_longer_than_its_length(before: str, piece: str):
    """Else this would take minutes, or hours."""
    text = before + piece * (1_000_000 // len(piece))
    Screens().see(text.encode())
    shown, held = harmless(text)
    assert len(shown) + len(held) <= len(text) + 100
