"""Canaries of one file are found anew, and those of the others stay."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.audit.canary.some import merged, narrowed
from sandbox.errors import UserError, VerifierFault
from sandbox.formats.digest import Entry
from sandbox.formats.layerfile import CANARIES, layer_path, written
from sandbox.model.layers import Canaries, Edit, Unit
from sandbox.model.task import CheckSpec, Digest, TaskSpec
from sandbox.runtime.supplies import Supplies
from tests.unit.test_verify_layers import Verified

OLD, NEW = "tests/test_old.py", "tests/test_new.py"
SOURCE = b"def test_x():\n    assert f() == 1\n"


def unit(path: str, line: int = 2) -> Unit:
    edit = Edit(path=path, line=line, column=18, old="1", new="2")
    return Unit(
        name=f"{path}::test_x", edits=(edit,), checks={f"{path}::test_x": f"{path}::test_x"}
    )


def canaries(*paths: str, **uncovered: str) -> Canaries:
    return Canaries(bundle=Digest("b"), units=tuple(map(unit, paths)), uncovered=uncovered)


@pytest.fixture
def it(tmp_path: Path) -> Verified:
    made = Verified(tmp_path, lambda _: {})
    ids = (f"{OLD}::test_x", f"{OLD}::test_y", f"{NEW}::test_x", f"{NEW}::test_y")
    checks = tuple(CheckSpec(id=i) for i in ids)
    home = tmp_path / "home"
    (home / "verifiers" / made.task.id).mkdir(parents=True)
    verifier = replace(made.task.verifier, checks=checks)
    made.task = replace(made.task, home=str(home), verifier=verifier)
    tests = (Entry(OLD, "file", SOURCE), Entry(NEW, "file", SOURCE))
    made.supplies = replace(made.supplies, tests=tests)
    return made


@pytest.fixture
def merge(it: Verified) -> Callable[[Canaries, Canaries], Canaries]:
    def merge(before: Canaries, found: Canaries) -> Canaries:
        task: TaskSpec = it.task
        supplies: Supplies = it.supplies
        layer_path(task, CANARIES).write_text(written(before))
        return merged(task, found, [NEW], supplies)

    return merge


def test_only_the_checks_of_these_files_are_looked_at(it: Verified):
    task = narrowed(it.task, [NEW])
    assert [c.id for c in task.verifier.checks] == [f"{NEW}::test_x", f"{NEW}::test_y"]
    assert task.verifier.arguments == (NEW,)
    assert task.verifier.bundle == it.task.verifier.bundle


def test_a_file_without_checks_is_named(it: Verified):
    with pytest.raises(UserError, match=r"no check in tests/test_neww\.py"):
        narrowed(it.task, [NEW, "tests/test_neww.py"])
    go = replace(it.task, verifier=replace(it.task.verifier, runner="go"))
    with pytest.raises(UserError, match="single files"):
        narrowed(go, [NEW])


def test_what_was_known_of_other_files_stays_and_what_is_new_replaces(merge):
    before = canaries(OLD, NEW, **{f"{OLD}::test_y": "old", f"{NEW}::test_y": "stale"})
    fresh = replace(canaries(NEW, **{f"{NEW}::test_y": "fresh"}), bundle=Digest("new"))
    found = merge(before, fresh)
    assert [u.name for u in found.units] == [f"{NEW}::test_x", f"{OLD}::test_x"]
    assert found.uncovered == {f"{OLD}::test_y": "old", f"{NEW}::test_y": "fresh"}
    assert found.bundle == "new"


def test_what_is_no_check_any_more_is_dropped(merge):
    gone = Unit(name="g", edits=(), checks={f"{OLD}::test_gone": f"{OLD}::test_gone"})
    before = replace(canaries(OLD), units=(unit(OLD), gone), uncovered={f"{OLD}::test_z": "why"})
    found = merge(before, canaries(NEW))
    assert len(found.units) == 2
    assert found.uncovered == {}


def test_canaries_of_another_file_that_has_changed_are_refused(merge):
    before = replace(canaries(OLD), units=(unit(OLD, line=1),))
    with pytest.raises(VerifierFault, match="not where it was"):
        merge(before, canaries(NEW))
