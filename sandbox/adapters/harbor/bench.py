"""Where tasks are written, and one that is being made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.adapters.harbor.foreign import Foreign
from sandbox.adapters.harbor.packages import Packages
from sandbox.adapters.harbor.report import Report
from sandbox.adapters.harbor.writing import Pinned
from sandbox.runtime.base import Runtime
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where tasks are written, and with what."""

    home: Path
    """It holds, or comes to hold, task_specs/, verifiers/ and repos/."""
    store: Store
    runtime: Runtime
    progress: Progress
    bases: Mapping[str, str] = field(default_factory=dict)
    """Name of an image → one of repos/images, as a person has decided."""
    force: bool = False
    """Write over a task that is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A task whose box is settled, and whose work is yet to be judged."""

    place: Place
    task: Foreign
    report: Report
    pinned: Pinned
    packages: Packages

    def depot(self) -> Depot:
        """A new one: what is pinned changes while a task is made."""
        return Depot(self.place.store, self.place.progress)
