"""The rows of `parametrize` and of fixtures with parameters, and what each is called."""

import enum
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from plain_standin import Fixture, LeftError, Mark, Param


@dataclass
class Row:
    """One way of calling a test."""

    id: str | None = None
    """None: it is called in one way only."""
    arguments: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    """Name of a fixture → what it finds as `request.param`."""
    places: dict[str, int] = field(default_factory=dict)
    """Name of a fixture → which of its parameters that is."""
    marks: list[Mark] = field(default_factory=list)

    def with_more(self, other: "Row") -> "Row":
        if self.arguments.keys() & other.arguments.keys():
            raise LeftError("an argument is given twice")
        return Row(
            id=other.id if self.id is None else f"{self.id}-{other.id}",
            arguments={**self.arguments, **other.arguments},
            params={**self.params, **other.params},
            places={**self.places, **other.places},
            marks=[*self.marks, *other.marks],
        )


def rows_of_mark(mark: Mark) -> list[Row]:
    """Of one `parametrize`."""
    told = dict(zip(("argnames", "argvalues", "indirect", "ids"), mark.args, strict=False))
    told |= mark.kwargs
    names = _names(told["argnames"])
    values = [_param(value, single=len(names) == 1) for value in told["argvalues"]]
    indirect = told.get("indirect", False)
    through = set(names if indirect is True else indirect or ())
    rows = []
    for place, (param, told_id) in enumerate(
        zip(values, ids(values, names, told.get("ids")), strict=True)
    ):
        given = dict(zip(names, param.values, strict=True))
        rows.append(
            Row(
                id=told_id,
                arguments={n: v for n, v in given.items() if n not in through},
                params={n: v for n, v in given.items() if n in through},
                places={n: place for n in names if n in through},
                marks=list(param.marks),
            )
        )
    if not rows:
        raise LeftError("there are no rows")
    return rows


def rows_of_fixture(name: str, made: Fixture) -> list[Row]:
    values = [_param(value, single=True) for value in made.params or ()]
    named = ids(values, [name], made.ids)
    return [
        Row(
            id=told,
            params={name: param.values[0]},
            places={name: place},
            marks=list(param.marks),
        )
        for place, (param, told) in enumerate(zip(values, named, strict=True))
    ]


def _names(told: Any) -> list[str]:
    if isinstance(told, str):
        return [name.strip() for name in told.split(",") if name.strip()]
    return list(told)


def _param(value: Any, *, single: bool) -> Param:
    if isinstance(value, Param):
        return value
    return Param(value) if single else Param(*value)


def ids(params: Sequence[Param], names: Sequence[str], told: Any) -> list[str]:
    """As pytest makes them: what does not come out the same is not taken, no more."""
    function: Callable[[Any], Any] | None = told if callable(told) else None
    given = list(told) if told is not None and function is None else None
    found = []
    for place, param in enumerate(params):
        if param.id is not None:
            found.append(escaped(param.id))
        elif given is not None and place < len(given) and given[place] is not None:
            found.append(_of_value(given[place]) or "")
        else:
            pairs = zip(names, param.values, strict=False)
            found.append("-".join(_id_of(n, v, place, function) for n, v in pairs))
    return _told_apart(found)


def _id_of(name: str, value: Any, place: int, function: Callable[[Any], Any] | None) -> str:
    told = None if function is None else function(value)
    for one in (value,) if told is None else (told, value):
        own = _of_value(one)
        if own is not None:
            return own
    return f"{name}{place}"


def _of_value(value: Any) -> str | None:
    if isinstance(value, str | bytes):
        return escaped(value)
    if value is None or isinstance(value, float | int | bool | complex):
        return str(value)
    if isinstance(value, re.Pattern):
        return escaped(value.pattern)
    if isinstance(value, enum.Enum):
        return str(value)
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else None


_UNPRINTED = {i: f"\\x{i:02x}" for i in range(128) if i not in range(32, 127)}
_UNPRINTED |= {ord("\t"): "\\t", ord("\r"): "\\r", ord("\n"): "\\n"}


def escaped(value: str | bytes) -> str:
    if isinstance(value, bytes):
        return value.decode("ascii", "backslashreplace").translate(_UNPRINTED)
    return value.encode("unicode_escape").decode("ascii").translate(_UNPRINTED)


def _told_apart(found: list[str]) -> list[str]:
    counts, taken = Counter(found), set(found)
    if len(counts) == len(found):
        return found
    numbers: Counter[str] = Counter()
    apart = list(found)
    for place, one in enumerate(found):
        if counts[one] == 1:
            continue
        suffix = "_" if one and one[-1].isdigit() else ""
        while f"{one}{suffix}{numbers[one]}" in taken:
            numbers[one] += 1
        apart[place] = f"{one}{suffix}{numbers[one]}"
        taken.add(apart[place])
        numbers[one] += 1
    return apart
