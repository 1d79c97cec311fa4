"""What an import tells: what became a task, what of it was mapped or dropped, and what cannot run here."""

from dataclasses import dataclass
from typing import Literal

from sandbox.model.task import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of one field of the source, in all that was read."""

    field: str
    fate: Literal["mapped", "dropped", "refused"]
    why: str
    """To what it was mapped, or why it was not."""
    count: int
    """In how many it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """What is a task of ours now."""

    name: str
    """In the source."""
    task: TaskId
    notes: tuple[str, ...] = ()
    """What is not as it was in the source, or not as one might expect."""
    kept: bool = False
    """Was it imported before, and is left as it is?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotHere:
    """What was read and cannot run here, or could not be read."""

    name: str
    """In the source; empty if not even that could be read."""
    where: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    unread: bool = False
    """Could it not be read? Then the source is wrong, and not only another world."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    source: str
    read: int
    """How many there were."""
    converted: tuple[Converted, ...]
    not_here: tuple[NotHere, ...]
    fields: tuple[Fate, ...]
