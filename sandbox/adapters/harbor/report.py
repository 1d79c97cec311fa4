"""What became of each field of a task that was converted: nothing is passed over in silence."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from sandbox.errors import UserError
from sandbox.model.task import STRICT

Fate = Literal["mapped", "changed", "dropped", "refused"]
"""`mapped`: it means the same here; `changed`: it means something else here, and what; `dropped`:
it has no meaning here; `refused`: without it the task would be another one, so there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    field: str
    fate: Fate
    note: str = ""
    """What it became, or why not."""
    where: str = ""
    """file:line"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecord:
    """task_specs/<id>/import.json."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1] = 1
    task: str
    format: Literal["harbor", "terminal-bench"]
    source: str
    """The name that it had."""
    rows: tuple[Row, ...]
    oracle: float | None = None
    """The reward of its own solution; None: it has none."""
    floor: float | None = None
    """The reward of doing nothing."""


class Refused(UserError):
    """The task cannot be had here with its meaning."""

    def __init__(self, rows: list[Row]) -> None:
        first = rows[0]
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        at = f"{first.where}: " if first.where else ""
        super().__init__(f"{at}refused: {first.field}: {first.note}{more}")
        self.rows = rows


@dataclass(slots=True)
class Report:
    """Rows, as they are found."""

    rows: list[Row] = field(default_factory=list)

    def mapped(self, name: str, note: str = "", where: str = "") -> None:
        self._add(name, "mapped", note, where)

    def changed(self, name: str, note: str, where: str = "") -> None:
        self._add(name, "changed", note, where)

    def dropped(self, name: str, note: str, where: str = "") -> None:
        self._add(name, "dropped", note, where)

    def refused(self, name: str, note: str, where: str = "") -> None:
        self._add(name, "refused", note, where)

    def require_none_refused(self) -> None:
        """Raises Refused."""
        if wrong := [row for row in self.rows if row.fate == "refused"]:
            raise Refused(wrong)

    def _add(self, name: str, fate: Fate, note: str, where: str) -> None:
        row = Row(field=name, fate=fate, note=note, where=where)
        if row not in self.rows:
            self.rows.append(row)
