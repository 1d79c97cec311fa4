"""What the bench of clocks says about what it has measured."""

from tests.bench import freezereport as f
from tests.bench.figures import Bound


def held(values: dict[str, dict[str, list[float]]]) -> dict[str, Bound]:
    found = f.bounds({"values": {"embedded": values}})
    return {bound.words: bound for bound in found}


def test_a_look_at_the_clock_may_take_twice_as_long():
    looks = {f.C_READS: {f.PLAIN: [20.0, 30.0, 25.0], f.TICKING: [50.0, 60.0, 40.0]}}
    (bound,) = held(looks).values()
    assert (bound.figure, bound.holds) == (2.0, True)


def test_stat_and_start_are_held_to_what_they_take_more():
    values = {
        f.STAT: {f.PLAIN: [500.0], f.TICKING: [3500.0]},
        f.START: {f.PLAIN: [20.0], f.TICKING: [24.0]},
    }
    stat, start = held(values).values()
    assert (stat.figure, stat.unit, stat.holds) == (3.0, "µs", True)
    assert (start.figure, start.unit, start.holds) == (4.0, "ms", False)


def test_what_takes_less_takes_nothing_more():
    (bound,) = held({f.START: {f.PLAIN: [24.0], f.TICKING: [20.0]}}).values()
    assert bound.figure == 0.0


def test_processor_time_is_shown_and_held_to_nothing():
    values = {f.cpu(f.TESTS): {f.PLAIN: [1.0], f.TICKING: [9.0]}}
    assert held(values) == {}
    machine = dict.fromkeys(
        ("date", "cores", "kernel", "cgroups", "python", "engine", "bubblewrap", "commit"), "?"
    )
    shown = f.tables(
        {
            "machine": {**machine, "load_before": [0.1]},
            "options": {"quick": False, "rounds": 1},
            "values": {"embedded": values},
            "bounds": [],
            "left_out": {"docker": "OSError: none here"},
        }
    )
    assert "CPU ms" in shown
    assert "- docker: OSError: none here" in shown
