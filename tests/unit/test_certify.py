"""What is moved, what counts as a difference, and what is said of it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.audit.certify.compare import compare
from sandbox.audit.certify.findings import NOP, ORACLE, Finding, examine
from sandbox.audit.certify.names import family, suspicion
from sandbox.audit.certify.shifts import QUICK, REPEATS, Shift, all_shifts, choose
from sandbox.errors import UserError
from sandbox.model.task import ClockSpec, TaskSpec
from sandbox.model.verdict import CheckReport, Evidence, HeldClock, Outcome, Ran
from tests.support.homes import a_task

AT = "2024-05-15T12:00:00Z"
ONE, TWO, GATE = (f"tests/test_a.py::test_{n}" for n in ("one", "two", "gate"))
SHIFTS = choose(all_shifts(ClockSpec(at=AT)), QUICK)
REPORTS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(list(Outcome)))


def seen(
    ran: Ran = Ran.FINISHED, *, exit_code: int = 0, detail: str = "", **outcomes: str
) -> Evidence:
    return told(outcomes, ran, exit_code=exit_code, detail=detail)


def told(
    outcomes: Mapping[str, str],
    ran: Ran = Ran.FINISHED,
    *,
    exit_code: int = 0,
    detail: str = "",
) -> Evidence:
    named = {"one": ONE, "two": TWO, "gate": GATE}
    return Evidence(
        ran=ran,
        detail=detail,
        exit_code=exit_code,
        clock=HeldClock(at=AT, mode="ticking", coverage="full"),
        report={
            named.get(n, n): CheckReport(outcome=Outcome(o), message=f"{n} {o}")
            for n, o in outcomes.items()
        },
    )


GOOD = seen(one="passed", two="passed", gate="passed")
BAD = seen(one="failed", two="failed", gate="passed", exit_code=1)


@pytest.fixture
def task(tmp_path: Path) -> TaskSpec:
    return a_task(tmp_path)


def found(task: TaskSpec, shifts: tuple[Shift, ...] = SHIFTS, **moved: Evidence) -> Finding:
    """What is said when the reference solution does this under some shifts, and else is good."""
    under = {name.replace("_", "-"): evidence for name, evidence in moved.items()}
    runs = {
        ORACLE: {s.name: under.get(s.name, GOOD) for s in shifts},
        NOP: {s.name: BAD for s in shifts},
    }
    return examine(task, shifts, runs, dict.fromkeys(runs, "0" * 64))


def test_nothing_moves_a_task_that_stands_still(task: TaskSpec):
    finding = found(task)
    assert finding.still
    assert [(t.submission, t.verdict.resolved) for t in finding.told] == [
        ("oracle", True),
        ("nop", False),
    ]


def test_a_check_that_fails_a_year_later_is_named_with_both_outcomes(task: TaskSpec):
    finding = found(task, year_later=seen(one="passed", two="failed", gate="passed"))
    assert not finding.still
    (varied,) = finding.varied
    assert (varied.check, varied.why) == (TWO, "varies with year-later")
    (sighting,) = varied.sightings
    assert (sighting.submission, sighting.shift) == ("oracle", "year-later")
    assert str(sighting.change) == "passed → failed (two failed)"


def test_a_check_that_passes_where_it_had_failed_is_a_difference_too(task: TaskSpec):
    runs = {
        NOP: {s.name: BAD for s in SHIFTS}
        | {"user": seen(one="passed", two="failed", gate="passed")}
        | {"order-1": seen(one="passed", two="failed", gate="passed", exit_code=1)}
    }
    (varied,) = examine(task, SHIFTS, runs, {NOP: ""}).varied
    assert varied.check == ONE


def test_a_check_that_differs_between_repeats_is_blamed_on_nothing_else(task: TaskSpec):
    other = seen(one="failed", two="passed", gate="passed")
    assert found(task, repeat_2=other, order_1=other).varied[0].why == "varies from run to run"


def test_a_run_that_did_not_come_to_its_tests_is_never_the_same(task: TaskSpec):
    """As an audit once had it that looked at what failed only: in a run of nothing, nothing does."""
    for nothing in (
        seen(Ran.CRASHED, detail="exit code 1", exit_code=1),
        seen(Ran.TIMED_OUT),
        seen(Ran.REJECTED, detail="the patch does not apply"),
    ):
        finding = found(task, order_1=nothing)
        assert not finding.still
        assert finding.problems[0].startswith("oracle with order-1: finished → ")
        assert finding.varied == (), "no check is to blame"
    assert len(found(task, order_1=seen()).varied) == 3


def test_a_run_that_reports_nothing_either_time_differs_by_how_it_ended():
    assert not compare(seen(exit_code=5), seen(exit_code=5))
    assert compare(seen(exit_code=5), seen(exit_code=4)).run == "exit code 5 → 4"

    def with_canaries(code: int) -> Evidence:
        return replace(seen(exit_code=code), asked="mixed")

    assert not compare(with_canaries(1), seen(exit_code=0))
    assert compare(with_canaries(1), with_canaries(0)).run == "exit code 1 → 0"
    assert compare(seen(detail="could not be collected: a.py"), seen())


def test_the_order_of_what_could_not_be_collected_is_no_difference():
    first, second = (f"could not be collected: {x}" for x in ("a.py, b.py", "b.py, a.py"))
    assert not compare(seen(detail=first), seen(detail=second))


def test_a_run_that_is_cut_short_blames_no_check(task: TaskSpec):
    base, other = seen(Ran.TIMED_OUT, one="passed"), seen(Ran.TIMED_OUT, one="passed", two="passed")
    assert compare(base, other).run == "timed out, after 1 and 2 tests"


@given(REPORTS, REPORTS)
def test_any_changed_outcome_is_reported(before: dict[str, Outcome], after: dict[str, Outcome]):
    difference = compare(told(before), told(after))
    changed = {
        c
        for c in before.keys() | after.keys()
        if before.get(c, Outcome.MISSING) is not after.get(c, Outcome.MISSING)
    }
    assert {c.check for c in difference.changes} == changed
    assert bool(difference) == bool(changed)


def test_verdicts_that_are_always_wrong_are_not_certified(task: TaskSpec):
    runs = {ORACLE: {s.name: BAD for s in SHIFTS}, NOP: {s.name: GOOD for s in SHIFTS}}
    problems = examine(task, SHIFTS, runs, dict.fromkeys(runs, "")).problems
    assert problems[0].startswith("the reference solution does not resolve it: 2 checks")
    assert problems[1:] == ("doing nothing resolves it",)


@pytest.mark.parametrize(
    "clock",
    [None, HeldClock(at=AT, mode="ticking", coverage="partial", warning="an old kernel")],
    ids=["untold", "partial"],
)
def test_a_clock_that_some_programs_do_not_see_makes_it_void(
    task: TaskSpec, clock: HeldClock | None
):
    finding = found(task, order_1=replace(GOOD, clock=clock))
    assert not finding.still
    assert finding.void[0].startswith(
        "oracle with order-1: the clock of some programs was not held"
    )


def test_names_that_hold_the_date_are_told_as_what_varies(task: TaskSpec):
    dated = "tests/test_a.py::test_day[2024-05-15]"
    spec = replace(task.verifier, checks=(replace(task.verifier.checks[0], id=dated),))
    base = told({dated: "passed"})
    later = told({"tests/test_a.py::test_day[2025-05-15]": "passed"})
    runs = {ORACLE: {s.name: base for s in SHIFTS} | {"year-later": later}}
    finding = examine(replace(task, verifier=spec), SHIFTS, runs, {ORACLE: ""})
    (varied,) = finding.varied
    assert varied.why == (
        "varies with year-later: its name holds the date 2024-05-15, "
        "when the box's clock began at 2024-05-15T12:00:00Z"
    )
    assert [v.check for v in finding.beside] == ["tests/test_a.py::test_day[*]"]


def test_tests_that_are_no_checks_are_told_by_family_and_stop_nothing(task: TaskSpec):
    """Each run has names of its own: only that of the family is the same in the next one."""
    runs = {
        s.name: told(
            {ONE: "passed", TWO: "passed", GATE: "passed"}
            | {f"t.py::test_x[{number:032x}]": "passed"}
        )
        for number, s in enumerate(SHIFTS)
    }
    finding = examine(task, SHIFTS, {ORACLE: runs}, {ORACLE: ""})
    assert finding.still
    (beside,) = finding.beside
    assert beside.check == "t.py::test_x[*]"
    assert beside.why == "varies from run to run: its name holds a UUID"


SUSPECT = {
    "a.py::t[3f2504e0-4f89-11d3-9a0c-0305e82c3301]": "a UUID",
    "a.py::t[<object at 0x7f3c5a1b2d90>]": "an address of memory",
    "a.py::t[/tmp/tmpab12]": "a temporary path",
    "a.py::t[2024-05-15]": "the date 2024-05-15",
    "a.py::t[20240516]": "the date 20240516",
    "a.py::t[year 2024]": "the year 2024",
    "a.py::t[1715774400]": "a time in seconds",
}


@pytest.mark.parametrize("name", SUSPECT)
def test_time_chance_and_places_in_a_name_are_recognised(name: str):
    assert SUSPECT[name] in suspicion(name, (AT,))


@pytest.mark.parametrize(
    "name",
    ["a.py::test_one", "a.py::t[2019-01-01]", "a.py::t[20245]", "a.py::t[0x1f]", "a.py::t[1-2]"],
)
def test_a_test_about_another_day_or_a_number_is_not_suspect(name: str):
    assert suspicion(name, (AT,)) == ""


def test_a_family_is_a_name_without_its_parameters():
    assert family("a.py::t[x[y]]") == "a.py::t[*]"
    assert family("a.py::t") == "a.py::t"


YEARS = st.integers(2000, 2037)


@given(st.dates(date(2000, 1, 1), date(2037, 12, 31)))
def test_every_shift_has_its_own_name_and_an_instant_that_is_one(pin: date):
    shifts = all_shifts(ClockSpec(at=f"{pin}T12:00:00Z"))
    names = [s.name for s in shifts]
    assert len(set(names)) == len(names)
    assert names[:REPEATS] == [f"repeat-{n + 1}" for n in range(REPEATS)]
    for shift in shifts:
        if shift.conditions.at:
            assert 2000 <= datetime.fromisoformat(shift.conditions.at).year <= 2038


@given(YEARS)
def test_clocks_of_new_york_step_just_after_those_boxes_begin(year: int):
    by_name = {s.name: s for s in all_shifts(ClockSpec(at=f"{year}-05-15T12:00:00Z"))}
    zone = ZoneInfo("America/New_York")
    for name, step in (("dst-gap", 3600), ("dst-fold", -3600)):
        conditions = by_name[name].conditions
        began = datetime.fromisoformat(conditions.at).astimezone(zone)
        after = datetime.fromtimestamp(began.timestamp() + 2, zone)
        before, later = began.utcoffset(), after.utcoffset()
        assert before is not None
        assert later is not None
        if year >= 2007:
            assert (later - before).total_seconds() == step
        assert conditions.env == {"TZ": "America/New_York"}


def test_the_leap_day_is_one_and_a_year_from_it_is_a_day():
    by_name = {s.name: s for s in all_shifts(ClockSpec(at="2024-02-29T12:00:00Z"))}
    assert by_name["leap-day"].conditions.at == "2024-02-29T12:00:00Z"
    assert by_name["year-later"].conditions.at == "2025-02-28T12:00:00Z"
    assert "decade-earlier" in by_name
    late = {s.name for s in all_shifts(ClockSpec(at="2030-02-13T12:00:00Z"))}
    assert "decade-later" not in late, "no box can begin then"


def test_shifts_are_chosen_by_name_and_pattern_beside_the_first_repeat():
    shifts = all_shifts(ClockSpec(at=AT))
    assert [s.name for s in choose(shifts, ["user", "zone-*"])] == [
        "repeat-1",
        "zone-kolkata",
        "zone-chatham",
        "zone-west",
        "user",
    ]
    assert [s.name for s in SHIFTS] == list(QUICK)
    with pytest.raises(UserError, match="no shift `usr`") as refused:
        choose(shifts, ["usr"])
    assert refused.value.hint == "did you mean `user`?"
