"""ATIF v1.8, the Agent Trajectory Interchange Format, read and written by its rules.

They are kept here as well because the models that hold them elsewhere want a newer Python.
"""

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from sandbox.errors import SpecError
from sandbox.formats.atifvalues import Atif, Audio, Content, Image, Observed, Part, Result, Step
from sandbox.formats.jsonfile import decode
from sandbox.formats.shape import parse
from sandbox.formats.yamlfile import read_text

_AGENTS = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
_MODELS = ("metrics", "reasoning_content")


def load(path: Path) -> Atif:
    """Raises SpecError where it is no ATIF."""
    return read(decode(read_text(path), str(path)), str(path))


def read(data: Any, where: str) -> Atif:
    found = parse(data, Atif, lambda _: where)
    for problem in problems(found):
        raise SpecError(problem, where=where)
    return found


def dumps(value: Atif) -> str:
    """What is not said is left out; what lies in `extra` and `arguments` is as it is."""
    return json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if not is_dataclass(value):
        return value
    said = ((f.name, getattr(value, f.name)) for f in fields(value))
    return {name: plain(one) for name, one in said if one is not None}


def problems(value: Atif) -> Iterator[str]:
    """What its rules forbid beyond the shape of values."""
    if not value.steps:
        yield "`steps` is empty"
    for number, step in enumerate(value.steps, 1):
        if step.step_id != number:
            yield f"steps[{number - 1}].step_id should be {number}, not {step.step_id}"
        for problem in _of_step(step):
            yield f"step {number}: {problem}"
    yield from _of_totals(value)
    yield from _of_parts_within(value)


def _of_totals(value: Atif) -> Iterator[str]:
    total = value.final_metrics.total_steps if value.final_metrics else None
    if total is not None and total < 0:
        yield "`total_steps` is below 0"
    elif total not in (None, len(value.steps)) and not value.notes:
        yield f"`total_steps` is {total} of {len(value.steps)} steps, and `notes` does not say why"


def _of_parts_within(value: Atif) -> Iterator[str]:
    """Of the trajectories that lie in it."""
    known: set[str] = set()
    for inner in value.subagent_trajectories or ():
        if inner.trajectory_id is None:
            yield "a trajectory within has no `trajectory_id`"
        elif inner.trajectory_id in known:
            yield f"`trajectory_id` {inner.trajectory_id!r} is not the only one"
        else:
            known.add(inner.trajectory_id)
        yield from (f"within: {problem}" for problem in problems(inner))


def _of_step(step: Step) -> Iterator[str]:
    if step.source != "agent":
        for name in _AGENTS:
            if getattr(step, name) is not None:
                yield f"`{name}` is an agent's, and the source is {step.source}"
    if step.timestamp is not None and not _is_instant(step.timestamp):
        yield f"`timestamp` is no ISO 8601 instant: {step.timestamp[:100]!r}"
    count = step.llm_call_count
    if count is not None and count < 0:
        yield "`llm_call_count` is below 0"
    if count == 0 and step.source == "agent":
        for name in _MODELS:
            if getattr(step, name) is not None:
                yield f"`{name}` is a model's, and `llm_call_count` is 0"
    yield from _of_content(step.message)
    yield from _of_observation(step.observation, {c.tool_call_id for c in step.tool_calls or ()})


def _of_observation(seen: Observed | None, calls: set[str]) -> Iterator[str]:
    for result in seen.results if seen else ():
        if result.source_call_id is not None and result.source_call_id not in calls:
            yield f"`source_call_id` {result.source_call_id!r} is of no tool call of this step"
        yield from chain(_of_content(result.content), _of_references(result))


def _of_references(result: Result) -> Iterator[str]:
    for one in result.subagent_trajectory_ref or ():
        if one.trajectory_id is None and one.trajectory_path is None:
            yield "a reference has neither `trajectory_id` nor `trajectory_path`"


def _of_content(content: Content | None) -> Iterator[str]:
    for part in content if isinstance(content, tuple) else ():
        yield from _of_part(part)


def _of_part(part: Part) -> Iterator[str]:
    if part.type == "text":
        if part.text is None or part.source is not None:
            yield "a part of type text has `text`, and no `source`"
    elif part.source is None or part.text is not None:
        yield f"a part of type {part.type} has a `source`, and no `text`"
    else:
        yield from _of_source(part.source, part.type)


def _of_source(source: Image | Audio, kind: str) -> Iterator[str]:
    if not source.media_type.startswith(f"{kind}/"):
        yield f"a part of type {kind} has a source of {source.media_type}"
    if isinstance(source, Audio) and (source.duration_sec or 0) < 0:
        yield "`duration_sec` is below 0"


def _is_instant(text: str) -> bool:
    try:
        # As its models read it: they take no Z between a date and a time.
        datetime.fromisoformat(text.replace("Z", "+00:00"))  # noqa: FURB162 - they do so
    except ValueError:
        return False
    return True
