"""verifiers/<task>/mutants.yaml: survivors that are no hole in the tests, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from sandbox.formats import yamlfile
from sandbox.model.task import STRICT, TaskSpec

FILE = "mutants.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A wrong version of the reference solution that the hidden tests may accept."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    id: str
    """As `stillroom check --full` names it."""
    change: str = ""
    """What it changes, for the reader."""
    reason: str
    """Why no test has to fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantsFile:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1] = 1
    explained: tuple[Explained, ...]


def explained(task: TaskSpec) -> Mapping[str, str]:
    """Id of a mutant → why it may survive. Raises SpecError."""
    path = Path(task.home) / "verifiers" / task.id / FILE
    if not path.exists():
        return {}
    return {e.id: e.reason for e in yamlfile.load(path, MutantsFile).explained}
