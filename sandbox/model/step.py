"""What an agent does, and what it sees."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Run:
    """Run a command line in the persistent shell and wait for it, `seconds` at most."""

    command: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Keys:
    """Type into whatever is in the foreground, then look for at most `seconds`."""

    keys: str
    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Submit:
    """Done. Nothing the agent does after this counts."""


Action = Run | Keys | Submit
"""A closed union: every `match` on it must be exhaustive (mypy checks)."""


class Status(StrEnum):
    EXITED = "exited"
    RUNNING = "running"
    """Still going: type into it with Keys, or wait with Keys("")."""
    TIMED_OUT = "timed_out"
    """Its time was up and it was interrupted."""
    RESTARTED = "restarted"
    """The shell itself ended and was replaced; directory kept, variables lost."""
    STOPPED = "stopped"
    """The whole box was stopped for a limit that is told in `limit`; the rollout is over."""
    REFUSED = "refused"
    """The action cannot be carried out now, or not at all; `output` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    output: str = ""
    status: Status = Status.EXITED
    exit_code: int | None = None
    """None: nothing ended."""
    cwd: str = ""
    truncated: bool = False
    total_bytes: int = 0
    """What the program printed; `output` keeps the head and the tail."""
    limit: str = ""
    """Which limit of the box was reached meanwhile, in words; empty when none was."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    action: Action
    observation: Observation
