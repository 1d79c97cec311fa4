"""A run as an evaluation log of Inspect, as plain data: only its own library writes the file."""

from collections.abc import Iterator, Sequence
from typing import Any

from sandbox._version import __version__
from sandbox.formats.toolcalls import call_id
from sandbox.formats.trajectory import Trajectory, Turn, outcome, patch_text, shown, total
from sandbox.model.record import Ending
from sandbox.model.step import ModelCall

_Plain = dict[str, Any]
_SCORER = "stillroom"


def evaluation(run: Sequence[Trajectory], name: str) -> _Plain:
    """Tasks are samples, attempts are epochs. `run` is not empty."""
    tasks = list(dict.fromkeys(told.rollout.task for told in run))
    models = dict.fromkeys(model for told in run for model in told.models)
    agent = run[0].rollout.agent
    started = min(_instant(told, 0.0) for told in run)
    ended = max(_instant(told, told.rollout.seconds.get("total", 0.0)) for told in run)
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": name,
            "run_id": name,
            "task_id": name,
            "created": started,
            "task": "stillroom",
            "solver": agent,
            "dataset": {"name": name, "samples": len(tasks), "sample_ids": tasks},
            "model": next(iter(models), f"none/{agent}"),
            "config": {"epochs": max(told.rollout.attempt for told in run) + 1},
            "packages": {"stillroom": __version__},
            "metadata": {"models": list(models)},
        },
        "results": _results(run),
        "stats": {"started_at": started, "completed_at": ended},
        "samples": [_sample(told) for told in run],
    }


def _instant(told: Trajectory, seconds: float) -> str:
    """A log without one is none."""
    return told.at(seconds) or "1970-01-01T00:00:00Z"


def _results(run: Sequence[Trajectory]) -> _Plain:
    verdicts = [told.rollout.verdict for told in run if told.rollout.verdict]
    scored = len(verdicts)

    def score(name: str, metric: str, values: Sequence[float]) -> _Plain:
        mean = {metric: {"name": metric, "value": sum(values) / scored}} if scored else {}
        counts = {"scored_samples": scored, "unscored_samples": len(run) - scored}
        return {"name": name, "scorer": _SCORER, **counts, "metrics": mean}

    return {
        "total_samples": len(run),
        "completed_samples": scored,
        "scores": [
            score("reward", "mean", [v.reward for v in verdicts]),
            score("resolved", "accuracy", [float(v.resolved) for v in verdicts]),
        ],
    }


def _sample(told: Trajectory) -> _Plain:
    r = told.rollout
    messages = list(_messages(told))
    said = [m for m in messages if m["role"] == "assistant"]
    sample: _Plain = {
        "id": r.task,
        "epoch": r.attempt + 1,
        "input": told.instruction or "",
        "target": "",
        "messages": messages,
        "events": list(_events(told, messages)),
        "output": _output(told, said[-1]) if said else {},
        "scores": _scores(told),
        "metadata": outcome(told) | patch_text(told.patch),
        "started_at": told.at(0.0),
        "completed_at": told.at(r.seconds.get("total", 0.0)),
        "total_time": r.seconds.get("total"),
        "model_usage": _usage(told),
        "turn_count": told.steps,
        "uuid": told.name,
    }
    if r.fault:
        sample["error"] = {"message": r.fault.message, "traceback": "", "traceback_ansi": ""}
    match r.ending:
        case Ending.TURNS:
            sample["limit"] = {"type": "turn", "limit": float(told.steps)}
        case Ending.WALL_TIME:
            sample["limit"] = {"type": "time", "limit": r.seconds.get("agent", 0.0)}
        case _:
            pass
    return sample


def _scores(told: Trajectory) -> _Plain | None:
    verdict = told.rollout.verdict
    if verdict is None:
        return None  # void: no score is not a score of 0
    more = {"explanation": verdict.reason or None}
    return {
        "reward": {"value": verdict.reward, **more, "metadata": {"checks": dict(verdict.checks)}},
        "resolved": {"value": "C" if verdict.resolved else "I", **more},
    }


def _output(told: Trajectory, last: _Plain) -> _Plain:
    models = told.models
    return {
        "model": last["model"] or (models[-1] if models else ""),
        "choices": [{"message": last, "stop_reason": "tool_calls"}],
        "completion": last["content"] if isinstance(last["content"], str) else "",
    }


def _usage(told: Trajectory) -> _Plain:
    """Per model; of one that did not count its tokens there is none."""
    found = {}
    for name in told.models:
        turns = tuple(t for t in told.turns if t.model and t.model.name == name)
        of = Trajectory(rollout=told.rollout, turns=turns)
        prompt, completion = total(of, "prompt_tokens"), total(of, "completion_tokens")
        if prompt is None or completion is None:
            continue
        cached = total(of, "cached_tokens")
        found[name] = {
            "input_tokens": max(prompt - (cached or 0), 0),
            "output_tokens": completion,
            "total_tokens": prompt + completion,
            "input_tokens_cache_read": cached,
            "total_cost": total(of, "cost_usd"),
        }
    return found


def _events(told: Trajectory, messages: Sequence[_Plain]) -> Iterator[_Plain]:
    """A call of a tool for each turn, and of the model the last one only.

    Its input is the whole conversation, which is how readers come by the messages; with one for each
    turn, a log would grow with the square of its turns.
    """
    places = {message["id"]: place for place, message in enumerate(messages)}
    sampled = [turn for turn in told.turns if turn.is_sampled]
    for turn in told.turns:
        stamp = {"timestamp": _instant(told, turn.time), "working_start": turn.time}
        head = {**stamp, "uuid": f"{told.name}.{turn.step}"}
        if sampled and turn is sampled[-1]:
            place = places[_said_id(told, turn)]
            output = _output(told, messages[place])
            config: _Plain = {"tools": [], "tool_choice": "auto", "config": {}}
            call = {"event": "model", "model": output["model"], **config}
            yield head | call | {"input": list(messages[:place]), "output": output}
        done = {"completed": _instant(told, turn.seen.time)} if turn.seen else {}
        yield (
            head
            | done
            | {
                "event": "tool",
                "uuid": f"{told.name}.{turn.step}.tool",
                "id": call_id(turn),
                "function": turn.action,
                "arguments": dict(turn.arguments),
                "result": shown(turn.seen) if turn.seen else "",
            }
        )


def _said_id(told: Trajectory, turn: Turn) -> str:
    return f"{told.name}.said-{turn.step}"


def _messages(told: Trajectory) -> Iterator[_Plain]:
    if told.instruction is not None:
        yield {
            "id": f"{told.name}.task",
            "role": "user",
            "content": told.instruction,
            "source": "input",
        }
    for turn in told.turns:
        yield _said(told, turn)
        if turn.seen:
            yield {
                "id": f"{told.name}.seen-{turn.step}",
                "role": "tool",
                "content": shown(turn.seen),
                "tool_call_id": call_id(turn),
                "function": turn.action,
                "metadata": {"status": turn.seen.status, "exit_code": turn.seen.exit_code},
            }


def _said(told: Trajectory, turn: Turn) -> _Plain:
    model = turn.model or ModelCall()
    content: Any = model.message
    if model.reasoning:
        parts = [{"type": "reasoning", "reasoning": model.reasoning}]
        content = [*parts, {"type": "text", "text": model.message}]
    call = {"id": call_id(turn), "function": turn.action, "arguments": dict(turn.arguments)}
    said = {
        "id": _said_id(told, turn),
        "role": "assistant",
        "content": content,
        "tool_calls": [call | {"type": "function"}],
        "model": model.name or None,
        "source": "generate" if turn.is_sampled else None,
    }
    return said | ({"metadata": turn.tokens} if turn.tokens else {})
