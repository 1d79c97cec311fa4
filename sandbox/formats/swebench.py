"""Data sets and predictions of the SWE-bench family, in all the shapes in which they are found."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sandbox.errors import SpecError
from sandbox.formats.rowsfile import Row, read_rows
from sandbox.formats.swebenchinstance import (
    INSTANCE_ID,
    Dataset,
    Instance,
    Refused,
    RowError,
    Shape,
    ends_open,
    is_cut,
)
from sandbox.formats.swebenchpreds import Prediction, Predictions, read_predictions
from sandbox.formats.swebenchrepo import is_task_repository, read_task_repository
from sandbox.formats.swebenchrows import instance_of

__all__ = [
    "INSTANCE_ID",
    "Dataset",
    "Instance",
    "Prediction",
    "Predictions",
    "Refused",
    "Shape",
    "ends_open",
    "is_cut",
    "read_dataset",
    "read_instances",
    "read_predictions",
]


def read_dataset(path: Path) -> Dataset:
    """Every instance that can be read, and why the others cannot.

    path: JSON Lines, JSON, or the folder of a task repository. Raises SpecError for what is none of
    these.
    """
    if path.is_dir():
        if not is_task_repository(path):
            raise SpecError(
                "neither a file nor a task repository: it has no tasks/", where=str(path)
            )
        return _dataset(read_task_repository(path), "repository")
    return _dataset(read_rows(path), None)


def read_instances(path: Path) -> tuple[Instance, ...]:
    """All of a data set. Raises SpecError, too, when one of them cannot be read."""
    found = read_dataset(path)
    for bad in found.refused:
        raise SpecError(bad.why, where=bad.where)
    return found.instances


def _dataset(rows: Iterable[Row], shape: Shape | None) -> Dataset:
    instances: dict[str, Instance] = {}
    refused: list[Refused] = []
    for found in _read(rows, shape):
        if isinstance(found, Refused):
            refused.append(found)
        elif first := instances.get(found.instance_id):
            why = f"`{found.instance_id}` stands at {first.where} already"
            refused.append(Refused(where=found.where, why=why, instance_id=found.instance_id))
        else:
            instances[found.instance_id] = found
    return Dataset(instances=tuple(instances.values()), refused=tuple(refused))


def _read(rows: Iterable[Row], shape: Shape | None) -> Iterator[Instance | Refused]:
    for row in rows:
        if row.data is None:
            yield Refused(where=row.where, why=row.why, instance_id=_known(row.key))
            continue
        try:
            yield instance_of(_named(row.data, row.key), row.where, shape)
        except RowError as e:
            name = _known(row.data.get("instance_id"))
            yield Refused(where=row.where, why=str(e), instance_id=name)


def _named(data: dict[str, Any], key: str) -> dict[str, Any]:
    """In a map the row's name need not be said again. Raises RowError."""
    if key and data.get("instance_id", key) != key:
        raise RowError(
            f"`instance_id` is {data['instance_id']!r:.100}, and it stands under {key!r:.100}"
        )
    return {"instance_id": key} | data if key else data


def _known(name: object) -> str:
    return name if isinstance(name, str) and INSTANCE_ID.fullmatch(name) else ""
