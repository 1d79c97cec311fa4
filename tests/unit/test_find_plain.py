"""Which checks and expectations a plain run keeps, by what its boxes show."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.audit.plain.find import Examined, examine, settle
from sandbox.audit.plain.sites import class_bases, find_sites
from sandbox.formats.digest import Entry
from sandbox.model.layers import Site
from sandbox.model.task import CheckSpec, TaskSpec
from sandbox.model.verdict import CheckReport, Outcome, Ran, Seen
from sandbox.runtime.fake import FakeRuntime
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot
from tests.support.homes import a_task

TESTS = """\
class TestA:
    def test_one(self):
        assert f() == 'abc'
        assert g() is None
class TestB(TestA): ...
def test_two():
    assert f() == 2
"""
ENTRIES = [Entry("t.py", "file", TESTS.encode())]
ONE, HEIR, TWO, ASYNC = (
    "t.py::TestA::test_one",
    "t.py::TestB::test_one",
    "t.py::test_two",
    "t.py::test_async[1]",
)
RIGHT = {"o0": ("'abc'",), "o1": ("None",), "o2": ("2",)}
SOLUTION = b"the solution"


def seen(observed: Mapping[str, tuple[str, ...]], **outcomes: str) -> Seen:
    names = {"one": ONE, "heir": HEIR, "two": TWO, "other": ASYNC}
    told = {"one": "passed", "heir": "passed", "two": "passed", **outcomes}
    report = {names[n]: CheckReport(outcome=Outcome(o), message="why") for n, o in told.items()}
    return Seen(ran=Ran.FINISHED, report=report, observed=dict(observed), seconds=1.5)


@pytest.fixture
def task(tmp_path: Path) -> TaskSpec:
    return a_task(tmp_path, checks=tuple(CheckSpec(id=c) for c in (ONE, HEIR, TWO, ASYNC)))


def settled(task: TaskSpec, with_it: Sequence[Seen], without: Seen) -> Examined:
    """with_it: what each run with the solution shows; the last one again and again."""
    shows = list(with_it)

    def show(patch: bytes, sites: Sequence[Site]) -> Seen:
        if not patch:
            return without
        told = shows.pop(0) if len(shows) > 1 else shows[0]
        keys = {site.key for site in sites}
        return replace(told, observed={k: v for k, v in told.observed.items() if k in keys})

    return settle(task, find_sites(ENTRIES), class_bases(ENTRIES), SOLUTION, show)


def test_what_is_shown_as_expected_is_kept_with_its_observations(task: TaskSpec):
    found = settled(task, [seen(RIGHT)], seen(RIGHT, two="failed"))
    assert found.plain.checks == {ONE: ("o0", "o1"), HEIR: ("o0", "o1"), TWO: ("o2",)}
    assert found.plain.left == {ASYNC: "a plain run finds no test of this name"}
    assert (found.withheld, found.told_apart, found.seconds) == (3, 1, 1.5)
    assert "takes 3 of 4 checks" in found.words()


def test_a_site_that_shows_another_value_is_dropped_and_its_check_is_not(task: TaskSpec):
    shown = {**RIGHT, "o0": ("'abc'", "!Text")}
    found = settled(task, [seen(shown)], seen(RIGHT))
    assert found.plain.checks[ONE] == ("o1",)
    assert [site.key for site in found.plain.sites] == ["o1", "o2"]


def test_a_site_that_is_never_reached_is_dropped(task: TaskSpec):
    found = settled(task, [seen({"o2": ("2",)})], seen({}))
    assert found.plain.checks == {ONE: (), HEIR: (), TWO: ("o2",)}
    assert (found.withheld, found.rich, found.told_apart) == (1, 1, 1)


def test_a_check_has_to_pass_every_time(task: TaskSpec):
    found = settled(task, [seen(RIGHT, two="error"), seen(RIGHT)], seen(RIGHT))
    assert found.plain.left[TWO] == "error: why"
    assert [site.key for site in found.plain.sites] == ["o0", "o1"], "nobody needs the third"


def test_an_observation_that_changes_from_run_to_run_is_none(task: TaskSpec):
    runs = [seen(RIGHT), seen({**RIGHT, "o2": ("3",)}), seen(RIGHT)]
    found = settled(task, runs, seen(RIGHT))
    assert found.plain.checks[TWO] == ()


def test_an_outcome_that_counts_as_a_pass_is_taken(task: TaskSpec):
    checks = (*task.verifier.checks[:3], CheckSpec(id=ASYNC, accept=("skipped",)))
    task = replace(task, verifier=replace(task.verifier, checks=checks))
    found = settled(task, [seen(RIGHT, other="skipped")], seen(RIGHT))
    assert found.plain.left == {}


def test_what_pytest_does_not_run_has_no_plain_run(task: TaskSpec, tmp_path: Path):
    task = replace(task, verifier=replace(task.verifier, runner="go"))
    depot = Depot(Store(tmp_path / "store"), lambda *_: None)
    found = examine(task, depot, FakeRuntime())
    assert set(found.plain.left.values()) == {"there is no plain run for go"}
    assert found.plain.checks == {}
