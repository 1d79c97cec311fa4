"""Canaries as a file, and their pins in task.yaml."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.audit.canary.pin import pin_layers, with_layers
from sandbox.errors import UserError
from sandbox.formats import jsonfile
from sandbox.formats.layerfile import load_layers, written
from sandbox.formats.taskfile import load_task
from sandbox.model.layers import Canaries, Edit, Plain, Unit
from sandbox.model.task import Digest
from tests.support.homes import write_home

YAML = """\
schema: 1
verifier:   # how it is judged
  bundle:
    folder: bundle
    layers: no key of ours
  run: [tests]  # all of them

# the instant
clock:
  at: 2024-05-15T12:00:00Z
"""
WITH = YAML.replace("all of them\n", "all of them\n  layers: [canary]\n  canaries: sha256:1\n")
PINS = {"layers": "[canary]", "canaries": "sha256:1"}


def test_the_keys_are_added_to_their_block_and_nothing_else_changes():
    assert with_layers(YAML, PINS, "task.yaml") == WITH


def test_again_is_the_same_and_what_is_no_longer_there_goes():
    assert with_layers(WITH, PINS, "task.yaml") == WITH
    longer = with_layers(WITH, {**PINS, "layers": "[canary, plain]", "plain": "sha256:2"}, "")
    assert longer.count("sha256:2") == 1
    assert with_layers(longer, PINS, "") == WITH
    assert with_layers(YAML.rstrip("\n"), PINS, "") == WITH


def test_a_block_that_is_not_written_by_lines_is_refused():
    with pytest.raises(UserError, match=r"task\.yaml: `verifier` is not written one key a line"):
        with_layers("verifier: {run: [tests]}\n", PINS, "task.yaml")


def some_canaries(home: Path) -> Canaries:
    task = load_task(home, "toy-1")
    edit = Edit(path="tests/test_a.py", line=1, column=0, old="1", new="2")
    unit = Unit(name="u", edits=(edit, edit), checks={"tests/test_a.py::test_one": "a"})
    return Canaries(bundle=task.verifier.bundle.digest, units=(unit,), uncovered={"x": "no"})


def test_what_is_pinned_can_be_loaded_and_pinning_again_changes_nothing(tmp_path: Path):
    home = write_home(tmp_path)
    task, found = load_task(home, "toy-1"), some_canaries(home)
    plain = Plain(bundle=found.bundle, checks={"tests/test_a.py::test_one": ()})
    changed = pin_layers(task, found, plain)
    assert [p.name for p in changed] == ["canaries.json", "plain.json", "task.yaml"]
    again = load_task(home, "toy-1")
    assert again.verifier.layers == ("canary", "plain")
    assert again.digest != task.digest
    layers = load_layers(again)
    assert (layers.canaries, layers.plain, layers.withheld) == (found, plain, None)
    assert pin_layers(again, found, plain) == []


def test_where_nothing_was_found_no_verdict_rests_on_it(tmp_path: Path):
    home = write_home(tmp_path)
    task, found = load_task(home, "toy-1"), some_canaries(home)
    pin_layers(task, found, None)
    pin_layers(task, Canaries(bundle=found.bundle, units=()), None)
    again = load_task(home, "toy-1")
    assert (again.verifier.layers, again.verifier.canaries) == ((), None)


def test_each_edit_is_a_line_of_the_file(tmp_path: Path):
    text = written(some_canaries(write_home(tmp_path)))
    line = '{"path": "tests/test_a.py", "line": 1, "column": 0, "old": "1", "new": "2"}'
    assert [x.strip().rstrip(",") for x in text.splitlines()].count(line) == 2


@given(
    st.lists(
        st.builds(
            Unit,
            name=st.text(max_size=5),
            edits=st.just(()),
            checks=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
            others=st.lists(st.text(max_size=3), max_size=2).map(tuple),
        ),
        max_size=3,
    ).map(tuple)
)
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, units):
    made = Canaries(bundle=Digest("sha256:" + "1" * 64), units=units)
    path = tmp_path_factory.mktemp("c") / "canaries.json"
    jsonfile.write(path, written(made))
    assert jsonfile.load(path, Canaries) == made
