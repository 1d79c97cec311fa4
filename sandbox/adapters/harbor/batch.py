"""Many folders, one after the other: what each became, or why it did not."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sandbox.adapters.harbor.bench import Place
from sandbox.adapters.harbor.importing import folders_of, import_folder
from sandbox.adapters.harbor.report import ImportRecord, Refused, Report, Row
from sandbox.errors import Fault, SpecError, UserError
from sandbox.model.task import STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of one folder."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    folder: str
    tasks: tuple[ImportRecord, ...] = ()
    rows: tuple[Row, ...] = ()
    """Of a folder that became no task."""
    refused: str = ""
    fault: str = ""
    """Something of ours failed: to be tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What imports/<name>.json says."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: int = 1
    outcomes: tuple[Outcome, ...]

    @property
    def tasks(self) -> list[ImportRecord]:
        return [task for outcome in self.outcomes for task in outcome.tasks]


def import_all(place: Place, top: Path, kind: str) -> Batch:
    """Of all the tasks at or below a folder. Raises UserError where there is none."""
    found = []
    for folder in folders_of(top, kind):
        place.progress(f"reading {folder.name}", 0, 1)
        found.append(_one(place, folder, kind))
    return Batch(outcomes=tuple(found))


def _one(place: Place, folder: Path, kind: str) -> Outcome:
    report = Report()
    try:
        tasks = import_folder(place, folder, kind, report)
    except Refused as e:
        return Outcome(folder=str(folder), rows=tuple(report.rows), refused=str(e))
    except (SpecError, UserError) as e:
        hint = f" ({e.hint})" if e.hint else ""
        return Outcome(folder=str(folder), rows=tuple(report.rows), refused=f"{e}{hint}")
    except Fault as e:
        return Outcome(folder=str(folder), rows=tuple(report.rows), fault=f"{e.code}: {e}")
    return Outcome(folder=str(folder), tasks=tuple(tasks))
