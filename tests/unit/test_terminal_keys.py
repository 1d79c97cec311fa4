"""Names of keys to what a terminal sends for them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.runtime.terminal.keys import NAMES, named


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Enter", b"\r"), ("enter", b"\r"), ("C-c", b"\x03"), ("^c", None), ("^-c", b"\x03"),
        ("C-C", b"\x03"), ("C-[", b"\x1b"), ("C-?", b"\x7f"), ("C- ", b"\0"), ("C-é", None),
        ("M-x", b"\x1bx"), ("M-Enter", b"\x1b\r"), ("Alt-b", b"\x1bb"), ("C-Up", b"\x1b[1;5A"),
        ("S-Up", b"\x1b[1;2A"), ("S-F1", b"\x1b[1;2P"), ("C-F5", b"\x1b[15;5~"), ("S-Tab", b"\x1b[Z"),
        ("a", b"a"), ("é", "é".encode()), ("-", b"-"), ("PageDown", b"\x1b[6~"), ("F12", b"\x1b[24~"),
        ("", None), ("Entr", None), ("C-", None), ("X-a", None), ("M-", None), ("C-Enter", b"\r"),
    ],
)  # fmt: skip
def test_a_key_is_what_a_terminal_sends_for_it(name, code):
    assert named(name) == code


def test_every_name_is_known():
    assert all(named(name) for name in NAMES)


odd = st.one_of(st.text(st.characters(), max_size=3), st.sampled_from(NAMES))


@given(st.lists(st.sampled_from(["C-", "M-", "S-", "Alt-", "^-"])).map("".join), odd)
@example("C-", "ß")
@example("C-", "ŉ")
@example("", "\ud800")
@example("M-", "\udc80")
@example("M-" * 3000, "a")
def test_whatever_is_called_a_key_is_one_or_none(prefixes: str, key: str):
    code = named(prefixes + key)
    assert code is None or 0 < len(code) < 20


def test_what_is_no_letter_of_a_keyboard_is_no_key():
    assert [named(name) for name in ("C-ß", "C-ŉ", "\ud800", "M-\udc80", "M-" * 3000 + "a")] == [
        None
    ] * 5
