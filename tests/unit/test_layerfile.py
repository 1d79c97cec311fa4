"""Layers that a task names are what it pins, and ask for something."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import SpecError, VerifierFault
from sandbox.formats.layerfile import CANARIES, PLAIN, file_digest, layer_path, load_layers, written
from sandbox.model.layers import BARE, Canaries, Canary, Plain
from sandbox.model.task import TaskSpec
from tests.support.evidences import a_layered_task, layered_home


@pytest.fixture
def task(tmp_path: Path) -> TaskSpec:
    return a_layered_task(layered_home(tmp_path))


def pinned(task: TaskSpec, name: str, made: Canaries | Plain) -> TaskSpec:
    layer_path(task, name).write_text(written(made))
    key = "canaries" if name == CANARIES else "plain"
    pins: dict[str, Any] = {key: file_digest(layer_path(task, name))}
    return replace(task, verifier=replace(task.verifier, **pins))


def test_what_is_pinned_is_loaded(task):
    layers = load_layers(task)
    assert layers.canaries is not None
    assert layers.withheld is layers.plain
    assert load_layers(replace(task, verifier=replace(task.verifier, layers=()))) == BARE


def test_another_file_is_refused(task):
    layer_path(task, PLAIN).write_text(layer_path(task, PLAIN).read_text() + " ")
    with pytest.raises(VerifierFault, match="as pinned"):
        load_layers(task)


@pytest.mark.parametrize(
    ("name", "nothing"),
    [(CANARIES, {"units": ()}), (PLAIN, {"checks": {}}), (PLAIN, {"sites": ()})],
)
def test_a_layer_that_asks_for_nothing_is_refused(task, name, nothing):
    layers = load_layers(task)
    made = layers.canaries if name == CANARIES else layers.plain
    assert made is not None
    with pytest.raises(SpecError, match=re.escape(name)):
        load_layers(pinned(task, name, replace(made, **nothing)))


@pytest.mark.parametrize("wrong", [{"edits": ()}, {"checks": {}}])
def test_a_further_canary_that_would_cost_an_honest_answer_its_reward_is_refused(task, wrong):
    made = load_layers(task).canaries
    assert made is not None
    first, *others = made.units
    more = replace(Canary(edits=first.edits, checks=first.checks), **wrong)
    odd = replace(made, units=(replace(first, more=(more,)), *others))
    with pytest.raises(SpecError, match=f"canary 1 of unit `{first.name}`"):
        load_layers(pinned(task, CANARIES, odd))


def test_two_units_of_one_name_are_refused(task):
    made = load_layers(task).canaries
    assert made is not None
    with pytest.raises(SpecError, match="several units of that name"):
        load_layers(pinned(task, CANARIES, replace(made, units=made.units * 2)))
