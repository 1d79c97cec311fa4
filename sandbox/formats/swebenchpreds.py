"""Predictions: which patch a model made for which instance. JSON Lines, a list, or a map by id."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.formats.rowsfile import Row, read_rows
from sandbox.formats.swebenchinstance import Refused, RowError, id_of, text_of, with_end

_MODELS = ("model_name_or_path", "model_name", "model", "prefix")
_PATCHES = ("model_patch", "patch")
_LONGEST_MODEL = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    instance_id: str
    model: str
    patch: str
    where: str
    null: bool = False
    """Was there no patch, instead of an empty one?"""

    @property
    def empty(self) -> bool:
        return not self.patch.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    read: tuple[Prediction, ...]
    refused: tuple[Refused, ...] = ()
    """Rows that cannot be read, and those that say two things of one instance."""
    repeated: int = 0
    """Rows that say again what another one says."""


def read_predictions(path: Path) -> Predictions:
    """Raises SpecError for what is no such file; of a row that is wrong, `refused` tells.

    One model may say one thing of an instance. When it says the same twice, it is read once.
    """
    first: dict[tuple[str, str], Prediction] = {}
    against: set[tuple[str, str]] = set()
    repeated = 0
    refused: list[Refused] = []
    for row in read_rows(path):
        try:
            one = _prediction(row)
        except RowError as e:
            refused.append(Refused(where=row.where, why=str(e), instance_id=_named(row)))
            continue
        key = (one.model, one.instance_id)
        before = first.setdefault(key, one)
        if before.patch != one.patch:
            if key not in against:
                refused.append(_contradicted(before, one))
            against.add(key)
            refused.append(_contradicted(one, before))
        elif before is not one:
            repeated += 1
    read = tuple(one for key, one in first.items() if key not in against)
    return Predictions(read=read, refused=tuple(refused), repeated=repeated)


def _contradicted(one: Prediction, other: Prediction) -> Refused:
    why = f"`{one.instance_id}` has another patch at {other.where}: neither is graded"
    return Refused(where=one.where, why=why, instance_id=one.instance_id)


def _prediction(row: Row) -> Prediction:
    if row.data is None:
        raise RowError(row.why)
    data = row.data
    if row.key and data.get("instance_id", row.key) != row.key:
        raise RowError(f"`instance_id` is {data['instance_id']!r}, and it stands under {row.key!r}")
    key = next((k for k in _PATCHES if k in data), None)
    if key is None:
        raise RowError("there is no `model_patch`")
    return Prediction(
        instance_id=id_of(data.get("instance_id", row.key)),
        model=_model(data),
        patch=with_end(text_of(data[key], key)),
        where=row.where,
        null=data[key] is None,
    )


def _model(data: Mapping[str, Any]) -> str:
    key = next((k for k in _MODELS if data.get(k) is not None), _MODELS[0])
    name = text_of(data.get(key), key)
    if len(name) > _LONGEST_MODEL:
        raise RowError(f"`{key}` has more than {_LONGEST_MODEL} characters")
    return name or "unnamed"


def _named(row: Row) -> str:
    found = row.data.get("instance_id") if row.data else row.key
    try:
        return id_of(found)
    except RowError:
        return ""
