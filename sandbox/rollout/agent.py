"""Who acts. An agent opens one session per rollout; a session maps what it sees to what it does."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sandbox.model.step import Action, Observation
from sandbox.model.task import Limits, TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a session starts from: what a person who takes the task would be told."""

    task: TaskId
    attempt: int
    instruction: str
    workdir: str
    limits: Limits
    folder: Path
    """On the host: where the session may leave logs."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the run is being stopped: a session that waits should give up."""
    reference: Callable[[], bytes] = bytes
    """The reference solution as a patch. For the oracle; no other agent has any use for it."""


class Session(Protocol):
    def act(self, seen: Observation) -> Action:
        """The next action. Raises AgentFault when the agent itself is broken."""
        ...

    def close(self) -> None:
        """The rollout is over."""
        ...


class Agent(Protocol):
    @property
    def name(self) -> str: ...

    def begin(self, opening: Opening) -> Session: ...
