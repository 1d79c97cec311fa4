"""What counts as right in the table of programs: the check of the checks."""

import pytest

from tests.contract.clock.answers import PIN, Counts, Meanwhile, instants, split, wrong
from tests.contract.clock.page import PAGE, page
from tests.contract.clock.rows import ROWS

SECOND = 10**9
TICKING = Meanwhile(
    mode="ticking",
    first=(PIN + 5) * SECOND,
    last=(PIN + 6) * SECOND,
    up=3600 * SECOND,
    passed=7 * SECOND,
)
FIXED = Meanwhile(
    mode="fixed", first=PIN * SECOND, last=PIN * SECOND, up=3600 * SECOND, passed=7 * SECOND
)


@pytest.mark.parametrize(
    "line",
    [
        f"now {PIN + 5}",
        f"now {PIN + 6}",
        f"now {PIN + 5}.5",
        f"file {PIN + 4}.995000000",
        f"started {PIN - 100}",
        f"started {PIN + 6}",
        "waited 0.2 0.2",
        "waited 0.9 0.2",
    ],
)
def test_what_lies_between_two_looks_at_a_clock_that_ticks_is_right(line):
    kind = line.split()[0]
    counts = {
        "now": Counts(now=1),
        "file": Counts(files=1),
        "waited": Counts(waits=1),
        "started": Counts(starts=1),
    }
    assert wrong([line, "end 0"], counts[kind], TICKING) == []


@pytest.mark.parametrize(
    "line",
    [
        f"now {PIN + 3}",
        f"now {PIN + 7}",
        f"now {PIN + 4}.9",
        f"now {PIN + 6}.1",
        f"file {PIN + 4}.9",
        "now 1796021441.951038",
        "now 100.05",
        "started 1796021441",
        "started 0",
        "waited 0.0 0.2",
        "waited 20.0 0.2",
        "Traceback",
        "end 1",
    ],
)
def test_whatever_else_a_program_says_is_wrong(line):
    assert wrong([line], Counts(), TICKING)


def test_a_program_that_says_less_than_it_should_is_wrong():
    assert wrong(["end 0"], Counts(now=1), TICKING)
    assert wrong([f"now {PIN + 5}", "end 0"], Counts(), TICKING)


def test_a_clock_that_stands_is_told_to_the_last_digit():
    assert wrong([f"now {PIN}.000000000", f"now {PIN}", "end 0"], Counts(now=2), FIXED) == []
    for at in (f"{PIN}.000000001", f"{PIN - 1}.999999999", f"{PIN + 1}", f"{PIN - 1}"):
        assert wrong([f"now {at}", "end 0"], Counts(now=1), FIXED)


def test_the_looks_before_and_after_are_told_from_the_answer():
    found = split("now 1.000000001\nnow 2\nbegin\nnow 3\nend 0\nnow 4.000000002\n")
    assert found == (["now 1.000000001", "now 2"], ["now 3", "end 0"], ["now 4.000000002"])
    assert instants(found[0]) == [1_000_000_001]
    assert split("now 1\nbegin\nnow 3\n") is None


def test_the_page_shows_what_is_wrong_and_what_was_not_run():
    name = ROWS[0].name
    shown = page({"docker": {"ticking": {name: [["said 'a|b'"], 1.0]}}})
    assert f"| {name} | ✘ said 'a\\|b' |" in shown
    assert f"0 of {len(ROWS)} are right" in shown
    assert f"| {ROWS[1].name} | - |" in shown


def test_the_page_in_the_documentation_is_of_the_programs_there_are():
    lines = PAGE.read_text("utf-8").splitlines()
    rows = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")]
    assert rows[2:] == [row.name for row in ROWS]
