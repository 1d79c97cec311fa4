"""What each of the formats says of the same rollout; files of tests/data/trajectories are whole ones.

After a change that is meant: REWRITE=1 pytest this file, and read what git shows.
"""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox._version import __version__
from sandbox.formats.atif import dumps, read
from sandbox.formats.atiftold import atif
from sandbox.formats.chat import chat
from sandbox.formats.inspectlog import evaluation
from sandbox.formats.sweagent import mini, traj
from sandbox.formats.trajectory import Trajectory
from sandbox.formats.vftrace import episode
from sandbox.model.record import Ending
from sandbox.model.step import Keys, ModelCall, Observation, Run, Submit
from tests.support.toldrun import FIRST, LOOKED, ODD, SECOND, a_rollout, a_void, told

GOLDEN = Path(__file__).parents[1] / "data" / "trajectories"
FORMATS: dict[str, Callable[[Trajectory], dict[str, Any]]] = {
    "trajectory.json": lambda t: json.loads(dumps(atif(t))),
    "chat.json": chat,
    "a-1.traj": traj,
    "a-1.traj.json": mini,
    "trace.json": episode,
    "evaluation.json": lambda t: evaluation([t], "run"),
}
any_format = pytest.mark.parametrize("name", FORMATS)


@any_format
def test_a_rollout_is_what_it_was(tmp_path: Path, name: str):
    found = FORMATS[name](told(tmp_path, LOOKED))
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    text = text.replace(f'"{__version__}"', '"VERSION"').replace(
        f"stillroom {__version__}", "stillroom VERSION"
    )
    if os.environ.get("REWRITE"):
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


@any_format
@pytest.mark.parametrize("rollout", [a_rollout(), a_void()], ids=["judged", "void"])
def test_whatever_was_said_and_printed_is_utf8(tmp_path: Path, name: str, rollout: Any):
    found = FORMATS[name](told(tmp_path, ODD, rollout))
    text = json.dumps(found, ensure_ascii=False, allow_nan=False)
    assert json.loads(text.encode()) == found
    assert "\\x00" in text
    assert "y\\ny\\n" in text


@any_format
def test_nothing_told_of_a_model_is_nothing_made_up(tmp_path: Path, name: str):
    silent = [(replace(action, model=None), seen) for action, seen in LOOKED]
    text = json.dumps(FORMATS[name](told(tmp_path, silent)))
    for word in ("token_ids", "logprobs", "prompt_tokens", '"cost"', "instance_cost", "api_calls"):
        assert word not in text


@any_format
def test_tokens_that_were_told_are_there(tmp_path: Path, name: str):
    if name == "a-1.traj":
        return  # it has no place for them
    text = json.dumps(FORMATS[name](told(tmp_path, LOOKED)))
    assert "-0.125" in text
    assert "completion_token_ids" in text or '"token_ids": [6, 7, 8]' in text


texts = st.text(st.characters(codec=None), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(said=texts, printed=texts, message=texts)
def test_any_text_survives_every_format(tmp_path: Path, said: str, printed: str, message: str):
    call = ModelCall(name=message, message=message, reasoning=message)
    found = told(
        tmp_path,
        [
            (Run(said, stdin=said, model=call), Observation(output=printed, cwd=printed, exit_code=0)),
            (Keys(said), Observation(output=printed, background=printed, limit=printed)),
            (Submit(), None),
        ],
    )  # fmt: skip
    for make in FORMATS.values():
        made = make(found)
        assert json.loads(json.dumps(made, ensure_ascii=False, allow_nan=False).encode()) == made
    assert read(json.loads(dumps(atif(found))), "t") == atif(found)


def test_a_chat_has_a_message_per_word_and_a_result_per_call(tmp_path: Path):
    line = chat(told(tmp_path, ODD))
    roles = [m["role"] for m in line["messages"]]
    assert roles == ["user", *["assistant", "tool"] * 6, "assistant"]
    calls = [m["tool_calls"][0]["id"] for m in line["messages"] if m["role"] == "assistant"]
    results = [m["tool_call_id"] for m in line["messages"] if m["role"] == "tool"]
    assert results == calls[:6]
    named = {tool["function"]["name"] for tool in line["tools"]}
    assert named == {"run", "keys", "wait", "signal", "submit"}
    for message in line["messages"]:
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)


@pytest.mark.parametrize(
    ("ending", "theirs", "minis"),
    [
        (Ending.SUBMITTED, "submitted", "Submitted"),
        (Ending.TURNS, "exit_cost", "LimitsExceeded"),
        (Ending.WALL_TIME, "exit_total_execution_time", "TimeExceeded"),
        (Ending.BOX_STOPPED, "exit_environment_error", "EnvironmentError"),
        (None, "exit_error", "EnvironmentError"),
    ],
)
def test_endings_have_the_names_that_readers_know(
    tmp_path: Path, ending: Ending | None, theirs: str, minis: str
):
    found = told(tmp_path, LOOKED, replace(a_rollout(), ending=ending))
    assert (traj(found)["info"]["exit_status"], mini(found)["info"]["exit_status"]) == (
        theirs,
        minis,
    )


def test_a_patch_that_is_no_text_is_no_submission_of_theirs(tmp_path: Path):
    found = told(tmp_path, LOOKED, patch=b"\xff")
    assert traj(found)["info"]["submission"] is None
    assert mini(found)["info"]["stillroom"]["patch_base64"] == "/w=="


def tokens(found: Trajectory) -> tuple[list[int], list[bool], list[float]]:
    """As a trainer puts them together along the path."""
    nodes = episode(found)["traces"][0]["nodes"]
    assert [n["parent"] for n in nodes] == [None, *range(len(nodes) - 1)]
    return tuple(
        [one for n in nodes for one in n.get(key, ())] for key in ("token_ids", "mask", "logprobs")
    )  # type: ignore[return-value]


def test_the_tokens_of_a_path_are_what_the_model_saw(tmp_path: Path):
    assert tokens(told(tmp_path, LOOKED)) == (
        [1, 2, 3, 4, 5, 6, 7, 8],
        [False, False, False, True, True, False, False, True],
        [-0.5, -0.25, -0.125],
    )


@pytest.mark.parametrize(
    "second",
    [
        replace(SECOND, prompt_token_ids=(1, 2, 9)),
        replace(SECOND, prompt_token_ids=None),
        replace(SECOND, completion_token_ids=None, logprobs=None),
        replace(SECOND, logprobs=(-1.0, -2.0)),
    ],
    ids=["another beginning", "no prompt", "no completion", "too many"],
)
def test_tokens_that_make_no_path_lie_beside_it(tmp_path: Path, second: ModelCall):
    steps = [LOOKED[0], (Submit(model=second), None)]
    found = told(tmp_path, steps)
    assert tokens(found) == ([], [], [])
    beside = episode(found)["traces"][0]["info"]["stillroom"]["tokens"]
    assert beside[0]["completion_token_ids"] == list(FIRST.completion_token_ids or ())


def test_a_turn_without_a_model_breaks_no_path(tmp_path: Path):
    steps = [LOOKED[0], (Run("pwd"), Observation(output="/w\n", exit_code=0)), LOOKED[1]]
    assert tokens(told(tmp_path, steps))[0] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_void_rollout_tells_how_many_steps_it_took(tmp_path: Path):
    """Its result counts none of them."""
    void = told(tmp_path, LOOKED, replace(a_void(), steps=0))
    (trace,) = episode(void)["traces"]
    (sample,) = evaluation([void], "run")["samples"]
    assert (trace["metrics"]["steps"], sample["turn_count"]) == (1.0, 1)


def test_void_is_no_score_anywhere(tmp_path: Path):
    found = told(tmp_path, LOOKED, a_void())
    (trace,) = episode(found)["traces"]
    assert (trace["rewards"], trace["metrics"]["resolved"]) == ({"reward": None}, None)
    assert (trace["ok"], trace["stop_condition"]) == (False, "runtime_error")
    (sample,) = evaluation([found], "run")["samples"]
    assert (sample["scores"], sample["error"]["message"]) == (None, "the box was lost \u2028")
    results = evaluation([found, told(tmp_path, LOOKED)], "run")["results"]
    reward = results["scores"][0]
    assert (reward["scored_samples"], reward["unscored_samples"]) == (1, 1)
    assert reward["metrics"]["mean"]["value"] == 0.5
