"""A rollout as chat messages, in the manner of OpenAI's: one line of JSON Lines each."""

from collections.abc import Iterator
from typing import Any

from sandbox.formats.toolcalls import call, call_id, tools
from sandbox.formats.trajectory import Trajectory, Turn, outcome, shown
from sandbox.model.step import ModelCall


def chat(told: Trajectory) -> dict[str, Any]:
    """`tokens` has one entry per message of the assistant, or is not there at all."""
    line = {
        "messages": list(messages(told)),
        "tools": tools(),
        "reward": told.rollout.reward,
        "metadata": outcome(told) | {"models": list(told.models)},
    }
    tokens = [turn.tokens or None for turn in told.turns]
    return line | ({"tokens": tokens} if any(tokens) else {})


def messages(told: Trajectory) -> Iterator[dict[str, Any]]:
    if told.instruction is not None:
        yield {"role": "user", "content": told.instruction}
    for turn in told.turns:
        yield _said(turn)
        if turn.seen:
            yield {"role": "tool", "tool_call_id": call_id(turn), "content": shown(turn.seen)}


def _said(turn: Turn) -> dict[str, Any]:
    model = turn.model or ModelCall()
    said = {
        "role": "assistant",
        "content": model.message,
        "tool_calls": [call(turn)],
    }
    return said | ({"reasoning_content": model.reasoning} if model.reasoning else {})
