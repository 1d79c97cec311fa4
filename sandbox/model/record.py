"""One rollout, as one line of results.jsonl: who acted, how it ended, a verdict or a fault."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal

from sandbox.errors import FaultCode
from sandbox.model.task import STRICT, Digest, TaskId

SCHEMA = 1


class Ending(StrEnum):
    """Why the agent's part was over."""

    SUBMITTED = "submitted"
    TURNS = "turns"
    WALL_TIME = "wall_time"
    SHELL_LOST = "shell_lost"
    """It broke its own box so that no shell would start in it any more."""
    BOX_STOPPED = "box_stopped"
    """It reached a limit for which its box is stopped; what it had done until then is judged."""
    GRADED = "graded"
    """There was no agent here: the submission came from a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What the agent leaves behind: a patch against the pinned commit, and nothing else."""

    task: TaskId
    patch: bytes
    rejected: str = ""
    """Why there is no patch, when what was left behind cannot be one."""
    dropped: tuple[str, ...] = ()
    """Paths that were left behind, and that no submission may have: they are as they were pinned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRecord:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    reward: float
    resolved: bool
    reason: str
    checks: Mapping[str, str]
    """Check id → outcome."""
    flags: tuple[Literal["forged", "test-dependent", "unproved"], ...] = ()
    """Why the reward is 0 whatever passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """Our world broke: no reward, run again, never a zero."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    code: FaultCode
    message: str
    hint: str = ""
    retry: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    task: TaskId
    task_digest: Digest
    attempt: int
    agent: str
    runtime: str
    started: str
    """UTC, to the second; the machine's clock, for people only."""
    ending: Ending | None = None
    steps: int = 0
    patch_sha256: str = ""
    patch_bytes: int = 0
    verdict: VerdictRecord | None = None
    fault: FaultRecord | None = None
    warning: str = ""
    """What the verdict was made without, though it counts: see `clock` of evidence.json."""
    network: Literal["none", "replay", "open"] = "none"
    """What the agent's box reached."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Phase → wall seconds: box, agent, collect, verify, checks, total."""
    schema: int = SCHEMA

    @property
    def reward(self) -> float | None:
        """None for a void rollout."""
        return self.verdict.reward if self.verdict else None
