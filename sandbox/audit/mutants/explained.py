"""verifiers/<task>/mutants.yaml: survivors that are no hole in the tests, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from sandbox.errors import SpecError
from sandbox.formats import yamlfile
from sandbox.model.task import STRICT, TaskSpec

FILE = "mutants.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A wrong version of the reference solution that the hidden tests may accept."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    id: str = ""
    """As `stillroom check --full` names it."""
    path: str = ""
    """In place of an id: all that change this file, of which the instruction asks nothing."""
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
    """Id of a mutant, or the file it changes → why it may survive. Raises SpecError."""
    path = Path(task.home) / "verifiers" / task.id / FILE
    if not path.exists():
        return {}
    doc = yamlfile.open_document(path)
    found = doc.parse(MutantsFile).explained
    for i, e in enumerate(found):
        if bool(e.id) == bool(e.path):
            hint = "an id is of one mutant, a path of all that change the file"
            raise SpecError(
                "give an `id`, or a `path`", where=doc.where(("explained", i)), hint=hint
            )
    return {e.id or e.path: e.reason for e in found}


def reason(reasons: Mapping[str, str], mutant: str) -> str | None:
    """Why this one may survive. mutant: as it is told of, `ID PATH:LINE: …`."""
    number, _, said = mutant.partition(" ")
    return reasons.get(number, reasons.get(said.partition(":")[0]))
