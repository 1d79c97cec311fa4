"""A rollout as an ATIF trajectory. What ATIF has no place for stands in `extra`."""

from collections.abc import Mapping
from typing import Any

from sandbox._version import __version__
from sandbox.formats.atifvalues import (
    VERSION,
    Agent,
    Atif,
    FinalMetrics,
    Metrics,
    Observed,
    Result,
    Step,
    ToolCall,
)
from sandbox.formats.toolcalls import call_id, tools
from sandbox.formats.trajectory import Seen, Trajectory, Turn, outcome, patch_text, total
from sandbox.model.step import ModelCall

_COUNTED = (
    "prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "prompt_token_ids",
    "completion_token_ids", "logprobs",
)  # fmt: skip


def atif(told: Trajectory) -> Atif:
    """One with no steps is none: its rules would not take it."""
    steps = [_asked(told)] if told.instruction is not None else []
    steps += [_step(told, turn, number) for number, turn in enumerate(told.turns, len(steps) + 1)]
    r = told.rollout
    return Atif(
        schema_version=VERSION,
        session_id=f"{r.task}/{r.attempt}/{r.started}",
        trajectory_id=told.name,
        agent=_agent(told),
        steps=tuple(steps),
        final_metrics=FinalMetrics(
            total_prompt_tokens=total(told, "prompt_tokens"),
            total_completion_tokens=total(told, "completion_tokens"),
            total_cached_tokens=total(told, "cached_tokens"),
            total_cost_usd=total(told, "cost_usd"),
            total_steps=len(steps),
        ),
        extra={
            **outcome(told),
            **patch_text(told.patch),
            "workdir": told.workdir,
            "written_by": f"stillroom {__version__}",
        },
    )


def _agent(told: Trajectory) -> Agent:
    models = told.models
    return Agent(
        name=told.rollout.agent,
        version="unknown",
        model_name=models[0] if len(models) == 1 else None,
        tool_definitions=tuple(tools()),
    )


def _asked(told: Trajectory) -> Step:
    return Step(step_id=1, source="user", message=told.instruction or "", timestamp=told.at(0.0))


def _step(told: Trajectory, turn: Turn, number: int) -> Step:
    model = turn.model or ModelCall()
    metrics = _metrics(model)
    reasoning = model.reasoning or None
    extra: dict[str, Any] = {"step": turn.step}
    if model.calls == 0 and (metrics or reasoning):
        # Its rules have no room for them beside a call that was none.
        extra["model"] = {"reasoning": reasoning, **{n: getattr(model, n) for n in _COUNTED}}
        metrics, reasoning = None, None
    return Step(
        step_id=number,
        source="agent",
        message=model.message,
        timestamp=told.at(turn.time),
        model_name=model.name or None,
        reasoning_content=reasoning,
        tool_calls=(
            ToolCall(
                tool_call_id=call_id(turn),
                function_name=turn.action,
                arguments=turn.arguments,
                extra=turn.said or None,
            ),
        ),
        observation=_observed(turn, turn.seen) if turn.seen else None,
        metrics=metrics,
        llm_call_count=model.calls,
        extra=extra,
    )


def _metrics(model: ModelCall) -> Metrics | None:
    told = {name: getattr(model, name) for name in _COUNTED}
    return None if all(v is None for v in told.values()) else Metrics(**told)


def _observed(turn: Turn, seen: Seen) -> Observed:
    extra: Mapping[str, Any] = {
        "status": seen.status,
        "exit_code": seen.exit_code,
        "seconds": seen.seconds,
        **seen.more,
    }
    result = Result(source_call_id=call_id(turn), content=seen.output, extra=extra)
    return Observed(results=(result,))
