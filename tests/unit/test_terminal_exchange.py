"""Bytes of a terminal and two pipes to a command's output, status and folder, however they are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.runtime.terminal import lines
from sandbox.runtime.terminal.exchange import Exchange, without_marks
from sandbox.runtime.terminal.sink import Sink

NONCE, OTHER = b"0123456789012345", b"5432109876543210"
BEGIN, END = lines.mark(lines.BEGIN, NONCE), lines.mark(lines.END, NONCE)
FORGED = [lines.mark(lines.BEGIN, OTHER), lines.mark(lines.END, OTHER), b"\x1b]7133;9\x07"]
REPORT = b"D%s;3;$'/a\\tb'\n" % NONCE
noise = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.sampled_from([b"\x1b", b"\x1b]", b"\x1b]7133;", b"\x1b[31m", b"\x07", b"\r\n", *FORGED]),
    ),
    max_size=8,
).map(b"".join)


class Heard(Exchange):
    """One that remembers what was told of it."""

    def __init__(self, *, tty: bool = True) -> None:
        self.aside, self.shown = bytearray(), bytearray()
        sink = Sink(1 << 20, None)
        super().__init__(NONCE, sink, tty=tty, printed=self.shown.extend, aside=self.aside.extend)

    @property
    def output(self) -> bytes:
        return self.sink.raw()


def heard(*blocks: bytes, report: bytes = REPORT) -> Heard:
    """Bash writes its report, then the mark at the end."""
    exchange = Heard()
    exchange.from_status(report)
    for block in blocks:
        exchange.from_terminal(block)
    return exchange


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = [0, *sorted(p % (len(data) + 1) for p in places), len(data)]
    return [data[a:b] for a, b in pairwise(at)]


def test_a_command_s_output_status_and_folder():
    exchange = heard(b"typed ahead" + BEGIN + b"hello\r\n" + END + b"later")
    exchange.finish()
    assert exchange.over
    assert exchange.report == lines.Report(NONCE, 3, "/a\tb", late=False)
    assert exchange.output == exchange.shown == b"hello\r\n"
    assert exchange.aside == b"typed aheadlater"


@given(noise, noise, noise, st.lists(st.integers(0, 10_000), max_size=8))
def test_how_the_stream_is_cut_makes_no_difference(before, output, after, places):
    stream = before + BEGIN + output + END + after
    whole, pieces = heard(stream), heard(*cut(stream, places))
    whole.finish()
    pieces.finish()
    assert pieces.over
    assert whole.output == pieces.output == output
    assert without_marks(bytes(pieces.aside)) == without_marks(bytes(whole.aside))


@given(noise, st.lists(st.integers(0, 10_000), max_size=8))
def test_a_stream_without_an_end_is_all_output_once_it_is_finished(output, places):
    pieces = heard(*cut(BEGIN + output, places), report=b"")
    pieces.finish()
    assert not pieces.over
    assert pieces.output == output


def test_neither_the_marks_nor_the_report_alone_end_it():
    assert not heard(BEGIN + b"a" + END, report=b"").over
    assert not heard(BEGIN + b"a").over


@given(st.lists(st.sampled_from([*FORGED, REPORT, b"R" + REPORT[1:]]), min_size=1).map(b"".join))
def test_what_is_printed_ends_nothing(forged):
    exchange = heard(BEGIN + b"a" + forged + b"b", report=b"")
    assert not exchange.over
    assert exchange.output == b"a" + forged + b"b"


def test_of_marks_with_the_right_number_the_last_counts():
    exchange = heard(BEGIN + b"a" + END + b"b" + END + b"later")
    exchange.finish()
    assert (exchange.output, bytes(exchange.aside)) == (b"ab", b"later")


def test_a_flood_after_a_stolen_mark_is_output_and_bounded():
    exchange = heard(BEGIN + END, *[b"x" * 50_000] * 100, report=b"")
    assert exchange.sink.total > 4_000_000


@pytest.mark.parametrize(
    "report",
    [b"D%s;3\n" % NONCE, b"D%s;x;/\n" % NONCE, b"D%s;0;/\n" % OTHER, b"nonsense\n", b"\n",
     b"x" * 100_000, b"D" + NONCE],
)  # fmt: skip
def test_what_is_no_report_is_passed_over(report):
    exchange = heard(BEGIN + b"a" + END, report=report + b"\n")
    assert not exchange.over
    exchange.from_status(REPORT)
    exchange.from_terminal(END)
    assert exchange.over


def test_a_mark_that_comes_before_the_report_ends_nothing():
    exchange = heard(BEGIN + b"a" + END + b"b", report=b"")
    exchange.from_status(REPORT)
    assert (exchange.over, exchange.unsure) == (False, True)
    exchange.from_terminal(b"c" + END + b"later")
    exchange.finish()
    assert (exchange.over, exchange.output, bytes(exchange.aside)) == (True, b"abc", b"later")


@given(st.lists(st.integers(0, 10_000), max_size=8))
def test_a_mark_that_was_quicker_than_the_report_counts_once_all_has_come(places):
    """As it happens when an engine relays the two apart."""
    exchange = heard(BEGIN + b"a" + END + b"[1] Done", report=b"")
    exchange.from_status(REPORT)
    assert exchange.unsure
    for piece in cut(b"!" + lines.mark(lines.AFTER, NONCE) + b"later", places):
        exchange.from_terminal(piece)
    exchange.finish()
    assert (exchange.over, exchange.output) == (True, b"a")
    assert exchange.aside == b"[1] Done!later"


@given(st.lists(st.integers(0, 10_000), max_size=8))
def test_a_report_arrives_in_pieces(places):
    exchange = heard(BEGIN, report=b"")
    for piece in cut(b"D%s;0;/\n" % OTHER + REPORT, places):
        exchange.from_status(piece)
    exchange.from_terminal(END)
    assert exchange.over


def test_the_first_report_counts():
    exchange = heard(BEGIN + END, report=REPORT + b"R%s;0;/\n" % NONCE)
    assert exchange.report is not None
    assert exchange.report.status == 3


def test_a_late_report_needs_the_mark_to_be_asked_for():
    exchange = heard(BEGIN + b"a^C", report=b"R%s;130;/\n" % NONCE)
    assert exchange.unmarked
    exchange.from_terminal(END)
    assert (exchange.over, exchange.unmarked, exchange.output) == (True, False, b"a^C")


def test_a_command_whose_beginning_was_not_marked_is_over_all_the_same():
    exchange = heard(b"before", report=b"R%s;2;/\n" % NONCE)
    exchange.doubt()
    exchange.from_terminal(b"x" + END)
    assert (exchange.over, exchange.output, bytes(exchange.aside)) == (True, b"", b"beforex")


def test_in_pipe_mode_the_terminal_is_aside():
    exchange = Heard(tty=False)
    exchange.from_terminal(b"Password: ")
    exchange.from_output(BEGIN + b"out")
    exchange.from_status(REPORT)
    exchange.from_output(END)
    assert (exchange.over, exchange.output, bytes(exchange.aside)) == (True, b"out", b"Password: ")


def test_what_bash_shows_of_our_own_lines_is_not_shown():
    traced = b"+ builtin printf '\\e]7133;1" + NONCE + b"\\a'\r\nnoise\r\n"
    assert heard(traced + BEGIN).aside == b"noise\r\n"


@given(st.lists(st.binary(max_size=9), max_size=9), st.binary(min_size=1, max_size=9))
def test_what_is_looked_for_is_found_wherever_it_is_cut(blocks, wanted):
    exchange = Heard()
    exchange.from_terminal(BEGIN)
    exchange.look_for(wanted)
    for block in blocks:
        exchange.from_terminal(block)
    exchange.finish()
    assert exchange.found == (wanted in exchange.output)


def test_what_was_printed_before_is_not_found():
    exchange = heard(BEGIN + b"wanted")
    exchange.look_for(b"wanted")
    exchange.from_terminal(b"more")
    assert not exchange.found
