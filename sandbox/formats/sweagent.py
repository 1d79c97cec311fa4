"""A rollout as SWE-agent's .traj, and as mini-swe-agent's .traj.json of format 1.1."""

import json
from collections.abc import Iterator
from typing import Any

from sandbox._version import __version__
from sandbox.formats.toolcalls import call, call_id, spoken
from sandbox.formats.trajectory import Trajectory, Turn, outcome, patch_text, shown, total
from sandbox.model.record import Ending
from sandbox.model.step import ModelCall

MINI = "mini-swe-agent-1.1"
_ENDINGS = {
    Ending.SUBMITTED: "submitted",
    Ending.TURNS: "exit_cost",
    Ending.WALL_TIME: "exit_total_execution_time",
    Ending.SHELL_LOST: "exit_environment_error",
    Ending.BOX_STOPPED: "exit_environment_error",
}
"""As SWE-agent calls them; one that is not there was a fault of ours."""
_MINI_ENDINGS = {
    Ending.SUBMITTED: "Submitted",
    Ending.TURNS: "LimitsExceeded",
    Ending.WALL_TIME: "TimeExceeded",
}


def traj(told: Trajectory) -> dict[str, Any]:
    """SWE-agent's: the turns, then the conversation, then what came of it."""
    task = told.rollout.task
    return {
        "trajectory": [_turn(turn) for turn in told.turns],
        "history": list(_history(told)),
        "info": {
            "exit_status": _status(told, _ENDINGS, "exit_error"),
            "submission": patch_text(told.patch).get("patch"),
            "model_stats": _stats(told, tokens=True),
            "model_name": _model_name(told),
            "stillroom": _ours(told),
        },
        "replay_config": None,
        "environment": task,
    }


def mini(told: Trajectory) -> dict[str, Any]:
    """mini-swe-agent's: the conversation, and what came of it."""
    status = _status(told, _MINI_ENDINGS, "EnvironmentError")
    submission = patch_text(told.patch).get("patch", "")
    return {
        "info": {
            "model_stats": _stats(told),
            "config": {
                "model": {"model_name": _model_name(told)},
                "agent": {"name": told.rollout.agent},
                "environment": {"cwd": told.workdir},
            },
            "exit_status": status,
            "submission": submission,
            "stillroom": _ours(told),
        },
        "messages": list(_mini_messages(told, status, submission)),
        "trajectory_format": MINI,
        "instance_id": told.rollout.task,
    }


def _stats(told: Trajectory, *, tokens: bool = False) -> dict[str, Any]:
    """What is not known is left out: readers do sums with what is there."""
    found = {"instance_cost": total(told, "cost_usd"), "api_calls": total(told, "calls")}
    if tokens:
        found["tokens_sent"] = total(told, "prompt_tokens")
        found["tokens_received"] = total(told, "completion_tokens")
    return {name: value for name, value in found.items() if value is not None}


def _ours(told: Trajectory) -> dict[str, Any]:
    coded = {k: v for k, v in patch_text(told.patch).items() if k != "patch"}
    return {"version": __version__, **outcome(told), **coded}


def _status(told: Trajectory, names: dict[Ending, str], other: str) -> str:
    ending = told.rollout.ending
    return names.get(ending, other) if ending else other


def _model_name(told: Trajectory) -> str | None:
    return told.models[0] if told.models else None


def command(turn: Turn) -> str:
    """As one types it at a prompt; of what is no command, the whole call."""
    if turn.action == "run" and set(turn.arguments) <= {"command"}:
        return str(turn.arguments["command"])
    return turn.action if not turn.arguments else f"{turn.action} {spoken(turn)}"


def _turn(turn: Turn) -> dict[str, Any]:
    model = turn.model or ModelCall()
    seen = turn.seen
    state = {"working_dir": str(seen.more.get("cwd", ""))} if seen else {}
    told: dict[str, Any] = {
        "action": command(turn),
        "observation": shown(seen) if seen else "",
        "response": model.message,
        "thought": model.reasoning or model.message,
        "execution_time": seen.seconds if seen and seen.seconds is not None else 0.0,
        "state": state,
        "query": [],
        "extra_info": {"status": seen.status, "exit_code": seen.exit_code} if seen else {},
    }
    return told


def _history(told: Trajectory) -> Iterator[dict[str, Any]]:
    agent = told.rollout.agent
    if told.instruction is not None:
        yield {
            "role": "user",
            "content": told.instruction,
            "agent": agent,
            "message_type": "observation",
        }
    for turn in told.turns:
        model = turn.model or ModelCall()
        yield {
            "role": "assistant",
            "content": model.message,
            "thought": model.reasoning or model.message,
            "action": command(turn),
            "agent": agent,
            "message_type": "action",
            "tool_calls": [call(turn)],
        }
        if turn.seen:
            yield {
                "role": "tool",
                "content": shown(turn.seen),
                "agent": agent,
                "message_type": "observation",
                "tool_call_ids": [call_id(turn)],
            }


def _mini_messages(told: Trajectory, status: str, submission: str) -> Iterator[dict[str, Any]]:
    # Readers take the second message for the task, after the one that says who the model is.
    if told.instruction is not None:
        yield {"role": "system", "content": ""}
        yield {"role": "user", "content": told.instruction}
    for turn in told.turns:
        yield _mini_said(told, turn)
        if turn.seen:
            yield {
                "role": "tool",
                "tool_call_id": call_id(turn),
                "content": shown(turn.seen),
                "extra": {
                    "raw_output": turn.seen.output,
                    "returncode": turn.seen.exit_code,
                    "status": turn.seen.status,
                    "timestamp": told.epoch(turn.seen.time),
                    "exception_info": "",
                },
            }
    yield {
        "role": "exit",
        "content": submission,
        "extra": {"exit_status": status, "submission": submission},
    }


def _mini_said(told: Trajectory, turn: Turn) -> dict[str, Any]:
    model = turn.model or ModelCall()
    extra: dict[str, Any] = {
        "actions": [{"command": command(turn), "tool_call_id": call_id(turn)}],
        **({} if model.cost_usd is None else {"cost": model.cost_usd}),
        "timestamp": told.epoch(turn.time),
    }
    if model.prompt_tokens is not None or model.completion_tokens is not None:
        extra["response"] = {"model": model.name, "usage": _usage(model)}
    extra |= turn.tokens
    said = {
        "role": "assistant",
        "content": model.message,
        "tool_calls": [call(turn)],
        "extra": extra,
    }
    return said | ({"reasoning_content": model.reasoning} if model.reasoning else {})


def _usage(model: ModelCall) -> dict[str, Any]:
    usage: dict[str, Any] = {
        "prompt_tokens": model.prompt_tokens,
        "completion_tokens": model.completion_tokens,
    }
    if model.cached_tokens is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": model.cached_tokens}
    return usage


def dumps(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
