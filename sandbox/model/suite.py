"""A suite: an ordered choice of tasks."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sandbox.model.task import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    name: str
    tasks: tuple[TaskId, ...]


def select(suite: Iterable[TaskId], patterns: Iterable[str]) -> tuple[TaskId, ...]:
    """The tasks that match any glob pattern, in the suite's order; all without a pattern."""
    wanted = tuple(patterns)
    return tuple(t for t in suite if not wanted or any(fnmatchcase(t, p) for p in wanted))
