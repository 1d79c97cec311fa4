"""Plain data to our dataclasses, strictly: unknown keys and wrong types are errors with a place."""

import dataclasses
import json
import threading
import types
import typing
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from sandbox.errors import SpecError

T = TypeVar("T")
Loc = tuple[str | int, ...]
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


_made: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)
_lock = threading.Lock()
"""Making one reads the source of the class, which Python 3.11 cannot do in two threads at once."""


def _adapter(shape: Any) -> TypeAdapter[Any]:
    with _lock:
        return _made(shape)


def parse(data: object, shape: type[T], where: Callable[[Loc], str]) -> T:
    """`where` turns a location within `data` into file:line. Raises SpecError."""
    try:
        # Through JSON: strict about types, yet a list may fill a tuple.
        found: T = _adapter(shape).validate_json(json.dumps(data), strict=True)
    except ValidationError as e:
        raise _explain(e, shape, where) from None
    return found


def plain(value: object) -> Any:
    """The reverse: a dataclass as JSON-ready data."""
    return _adapter(type(value)).dump_python(value, mode="json")


def schema_of(shape: type[Any], title: str) -> dict[str, Any]:
    """JSON Schema, for editors."""
    found = _adapter(shape).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found, "title": title}


def _explain(error: ValidationError, shape: type[Any], where: Callable[[Loc], str]) -> SpecError:
    found = error.errors(include_url=False)
    # An unknown key usually is a known one misspelt: say that rather than what is missing.
    first = next((e for e in found if e["type"] in _UNKNOWN), found[0])
    # Of the members of a union, the one that was understood furthest is what was meant.
    top = _real_loc(shape, first["loc"])
    same = [e for e in found if _real_loc(shape, e["loc"])[: len(top)] == top]
    first = max(same, key=lambda e: len(e["loc"]))
    loc = _real_loc(shape, first["loc"])
    name = ".".join(str(part) for part in loc)
    others = {_real_loc(shape, e["loc"]) for e in found if e not in same}
    more = f" (and {len(others)} more)" if others else ""
    match first["type"]:
        case kind if kind in _UNKNOWN:
            known = _keys_at(shape, loc[:-1])
            near = get_close_matches(str(loc[-1]), known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else "known keys: " + ", ".join(known)
            return SpecError(f"unknown key `{name}`{more}", where=where(loc), hint=hint)
        case "missing" | "missing_argument":
            return SpecError(f"`{name}` is missing{more}", where=where(loc[:-1]))
        case "string_type":
            message = f"`{name}` should be a string{more}"
            return SpecError(message, where=where(loc), hint="put it in quotes")
        case _:
            said = first["msg"][:1].lower() + first["msg"][1:]
            return SpecError(f"`{name}`: {said}{more}" if name else said, where=where(loc))


def _real_loc(shape: Any, loc: Loc) -> Loc:
    """Without the union members that pydantic puts in between: they are no keys of the file."""
    found: list[str | int] = []
    for part in loc:
        members = [o for o in _options(shape) if o is not types.NoneType]
        if len(members) > 1:
            shape = next((m for m in members if getattr(m, "__name__", "") == part), None)
        elif part != "[key]":
            found.append(part)
            shape = _step(shape, part)
    return tuple(found)


def _keys_at(shape: Any, loc: Loc) -> list[str]:
    for part in loc:
        shape = _step(shape, part)
    return [f.name for c in _classes(shape) for f in dataclasses.fields(c)]


def _step(shape: Any, part: str | int) -> Any:
    for c in _classes(shape):
        hints = typing.get_type_hints(c)
        if part in hints:
            return hints[str(part)]
    for option in _options(shape):
        arguments = typing.get_args(option)
        origin = typing.get_origin(option)
        if origin in (dict, Mapping):
            return arguments[1]
        if origin in (tuple, list) and arguments:
            return arguments[0]
    return None


def _options(shape: Any) -> tuple[Any, ...]:
    union = typing.get_origin(shape) in (typing.Union, types.UnionType)
    return typing.get_args(shape) if union else (shape,)


def _classes(shape: Any) -> list[type[Any]]:
    return [o for o in _options(shape) if isinstance(o, type) and dataclasses.is_dataclass(o)]
