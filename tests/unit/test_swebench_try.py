"""What a trial in boxes tells of an imported instance."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.adapters.swebench import Shelf
from sandbox.model.record import Submission
from sandbox.model.task import TaskSpec
from sandbox.model.verdict import CheckReport, Evidence, Outcome, Ran
from sandbox.rollout.run import World
from sandbox.runtime.fake import FakeRuntime
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot, Supplies
from tests.support.homes import some_supplies
from tests.support.imports import a_shelf, made, refused
from tests.support.swebenchrows import a_clone, a_row

CUT = ["tests/test_lib.py::test_name", "tests/test_lib.py::test_x[a", "tests/test_lib.py::test_y["]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return a_clone(tmp_path / "clones" / "tester__lib")


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return a_shelf(tmp_path)


def a_world(store: Store, solved: dict[str, str], idle: dict[str, str]) -> World:
    """Where tests end as it is said, with the reference solution and without."""

    def verify(task: TaskSpec, submission: Submission, *_: Any, **__: Any) -> Evidence:
        said = solved if submission.patch else idle
        names = {f"tests/test_lib.py::{name}": Outcome(how) for name, how in said.items()}
        report = {name: CheckReport(outcome=how) for name, how in names.items()}
        return Evidence(ran=Ran.FINISHED, report=report)

    depot = AnyDepot(store, lambda *_: None)
    return World(runtime=FakeRuntime(), depot=depot, verify=verify)


class AnyDepot(Depot):
    """Needs no image: there is no box."""

    def supply(self, task: TaskSpec) -> Supplies:
        return some_supplies(task, self.store.root)


SOLVES = {
    "test_answer": "passed", "test_name": "passed", "test_x[a b]": "passed",
    "test_x[a c]": "passed", "test_y[a]": "passed", "test_y[b]": "failed",
}  # fmt: skip


def test_a_trial_tells_which_tests_a_cut_id_means(shelf: Shelf, clone: Path):
    idle = SOLVES | {"test_answer": "failed"}
    shelf = replace(shelf, world=a_world(shelf.store, SOLVES, idle))
    one, task = made(shelf, a_row(clone, PASS_TO_PASS=CUT))
    assert [c.id.partition("::")[2] for c in task.verifier.checks if c.gate] == [
        "test_name", "test_x[a b]", "test_x[a c]",
    ]  # fmt: skip
    assert "its reference resolves it here" in one.notes
    checks = (shelf.home / "verifiers" / task.id / "checks.yaml").read_text()
    assert "id: tests/test_lib.py::test_y[\n" in checks, "its tests do not end alike"


def test_a_test_that_only_the_solution_passes_is_scored_whatever_list_it_stood_in(
    shelf: Shelf, clone: Path
):
    idle = SOLVES | {"test_answer": "failed", "test_x[a b]": "failed", "test_x[a c]": "failed"}
    shelf = replace(shelf, world=a_world(shelf.store, SOLVES, idle))
    _, task = made(shelf, a_row(clone, PASS_TO_PASS=CUT))
    assert [c.id.partition("::")[2] for c in task.verifier.checks if not c.gate] == [
        "test_answer", "test_x[a b]", "test_x[a c]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("solved", "idle", "why"),
    [
        ({}, {}, "its reference does not resolve it in image `python-3.11`: 1 gate did not pass"),
        (SOLVES, SOLVES, "doing nothing resolves it"),
    ],
)
def test_what_a_trial_refutes_is_no_task(
    shelf: Shelf, clone: Path, solved: dict[str, str], idle: dict[str, str], why: str
):
    shelf = replace(shelf, world=a_world(shelf.store, solved, idle))
    assert why in refused(shelf, a_row(clone)).reasons[0]


def test_what_doing_nothing_is_worth_is_noted(shelf: Shelf, clone: Path):
    before = ["tests/test_lib.py::test_answer", "tests/test_lib.py::test_x[a b]"]
    idle = SOLVES | {"test_answer": "failed"}
    shelf = replace(shelf, world=a_world(shelf.store, SOLVES, idle))
    one, _ = made(shelf, a_row(clone, FAIL_TO_PASS=before))
    assert "its reference resolves it here; doing nothing is worth 0.5" in one.notes


def test_a_trial_may_tell_every_test_that_was_cut(shelf: Shelf, clone: Path):
    solved = {"test_name": "passed", "test_x[a b]": "passed"}
    idle = solved | {"test_x[a b]": "failed"}
    shelf = replace(shelf, world=a_world(shelf.store, solved, idle))
    _, task = made(shelf, a_row(clone, FAIL_TO_PASS=["tests/test_lib.py::test_x[a"]))
    assert [c.id for c in task.verifier.checks if not c.gate] == ["tests/test_lib.py::test_x[a b]"]


def test_a_cut_test_that_no_trial_finds_stays_what_it_was(shelf: Shelf, clone: Path):
    shelf = replace(shelf, world=a_world(shelf.store, SOLVES, SOLVES))
    one = refused(shelf, a_row(clone, FAIL_TO_PASS=["tests/test_lib.py::test_z[a"]))
    assert "first tests/test_lib.py::test_z[a (missing)" in one.reasons[0]


def test_an_id_that_only_looks_cut_is_itself(shelf: Shelf, clone: Path):
    solved = SOLVES | {"test_z[": "passed", "test_z[[]": "failed"}
    world = a_world(shelf.store, solved, solved | {"test_answer": "failed"})
    shelf = replace(shelf, world=world)
    _, task = made(shelf, a_row(clone, PASS_TO_PASS=["tests/test_lib.py::test_z["]))
    assert [c.id for c in task.verifier.checks if c.gate] == ["tests/test_lib.py::test_z["]
