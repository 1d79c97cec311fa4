"""A rollout as a line of verifiers' traces.jsonl: an episode of one trace, in its version 1."""

import hashlib
from collections.abc import Sequence
from typing import Any

from sandbox.formats.toolcalls import call_id, spoken, tools
from sandbox.formats.trajectory import TOKENS, Trajectory, Turn, outcome, patch_text, shown
from sandbox.model.record import Ending
from sandbox.model.step import ModelCall

_Node = dict[str, Any]
_SPANS = (("boot", "box"), ("agent", "agent"), ("finalize", "collect"), ("scoring", "verify"))
"""Theirs, and our phase: one after the other."""


def episode(told: Trajectory) -> dict[str, Any]:
    r = told.rollout
    task = _task(told)
    errors = [{"type": r.fault.code, "message": r.fault.message}] if r.fault else []
    return {
        "id": _id("episode", told),
        "env": {"id": "stillroom"},
        "task": task,
        "group": {"id": r.task},
        "ok": r.fault is None,
        "is_timeout": False,
        "errors": [],
        "traces": [_trace(told, task, errors)],
    }


def _trace(told: Trajectory, task: dict[str, Any], errors: list[dict[str, Any]]) -> dict[str, Any]:
    r = told.rollout
    nodes, inputs = _nodes(told)
    placed = _place_tokens(told, nodes, inputs)
    info = {"stillroom": outcome(told) | patch_text(told.patch)}
    if not placed and (tokens := _tokens(told)):
        info["stillroom"]["tokens"] = tokens
    reward = None if r.reward is None else {"score": r.reward, "weight": 1.0}
    resolved = float(r.verdict.resolved) if r.verdict else None
    return {
        "version": 1,
        "id": _id("trace", told),
        "task": task,
        "agent": {"config": {}, "name": "agent", "trainable": bool(_sampled(told))},
        "tools": _tools(),
        "nodes": nodes,
        "calls": _calls(told, inputs),
        "rewards": {"reward": reward},
        "metrics": {"resolved": resolved, "steps": float(told.steps)},
        "info": info,
        "is_completed": True,
        "ok": r.fault is None,
        "stop_condition": _stop(told),
        "is_timeout": r.ending is Ending.WALL_TIME,
        "errors": errors,
        "timing": _timing(told),
    }


def _task(told: Trajectory) -> dict[str, Any]:
    r = told.rollout
    data = {"id": r.task, "name": r.task, "prompt": told.instruction, "workdir": told.workdir}
    known = {name: value for name, value in data.items() if value not in (None, "")}
    return {"type": "StillroomTask", "data": known, "key": r.task, "hash": r.task_digest}


def _nodes(told: Trajectory) -> tuple[list[_Node], list[int]]:
    """Messages in their order, and for each turn the place of what the model said."""
    nodes: list[_Node] = []
    places: list[int] = []

    def add(message: dict[str, Any], seconds: float, *, sampled: bool = False) -> None:
        parent = len(nodes) - 1 if nodes else None
        node = {"parent": parent, "message": message, "sampled": sampled}
        stamp = told.epoch(seconds)
        nodes.append(node | ({} if stamp is None else {"timestamp": stamp}))

    if told.instruction is not None:
        add({"role": "user", "content": told.instruction}, 0.0)
    for turn in told.turns:
        places.append(len(nodes))
        add(_said(turn), turn.time, sampled=turn.is_sampled)
        if turn.seen:
            answer = {"tool_call_id": call_id(turn), "name": turn.action}
            content = shown(turn.seen)
            add({"role": "tool", "content": content, **answer}, turn.seen.time)
    if nodes:
        nodes[0]["tools"] = _tools()
    return nodes, places


def _said(turn: Turn) -> dict[str, Any]:
    model = turn.model or ModelCall()
    call = {"id": call_id(turn), "type": "function", "name": turn.action}
    return {
        "role": "assistant",
        "content": model.message,
        "reasoning_content": model.reasoning or None,
        "tool_calls": [call | {"arguments": spoken(turn)}],
    }


def _sampled(told: Trajectory) -> list[Turn]:
    return [turn for turn in told.turns if turn.is_sampled]


def _place_tokens(told: Trajectory, nodes: Sequence[_Node], places: Sequence[int]) -> bool:
    """Tokens of a path have to be what the model saw, whole: or they are no part of the graph.

    That is so where each prompt begins with all that came before it.
    """
    seen: tuple[int, ...] = ()
    spans = []
    for turn, place in zip(told.turns, places, strict=True):
        if not turn.is_sampled:
            continue
        model = turn.model or ModelCall()
        prompt, completion, chances = (getattr(model, name) for name in TOKENS)
        if prompt is None or completion is None or prompt[: len(seen)] != seen:
            return False
        if chances is not None and len(chances) != len(completion):
            return False
        spans.append((place, list(prompt[len(seen) :]), list(completion), chances))
        seen = prompt + completion
    for place, fresh, completion, logprobs in spans:
        node = nodes[place]
        node["token_ids"] = fresh + completion
        node["mask"] = [False] * len(fresh) + [True] * len(completion)
        if logprobs is not None:
            node["logprobs"] = list(logprobs)
    return bool(spans)


def _tokens(told: Trajectory) -> list[dict[str, Any]]:
    """As they were told, for whoever can make sense of them."""
    return [{"step": turn.step, **turn.tokens} for turn in told.turns if turn.tokens]


def _calls(told: Trajectory, places: Sequence[int]) -> list[dict[str, Any]]:
    found = []
    for turn, place in zip(told.turns, places, strict=True):
        if turn.model and turn.is_sampled:
            call = {"node": place, "model": turn.model.name or None, "usage": _usage(turn.model)}
            found.append(call)
    return found


def _usage(model: ModelCall) -> dict[str, Any] | None:
    """Theirs counts what was cached apart; half of it would be none."""
    if model.prompt_tokens is None or model.completion_tokens is None:
        return None
    return {
        "prompt_tokens": max(model.prompt_tokens - (model.cached_tokens or 0), 0),
        "completion_tokens": model.completion_tokens,
        "cached_input_tokens": model.cached_tokens,
        "cost": model.cost_usd,
    }


def _tools() -> list[dict[str, Any]]:
    return [{"type": "function", **tool["function"]} for tool in tools()]


def _stop(told: Trajectory) -> str | None:
    r = told.rollout
    if r.fault:
        return f"{r.fault.code}_error"
    return r.ending.value if r.ending else None


def _timing(told: Trajectory) -> dict[str, Any]:
    began = told.epoch(0.0)
    if began is None:
        return {"start": 0.0}
    spans: dict[str, Any] = {"start": began}
    at = began
    for theirs, ours in _SPANS:
        seconds = told.rollout.seconds.get(ours)
        if seconds is not None:
            spans[theirs] = {"start": at, "end": at + seconds}
            at += seconds
    return spans


def _id(what: str, told: Trajectory) -> str:
    """The same for the same rollout."""
    said = f"{what}\n{told.name}\n{told.rollout.started}\n{told.rollout.agent}"
    return hashlib.sha256(said.encode()).hexdigest()[:32]
