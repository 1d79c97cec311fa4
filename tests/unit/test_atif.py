"""ATIF: a rollout as one keeps the format's rules, and what breaks a rule is named."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import SpecError
from sandbox.formats.atif import dumps, load, plain, problems, read
from sandbox.formats.atiftold import atif
from tests.support.toldrun import FIRST, LOOKED, ODD, SECOND, a_rollout, a_void, told

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def good(tmp_path: Path) -> dict[str, Any]:
    """The rollout of a model, as plain data."""
    found: dict[str, Any] = json.loads(dumps(atif(told(tmp_path, LOOKED))))
    return found


@pytest.mark.parametrize("steps", [LOOKED, ODD, []], ids=["looked", "odd", "nothing"])
def test_a_rollout_keeps_the_rules_and_is_read_again(tmp_path: Path, steps: Any):
    made = atif(told(tmp_path, steps))
    path = tmp_path / "trajectory.json"
    path.write_text(dumps(made), encoding="utf-8")
    assert plain(load(path)) == json.loads(path.read_text(encoding="utf-8"))
    assert len(made.steps) == len(steps) + 1


def test_what_was_asked_comes_first(good: dict[str, Any]):
    first = good["steps"][0]
    assert first == {
        "step_id": 1,
        "source": "user",
        "message": "# Mend it\n\nü \U0001f600\n",
        "timestamp": "2024-05-15T12:00:00.000Z",
    }


def test_a_step_has_the_call_what_came_of_it_and_its_exit_code(good: dict[str, Any]):
    step = good["steps"][1]
    (call,), (result,) = step["tool_calls"], step["observation"]["results"]
    assert (call["function_name"], call["arguments"]) == ("run", {"command": "ls -l"})
    assert (result["source_call_id"], result["content"]) == (call["tool_call_id"], "setup.py\n")
    assert {"status": "exited", "exit_code": 0, "cwd": "/w"}.items() <= result["extra"].items()
    assert step["timestamp"] == "2024-05-15T12:00:00.250Z"


def test_the_verdict_and_the_patch_are_in_extra(good: dict[str, Any]):
    extra = good["extra"]
    assert (extra["reward"], extra["resolved"], extra["checks"]) == (0.5, False, {"t::a": "failed"})
    assert (extra["ending"], extra["fault"]) == ("submitted", None)
    assert extra["patch"].startswith("--- a/x")


def test_a_void_rollout_has_no_reward(tmp_path: Path):
    extra = atif(told(tmp_path, ODD, a_void())).extra or {}
    assert (extra["reward"], extra["resolved"]) == (None, None)
    assert extra["fault"]["code"] == "runtime"


def test_tokens_are_carried_as_they_were_told(good: dict[str, Any]):
    first, second = (step["metrics"] for step in good["steps"][1:])
    assert first == {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "cached_tokens": 1,
        "cost_usd": 0.25,
        "prompt_token_ids": [1, 2, 3],
        "completion_token_ids": [4, 5],
        "logprobs": [-0.5, -0.25],
    }
    assert second["logprobs"] == list(SECOND.logprobs or ())
    assert good["final_metrics"] == {
        "total_prompt_tokens": 10,
        "total_completion_tokens": 3,
        "total_cached_tokens": 1,
        "total_cost_usd": 0.75,
        "total_steps": 3,
    }
    assert (good["agent"]["model_name"], good["steps"][1]["llm_call_count"]) == (FIRST.name, 1)


def test_what_was_not_told_is_not_there(tmp_path: Path):
    """Not even as 0: the agent said nothing of a model."""
    silent = [(replace(action, model=None), seen) for action, seen in LOOKED]
    found = plain(atif(told(tmp_path, silent)))
    assert found["final_metrics"] == {"total_steps": 3}
    for step in found["steps"]:
        assert step.keys().isdisjoint({"metrics", "llm_call_count", "model_name"})


def test_a_call_that_was_none_keeps_what_it_was_told_elsewhere(tmp_path: Path):
    last = atif(told(tmp_path, ODD)).steps[-1]
    assert (last.llm_call_count, last.metrics, last.reasoning_content) == (0, None, None)
    assert (last.extra or {})["model"]["reasoning"] == "r"


def test_a_patch_that_is_no_text_is_coded(tmp_path: Path):
    extra = atif(told(tmp_path, LOOKED, patch=b"\xff")).extra or {}
    assert extra["patch_base64"] == "/w=="
    assert "patch" not in extra


def test_nothing_asked_and_nothing_done_is_no_trajectory(tmp_path: Path):
    empty = replace(told(tmp_path, []), instruction=None)
    assert list(problems(atif(empty))) == ["`steps` is empty"]


def put(*path: str | int, value: Any) -> Change:
    def change(data: dict[str, Any]) -> None:
        at: Any = data
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


IMAGE: dict[str, Any] = {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}
AUDIO = {"type": "audio", "source": {"media_type": "audio/wav", "path": "a.wav"}}
RULES: list[tuple[str, Change, str]] = [
    ("a gap", put("steps", 2, "step_id", value=4), "steps[2].step_id should be 3, not 4"),
    ("from 0", put("steps", 0, "step_id", value=0), "steps[0].step_id should be 1"),
    ("no steps", put("steps", value=[]), "`steps` is empty"),
    ("a key of a step", put("steps", 0, "reward", value=1), "unknown key `steps.0.reward`"),
    ("a key of it all", put("reward", value=1), "unknown key `reward`"),
    ("a key of metrics", put("steps", 1, "metrics", "tokens", value=1), "unknown key"),
    ("another version", put("schema_version", value="ATIF-v9"), "`schema_version`"),
    ("a source", put("steps", 0, "source", value="tool"), "`steps.0.source`"),
    ("a number as text", put("steps", 0, "step_id", value="1"), "`steps.0.step_id`"),
    ("logprobs of null", put("steps", 1, "metrics", "logprobs", value=[None]), "logprobs"),
    ("a user's model", put("steps", 0, "model_name", value="m"), "`model_name` is an agent's"),
    ("a user's calls", put("steps", 0, "tool_calls", value=[]), "`tool_calls` is an agent's"),
    ("no call", put("steps", 1, "llm_call_count", value=0), "`metrics` is a model's"),
    ("calls below 0", put("steps", 1, "llm_call_count", value=-1), "`llm_call_count` is below 0"),
    ("no instant", put("steps", 0, "timestamp", value="noon"), "is no ISO 8601 instant: 'noon'"),
    ("of no call", put("steps", 1, "observation", "results", 0, "source_call_id", value="x"),
     "`source_call_id` 'x' is of no tool call of this step"),
    ("a total below 0", put("final_metrics", "total_steps", value=-1), "`total_steps` is below 0"),
    ("another total", put("final_metrics", "total_steps", value=7), "`notes` does not say why"),
    ("no text", put("steps", 0, "message", value=[{"type": "text"}]), "a part of type text has"),
    ("no source", put("steps", 0, "message", value=[{"type": "image"}]), "a part of type image has"),
    ("another's source", put("steps", 0, "message", value=[IMAGE | {"type": "audio"}]),
     "a part of type audio has a source of image/png"),
    ("a length below 0", put("steps", 0, "message", value=[
        {"type": "audio", "source": {"media_type": "audio/wav", "path": "", "duration_sec": -1}}]),
     "`duration_sec`"),
    ("a length of an image", put("steps", 0, "message", value=[
        {"type": "image", "source": IMAGE["source"] | {"duration_sec": None}}]), "duration_sec"),
    ("a zone in the middle", put("steps", 0, "timestamp", value="2024-05-15Z12:00:00"),
     "is no ISO 8601 instant"),
    ("a reference to nothing", put("steps", 1, "observation", "results", 0,
     "subagent_trajectory_ref", value=[{"session_id": "s"}]), "a reference has neither"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES]
)
def test_what_breaks_a_rule_is_named(good: dict[str, Any], change: Change, says: str):
    change(good)
    with pytest.raises(SpecError) as caught:
        read(good, "t.json")
    assert says in str(caught.value)
    assert str(caught.value).startswith("t.json: ")


@pytest.mark.parametrize(
    "change",
    [
        put("steps", 0, "message", value=[{"type": "text", "text": ""}, IMAGE, AUDIO]),
        put("steps", 0, "timestamp", value="2024-05-15T12:00:00+02:00"),
        put("schema_version", value="ATIF-v1.0"),
        put("steps", 1, "reasoning_effort", value=0.5),
    ],
    ids=["parts", "another zone", "an older version", "a number"],
)
def test_what_is_allowed_is_taken(good: dict[str, Any], change: Change):
    change(good)
    assert plain(read(good, "t.json")) == good


def test_trajectories_within_have_names_of_their_own(good: dict[str, Any]):
    inner = copy.deepcopy(good)
    good["subagent_trajectories"] = [inner, copy.deepcopy(inner)]
    with pytest.raises(SpecError, match=r"`trajectory_id` 'a-1\.0' is not the only one"):
        read(good, "t.json")
    good["subagent_trajectories"] = [inner]
    assert read(good, "t.json").subagent_trajectories
    del inner["trajectory_id"]
    with pytest.raises(SpecError, match="has no `trajectory_id`"):
        read(good, "t.json")
    inner["trajectory_id"] = "x"
    inner["steps"][0]["step_id"] = 9
    with pytest.raises(SpecError, match=r"within: steps\[0\]\.step_id"):
        read(good, "t.json")


def test_an_agent_s_step_without_a_model_may_have_a_count_of_0(good: dict[str, Any]):
    step = good["steps"][1]
    for name in ("metrics", "reasoning_content"):
        del step[name]
    step["llm_call_count"] = 0
    assert read(good, "t.json").steps[1].llm_call_count == 0


def test_a_rollout_is_the_same_bytes_again(tmp_path: Path):
    assert dumps(atif(told(tmp_path, ODD))) == dumps(atif(told(tmp_path, ODD, a_rollout())))
