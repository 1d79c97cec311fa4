"""The screen of a terminal, whatever was printed on it."""

from hypothesis import given
from hypothesis import strategies as st

from sandbox.runtime.terminal.screen import drawn

codes = st.builds(
    lambda private, numbers, end: b"\x1b[" + private + b";".join(numbers) + end,
    st.sampled_from([b"", b"?", b">", b"=", b"<", b"!"]),
    st.lists(st.sampled_from([b"", b"0", b"4", b"7", b"25", b"99999"]), max_size=4),
    st.sampled_from([bytes([n]) for n in range(0x40, 0x7F)]),
)
others = st.sampled_from(
    [b"\x1b#8", b"\x1b(0", b"\x1b]0;t\x07", b"\x1bP", b"\r\n", b"\t", b"\b", b"\x0e"]
)


@given(st.lists(st.one_of(st.binary(max_size=8), codes, others), max_size=30).map(b"".join))
def test_whatever_is_printed_can_be_shown(printed):
    screen = drawn(printed, 5, 10)
    assert (len(screen.lines), screen.cols) == (5, 10)


def test_what_vi_asks_its_terminal_draws_nothing():
    assert drawn(b"a\x1b[?4mb\x1b[>4;2mc\x1b[1;2;3Ad", 2, 10).lines[0] == "abcd"
