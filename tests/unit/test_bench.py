"""What the bench makes of what it measured: medians, tables, bounds, growth."""

from typing import Any

import pytest

from tests.bench import clock, cycles, endurance, flood, latency, report, termreport
from tests.bench.clock import Clock
from tests.bench.figures import (
    Bound,
    bounds_table,
    broken,
    growth,
    medians,
    middle,
    number,
    percentile,
    quotient,
    replace_section,
    spread,
    table,
    times_table,
)

MACHINE = {
    "date": "2026-01-02T03:04:05+00:00", "cores": 2, "kernel": "6.1", "cgroups": "v2",
    "python": "3.11.7", "engine": "20.10", "bubblewrap": "", "load_before": [0.1, 0.2, 0.3],
    "load_after": [0.4, 0.5, 0.6], "commit": "abc",
}  # fmt: skip


def run(**parts: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {
        "machine": MACHINE, "options": {"rounds": 3, "quick": False}, "ms": {}, "failed": {},
        "throughput": {}, "idle": {}, "images": {}, "left_out": {}, "bounds": [],
    }  # fmt: skip
    return empty | parts


def bound(found: dict[str, Any], words: str) -> Bound:
    return next(b for b in report.bounds(found) if b.words.startswith(words))


def test_a_median_is_of_what_was_measured():
    assert medians({"a": {"x": [3, 1, 2], "y": []}}) == {"a": {"x": 2}}


@pytest.mark.parametrize(("one", "other"), [(None, 1.0), (1.0, None), (1.0, 0.0)])
def test_there_is_no_quotient_of_what_is_missing(one: float | None, other: float | None):
    assert quotient(one, other) is None


def test_numbers_have_the_digits_that_mean_something():
    assert [number(x) for x in (None, 0.123, 9.87, 12.34, 1234.5)] == [
        "–", "0.12", "9.87", "12.3", "1234",
    ]  # fmt: skip


def test_a_spread_is_median_and_best():
    assert spread([3.0, 1.0, 2.0]) == "2.00 (1.00)"
    assert spread([]) == "–"


def test_columns_of_a_table_line_up():
    lines = table(["what", "n"], [["a", "1"], ["longer", "1000"]]).splitlines()
    assert lines == [
        "| what   |    n |",
        "| ------ | ---: |",
        "| a      |    1 |",
        "| longer | 1000 |",
    ]


def test_a_measure_that_nobody_has_is_no_row():
    shown = times_table({"one": {"x": [1.0]}, "two": {}}, ["x", "y"], ["one", "two", "three"])
    assert "y" not in shown
    assert "three" not in shown
    assert shown.splitlines()[2].split("|")[2:4] == [" 1.00 (1.00) ", "   – "]


@pytest.mark.parametrize(
    ("figure", "at_least", "holds"),
    [
        (4.9, False, True),
        (5.1, False, False),
        (4.9, True, False),
        (5, True, True),
        (None, True, None),
    ],
)
def test_a_bound(figure: float | None, at_least: bool, holds: bool | None):  # noqa: FBT001
    assert Bound(words="w", figure=figure, limit=5, at_least=at_least).holds is holds


def test_what_was_not_measured_is_not_held_against_anybody():
    bounds = [
        Bound(words="good", figure=1, limit=2).as_json(),
        Bound(words="bad", figure=3, limit=2, unit="ms").as_json(),
        Bound(words="unknown", figure=None, limit=2).as_json(),
    ]
    assert broken(bounds) == ["bad"]
    assert [line.split("|")[-2].strip() for line in bounds_table(bounds).splitlines()[2:]] == [
        "yes", "**no**", "not measured",
    ]  # fmt: skip


def test_noise_is_no_growth():
    samples = [50.0] * 4 + [100, 102, 99, 101, 100, 101, 103, 99, 100, 104, 98, 101]
    assert not growth("x", samples, least=1).grown


def test_a_leak_is_growth():
    found = growth("x", [10.0 + n for n in range(80)], least=4)
    assert found.grown
    assert (found.early, found.late) == (39.5, 79.5)


def test_the_first_quarter_only_warms_up():
    assert not growth("x", [1.0] * 4 + [500.0] * 12, least=1).grown


def test_the_margin_is_the_larger_of_the_two():
    assert growth("x", [100.0] * 8, least=1, share=0.1).margin == 10
    assert growth("x", [100.0] * 8, least=20, share=0.1).margin == 20


def test_few_samples_say_nothing():
    with pytest.raises(ValueError, match="7 samples"):
        growth("x", [1.0] * 7, least=1)


def test_everything_that_is_sampled_is_judged():
    samples = [dict.fromkeys(cycles.MARGINS, float(n > 8) * 1000) for n in range(16)]
    assert [g.name for g in cycles.growths(samples) if g.grown] == list(cycles.MARGINS)


def test_ratios_are_of_the_medians_of_one_run():
    ms = {
        "embedded": {clock.FIRST: [9.0, 10.0, 300.0], clock.EXEC: [1.0]},
        "Docker SDK": {clock.FIRST: [400.0], clock.EXEC: [50.0]},
        "raw limit": {clock.FIRST: [5.0]},
        "docker": {clock.CREATE: [110.0]},
        "docker run": {clock.LIFE: [100.0]},
    }
    found = run(ms=ms)
    of_sdk = bound(found, "embedded: create → first command, of the Docker SDK")
    assert (of_sdk.figure, of_sdk.holds) == (10 / 400, True)
    assert bound(found, "embedded: create → first command, of the raw").figure == 2
    assert bound(found, "embedded: a further command").figure == 1 / 50
    assert bound(found, "docker: create, of plain").figure == 1.1


def test_a_run_in_which_nothing_could_be_measured_still_makes_a_report():
    found = run(left_out={"docker": "no engine"})
    found["bounds"] = [b.as_json() for b in report.bounds(found)]
    assert {b["holds"] for b in found["bounds"]} == {None}
    assert "- docker: no engine" in report.tables(found)


def test_a_report_names_what_failed():
    rate = {"per_second": 3.0, "cycles": 9, "failed": 2, "seconds": 3.0}
    found = run(throughput={"embedded": {"32": rate}}, failed={"docker": {"fork": "not there"}})
    shown = report.tables(found)
    assert "3.00 (2 failed)" in shown
    assert "- docker, fork: not there" in shown


def test_a_kill_that_left_something_does_not_hold():
    kill = {
        "ms": 100.0, "boxes_ms": 90.0, "folders_ms": 120.0, "empty_groups": 5, "left": [],
    }  # fmt: skip
    found = {"cycles": {}, "alive": {}, "kills": [kill, kill | {"ms": None}]}
    left = [b.holds for b in endurance.bounds(found)]
    assert left == [None, False, False, True]


def test_a_percentile_is_one_of_what_was_measured():
    assert percentile(list(range(1, 1001)), 99) == 990
    assert percentile([7.0], 99) == 7.0
    assert percentile([], 99) is None
    assert middle([]) is None


def test_a_flood_knows_how_much_it_prints_on_a_terminal_and_into_a_pipe():
    numbers, line, pairs = flood.floods(part=50_000)
    assert numbers.expected("pipe") == sum(len(f"{n}\n") for n in range(1, 101))
    assert numbers.expected("tty") == numbers.expected("pipe") + 100
    assert (line.expected("tty"), pairs.expected("pipe")) == (2002, pairs.lines * 2)


def terminal_run(**parts: Any) -> dict[str, Any]:
    return {"machine": MACHINE, "options": {"quick": False}, "bounds": [], "left": []} | parts


def terminal_bound(found: dict[str, Any], words: str) -> Bound:
    return next(b for b in termreport.bounds(found) if b.words.startswith(words))


def test_our_terminal_is_held_to_a_bare_one_and_to_another():
    ms = {latency.BARE: [0.1, 0.2, 9.0], "embedded, tty": [0.8], latency.REX: [160.0]}
    found = terminal_run(latency={"ms": ms, "versions": {}, "left_out": {}})
    assert terminal_bound(found, "`true`, embedded, tty").figure == 4
    assert terminal_bound(found, "`true`, SWE-ReX to embedded, tty").holds is True
    assert terminal_bound(found, "`true`, docker, pipe").holds is None


def test_what_a_terminal_run_leaves_behind_does_not_hold():
    assert terminal_bound(terminal_run(left=["process 7"]), "left over").holds is False


def test_output_that_was_counted_wrong_or_shown_too_long_does_not_hold():
    one = {"seconds": 2.0, "bytes": 5, "expected": 6, "shown": 70_000, "grown_mib": 1.0}
    floods = {"seq": {flood.BARE: [{"seconds": 1.0, "bytes": 6}], "embedded, tty": [one]}}
    found = terminal_run(throughput={"floods": floods, "left_out": {}})
    holds = {b.words: b.holds for b in termreport.bounds(found)}
    assert holds == {
        "seq: tty, speed to a bare loop's": True,
        "much output: growth of our memory": True,
        "much output: observations over their limit": False,
        "much output: bytes counted wrong": False,
        "left over in the end": True,
    }


def test_a_section_that_was_not_asked_for_has_no_bounds_and_no_table():
    assert [b.words for b in termreport.bounds(terminal_run())] == ["left over in the end"]
    assert "SWE-ReX" not in termreport.tables(terminal_run())


def test_a_terminal_report_names_who_was_not_here_and_what_was_wrong():
    alive = {
        "wanted": 2, "boxes": 1, "open_seconds": 0.1, "running": 2, "answered": 1,
        "mib_per_terminal": 0.1, "errors": ["after INT: running"],
    }  # fmt: skip
    kinds = {"embedded": {"runs": 9, "alarms": ["sleep 1"], "failed": [], "cat_ms": [5.0, None]}}
    found = terminal_run(
        latency={"ms": {}, "versions": {}, "left_out": {latency.TMUX: "not here: no tmux"}},
        many={"alive": alive, "rates": {}, "left_out": {}},
        input={"kinds": kinds, "left_out": {}},
    )
    found["bounds"] = [b.as_json() for b in termreport.bounds(found)]
    shown = termreport.tables(found)
    for words in ("- libtmux: not here: no tmux", "- after INT: running", "- embedded: sleep 1"):
        assert words in shown
    assert sum(b["holds"] is False for b in found["bounds"]) == 3


def test_a_failure_is_noted_and_the_round_goes_on():
    def fork() -> None:
        raise AttributeError("no fork")

    watch = Clock()
    with watch.optional("fork"):
        fork()
    with watch.optional("exec"):
        pass
    assert watch.failed == {"fork": "AttributeError: no fork"}
    assert list(watch.ms) == ["exec"]


def test_a_section_is_replaced_and_nothing_else():
    text = "before\n<!-- BEGIN a -->\nold\n<!-- END a -->\nafter\n"
    once = replace_section(text, "a", "new")
    assert once == "before\n<!-- BEGIN a -->\n\nnew\n\n<!-- END a -->\nafter\n"
    assert replace_section(once, "a", "new") == once
    with pytest.raises(ValueError, match="BEGIN b"):
        replace_section(text, "b", "new")
