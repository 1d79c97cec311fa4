"""A rollout's events are read as one value, whatever an agent said and a box printed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import SpecError
from sandbox.formats.trajectory import Seen, clean, read_trajectory, shown
from sandbox.model.step import Action, Keys, Run, Submit, Wait
from sandbox.rollout.actions import read_action
from sandbox.rollout.folder import RolloutFolder
from tests.support.toldrun import FIRST, LOOKED, ODD, a_rollout, told


def read(*events: dict[str, Any]):
    return read_trajectory(a_rollout(), events, "events.jsonl")


ACTION = {"time": 0.0, "type": "action", "step": 1, "action": "run", "command": "ls"}
SEEN = {
    "time": 0.5,
    "type": "observation",
    "step": 1,
    "output": "x",
    "status": "exited",
    "exit_code": 0,
}


def test_what_was_asked_done_and_seen_is_there(tmp_path: Path):
    found = told(tmp_path, LOOKED)
    looked, submitted = found.turns
    assert found.instruction == "# Mend it\n\nü \U0001f600\n"
    assert (looked.action, dict(looked.arguments), looked.model) == (
        "run",
        {"command": "ls -l"},
        FIRST,
    )
    assert looked.seen is not None
    assert (looked.seen.output, looked.seen.exit_code, looked.seen.seconds) == (
        "setup.py\n",
        0,
        0.5,
    )
    assert dict(looked.seen.more) == {"cwd": "/w", "total_bytes": 9}
    assert (submitted.action, dict(submitted.arguments), submitted.seen) == ("submit", {}, None)
    assert found.models == ("lab/m-1",)
    assert found.at(looked.seen.time) == "2024-05-15T12:00:00.500Z"
    assert found.epoch(0.0) == 1715774400.0


@pytest.mark.parametrize(
    "action",
    [
        Run("x", 5.0, tty=False, stdin="", on_timeout="keep", fold=True, screen=True, model=FIRST),
        Run(""),
        Keys("ü\x00\x1b", 0.5, ("Enter", "C-c"), "exit", "a", fold=True),
        Wait(2.0, "input", screen=True),
        Submit(),
    ],
)
def test_the_arguments_of_an_action_say_it_again(tmp_path: Path, action: Action):
    (turn,) = told(tmp_path, [(action, None)]).turns
    line = json.dumps({"type": turn.action, **turn.arguments}).encode()
    assert read_action(line) == replace(action, model=None)


def test_bytes_and_half_characters_stand_as_escapes(tmp_path: Path):
    turns = told(tmp_path, ODD).turns
    assert turns[1].arguments["keys"] == "\\xff\x00\x1b[A"
    assert turns[2].arguments["command"] == "\\xff\\ud800 \U0001f600"
    assert turns[1].said["bytes"] == 5
    assert len(turns[1].said["sha256"]) == 64
    last = turns[-1].model
    assert last is not None
    assert (last.message, last.calls, last.logprobs) == ("\\xfe", 0, None)


@given(st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec=None)), inner),
    max_leaves=5,
))  # fmt: skip
def test_clean_data_is_json_that_utf8_can_say(value: Any):
    text = json.dumps(clean(value), ensure_ascii=False, allow_nan=False)
    assert json.loads(text.encode()) == clean(value)
    assert clean(clean(value)) == clean(value)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "out\n"),
        ({"exit_code": 1}, "out\n[exit code 1]"),
        ({"exit_code": None, "status": "running"}, "out\n[running]"),
        ({"status": "timed_out", "exit_code": 130}, "out\n[timed_out, exit code 130]"),
        ({"output": "", "exit_code": 2}, "[exit code 2]"),
        ({"output": "", "exit_code": 0}, ""),
        ({"more": {"background": "job\n", "limit": "memory"}}, "out\n[in the background]\njob\n\n[memory]"),
        ({"more": {"screen": {"lines": ["a", "b"]}}}, "out\n[the screen]\na\nb"),
    ],
)  # fmt: skip
def test_what_is_shown_says_what_is_no_plain_end(more: dict[str, Any], text: str):
    seen = Seen(output="out\n", status="exited", exit_code=0, time=0.0, seconds=None, more={})
    assert shown(replace(seen, **more)) == text


def test_a_person_s_part_has_no_turns():
    found = read({"time": 0.0, "type": "person", "what": "begin"})
    assert (found.turns, found.instruction) == ((), None)


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([SEEN], "events.jsonl:1: an observation of no action"),
        ([ACTION, SEEN, SEEN], "events.jsonl:3: an observation of no action"),
        ([ACTION, SEEN | {"step": 2}], "events.jsonl:2: an observation of no action"),
        ([ACTION | {"action": "dance"}], "`action` should be one of run, keys, wait"),
        ([ACTION | {"action": None}], "`action` should be a string"),
        ([ACTION | {"command": 7}], "`command` should be a string"),
        ([ACTION | {"time": "0"}], "`time` should be a number, 0 or more"),
        ([ACTION | {"time": 1e300}], "`time` should be a number, 0 or more"),
        ([ACTION | {"step": True}], "`step` should be a whole number"),
        ([ACTION, SEEN | {"output": None}], "events.jsonl:2: `output` should be a string"),
        ([ACTION, SEEN | {"exit_code": "0"}], "`exit_code` should be a whole number"),
        ([ACTION | {"model": {"calls": "1"}}], "events.jsonl:1: `calls`"),
        ([ACTION | {"model": {"tokens": 1}}], "unknown key `tokens`"),
        ([ACTION | {"model": []}], "events.jsonl:1"),
        ([{"type": "task", "instruction": 1, "workdir": ""}], "`instruction` should be a string"),
    ],
)
def test_what_is_no_event_of_ours_is_told_with_its_line(events: list[dict[str, Any]], says: str):
    with pytest.raises(SpecError) as caught:
        read(*events)
    assert says in str(caught.value)


def test_events_nested_without_end_are_told(tmp_path: Path):
    folder = RolloutFolder(tmp_path)
    deep = "[" * 900 + "]" * 900
    (tmp_path / "events.jsonl").write_text('{"type": "x", "a": ' + deep + "}\n")
    try:
        read_trajectory(a_rollout(), folder.read_events(), "events.jsonl")
    except SpecError as e:
        assert "nested too deeply" in str(e)  # noqa: PT017 - or it is read: both are well


def test_a_beginning_that_is_no_instant_gives_no_times(tmp_path: Path):
    found = told(tmp_path, LOOKED, replace(a_rollout(), started="yesterday"))
    assert (found.at(0.0), found.epoch(0.0)) == (None, None)
    late = told(tmp_path, LOOKED, replace(a_rollout(), started="9999-12-31T23:59:59Z"))
    assert late.at(10.0) is None
