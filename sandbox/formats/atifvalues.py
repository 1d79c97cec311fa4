"""ATIF v1.8, the Agent Trajectory Interchange Format, as values. What they have to keep: atif."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sandbox.model.task import STRICT

VERSION: Literal["ATIF-v1.8"] = "ATIF-v1.8"
Extra = Mapping[str, Any] | None
_Audio = Literal[
    "audio/wav", "audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/flac", "audio/webm",
    "audio/aiff",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audio:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    media_type: _Audio
    path: str
    duration_sec: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    type: Literal["text", "image", "audio"]
    text: str | None = None
    source: Image | Audio | None = None


Content = str | tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    version: str
    model_name: str | None = None
    tool_definitions: tuple[Mapping[str, Any], ...] | None = None
    extra: Extra = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    tool_call_id: str
    function_name: str
    arguments: Mapping[str, Any]
    extra: Extra = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    trajectory_id: str | None = None
    session_id: str | None = None
    trajectory_path: str | None = None
    extra: Extra = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    source_call_id: str | None = None
    content: Content | None = None
    subagent_trajectory_ref: tuple[Reference, ...] | None = None
    extra: Extra = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    extra: Extra = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalMetrics:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = None
    extra: Extra = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    step_id: int
    source: Literal["system", "user", "agent"]
    message: Content
    timestamp: str | None = None
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    observation: Observed | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: int | None = None
    extra: Extra = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Atif:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema_version: Literal[
        "ATIF-v1.0", "ATIF-v1.1", "ATIF-v1.2", "ATIF-v1.3", "ATIF-v1.4", "ATIF-v1.5",
        "ATIF-v1.6", "ATIF-v1.7", "ATIF-v1.8",
    ]  # fmt: skip
    agent: Agent
    steps: tuple[Step, ...]
    session_id: str | None = None
    trajectory_id: str | None = None
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    extra: Extra = None
    subagent_trajectories: tuple["Atif", ...] | None = None
