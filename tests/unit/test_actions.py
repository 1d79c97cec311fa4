"""What an agent may say, and what is its fault."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import AgentFault
from sandbox.model.step import Action, Keys, ModelCall, Run, Signal, Submit, Wait
from sandbox.rollout.actions import read_action


def read(**said: Any) -> Action:
    return read_action(json.dumps(said).encode())


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ({"type": "run", "command": "ls"}, Run("ls")),
        ({"type": "run", "command": "ls", "seconds": 5}, Run("ls", 5.0)),
        ({"type": "run", "command": "", "seconds": None, "stdin": None}, Run("")),
        ({"type": "run", "command": "\udcff\ud800"}, Run("\udcff\ud800")),
        (
            {"type": "run", "command": "x", "tty": False, "stdin": "a", "on_timeout": "keep",
             "fold": True, "screen": True},
            Run("x", None, tty=False, stdin="a", on_timeout="keep", fold=True, screen=True),
        ),
        ({"type": "keys", "keys": "q"}, Keys("q", 1.0)),
        ({"type": "keys"}, Keys()),
        ({"type": "keys", "seconds": None}, Keys("", 1.0)),
        (
            {"type": "keys", "keys": "a", "named": ["Enter", "C-c"], "seconds": 0.5,
             "until": "input", "text": "a+", "fold": True, "screen": True},
            Keys("a", 0.5, ("Enter", "C-c"), "input", "a+", fold=True, screen=True),
        ),
        ({"type": "wait"}, Wait()),
        (
            {"type": "wait", "seconds": 9, "until": "quiet", "text": "$ ", "screen": True},
            Wait(9.0, "quiet", "$ ", screen=True),
        ),
        ({"type": "signal", "name": "INT"}, Signal("INT")),
        (
            {"type": "signal", "name": "SIGKILL", "target": "session", "seconds": 2},
            Signal("SIGKILL", "session", 2.0),
        ),
        ({"type": "submit"}, Submit()),
        ({"type": "submit", "model": None}, Submit()),
        ({"type": "submit", "model": {"message": "Done."}}, Submit(model=ModelCall(message="Done."))),
        (
            {"type": "run", "command": "ls", "model": {
                "name": "m", "message": "Look.", "reasoning": "hm", "calls": 1,
                "prompt_tokens": 3, "completion_tokens": 2, "cached_tokens": 0, "cost_usd": 0.5,
                "prompt_token_ids": [1, 2, 3], "completion_token_ids": [4, 5],
                "logprobs": [-0.5, -1]}},
            Run("ls", model=ModelCall(
                name="m", message="Look.", reasoning="hm", calls=1,
                prompt_tokens=3, completion_tokens=2, cached_tokens=0, cost_usd=0.5,
                prompt_token_ids=(1, 2, 3), completion_token_ids=(4, 5), logprobs=(-0.5, -1.0))),
        ),
        ({"type": "keys", "model": {"calls": None}}, Keys(model=ModelCall())),
    ],
)  # fmt: skip
def test_what_is_said_is_the_action(said: dict[str, Any], action: Action):
    assert read(**said) == action


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("hello", "not JSON"),
        ("", "not JSON"),
        ('{"type": "run"', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no action"),
        ("null", "no action"),
        ('{"type": "dance"}', "no action"),
        ('{"type": ["run"]}', "no action"),
        ('{"command": "ls"}', "no action"),
        ('{"type": "run"}', "`run`: `command` is missing"),
        ('{"type": "run", "command": 7}', "`command` should be a string, not 7"),
        ('{"type": "run", "command": null}', "`command` should be a string, not None"),
        ('{"type": "run", "command": "x", "seconds": "5"}', "`seconds` should be a number above 0"),
        ('{"type": "run", "command": "x", "seconds": NaN}', "`seconds` should be a number above 0"),
        ('{"type": "run", "command": "x", "seconds": -1}', "`seconds` should be a number above 0"),
        ('{"type": "run", "command": "x", "seconds": 0}', "`seconds` should be a number above 0"),
        ('{"type": "keys", "keys": "x", "seconds": true}', "`seconds` should be a number above 0"),
        ('{"type": "keys", "keys": "x", "seconds": 1e9}', "`seconds` should be a number above 0"),
        ('{"type": "run", "command": "x", "tty": 1}', "`tty` should be true or false, not 1"),
        ('{"type": "run", "command": "x", "tty": null}', "`tty` should be true or false"),
        ('{"type": "run", "command": "x", "stdin": 7}', "`stdin` should be a string"),
        ('{"type": "run", "command": "x", "on_timeout": "kill"}', "one of interrupt, keep, not 'k"),
        ('{"type": "run", "command": "x", "on_timeout": []}', "one of interrupt, keep"),
        ('{"type": "run", "comand": "x"}', "unknown key `comand`; did you mean `command`?"),
        ('{"type": "run", "command": "x", "why": "hm"}', "unknown key `why`; known: command, "),
        ('{"type": "run", "command": "x", "text": "hm"}', "unknown key `text`"),
        ('{"type": "keys", "keys": ["x"]}', "`keys` should be a string"),
        ('{"type": "keys", "named": "Enter"}', "`named` should be a list of strings"),
        ('{"type": "keys", "named": [7]}', "`named` should be a list of strings"),
        (json.dumps({"type": "keys", "named": ["a"] * 1001}), "1000 keys at most"),
        ('{"type": "keys", "until": "never"}', "one of quiet, input, exit"),
        ('{"type": "wait", "until": null}', "one of quiet, input, exit"),
        ('{"type": "wait", "text": ["a"]}', "`text` should be a string"),
        (json.dumps({"type": "wait", "text": "a" * 1001}), "1000 characters at most"),
        ('{"type": "wait", "keys": "x"}', "unknown key `keys`"),
        ('{"type": "signal"}', "`name` is missing"),
        ('{"type": "signal", "name": 9}', "`name` should be a string"),
        ('{"type": "signal", "name": "INT", "target": "all"}', "one of foreground, session"),
        ('{"type": "submit", "why": "done"}', "unknown key `why`; known: model"),
        ('{"type": "submit", "model": "gpt"}', "`model` should be an object, not 'gpt'"),
        ('{"type": "wait", "model": {"tokens": 3}}', "`model` should be an object with keys of name,"),
        ('{"type": "wait", "model": {"calls": -1}}', "whose `calls` is a whole number, 0 or more"),
        ('{"type": "wait", "model": {"calls": true}}', "whose `calls` is a whole number, 0 or more"),
        ('{"type": "wait", "model": {"calls": 1.0}}', "whose `calls` is a whole number, 0 or more"),
        ('{"type": "wait", "model": {"cost_usd": -0.1}}', "whose `cost_usd` is a number, 0 or more"),
        ('{"type": "wait", "model": {"logprobs": [NaN]}}', "whose `logprobs` is a list of numbers"),
        ('{"type": "wait", "model": {"logprobs": [-Infinity]}}', "`logprobs` is a list of numbers"),
        ('{"type": "wait", "model": {"logprobs": 1}}', "whose `logprobs` is a list of numbers"),
        ('{"type": "wait", "model": {"prompt_token_ids": [1, "2"]}}', "a list of whole numbers, 0"),
        (
            '{"type": "wait", "model": {"completion_token_ids": [1, 2], "logprobs": [-0.5]}}',
            "a `logprobs` for each of `completion_token_ids`",
        ),
    ],
    ids=lambda v: ascii(v[:70]),
)  # fmt: skip
def test_what_is_no_action_is_the_agent_s_fault(line: str, says: str):
    with pytest.raises(AgentFault) as caught:
        read_action(line.encode())
    assert says in str(caught.value)
    assert not caught.value.retry
    assert len(str(caught.value)) < 1000


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
KEYS = ["command", "seconds", "tty", "stdin", "on_timeout", "fold", "screen", "keys", "named",
        "until", "text", "name", "target", "x", "model"]  # fmt: skip


@given(
    st.sampled_from(["run", "keys", "wait", "signal", "submit"]),
    st.dictionaries(st.sampled_from(KEYS), json_values, max_size=4),
)
def test_whatever_is_said_is_an_action_or_a_fault(kind: str, said: dict[str, Any]):
    with suppress(AgentFault):
        action = read_action(json.dumps({"type": kind, **said}).encode())
        assert type(action).__name__.lower() == kind


@pytest.mark.parametrize("depth", range(900, 1000, 3))
def test_what_is_nested_deeply_is_refused_all_the_same(depth: int):
    line = '{"type": "keys", "keys": ' + "[" * depth + "]" * depth + "}"
    with pytest.raises(AgentFault):
        read_action(line.encode())
