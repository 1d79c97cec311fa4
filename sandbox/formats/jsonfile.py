"""JSON files: locks, run manifests, evidence."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sandbox.errors import SpecError
from sandbox.formats.shape import Loc, parse, plain
from sandbox.formats.yamlfile import read_text

T = TypeVar("T")
Pairs = Callable[[list[tuple[str, Any]]], Any]


def load(path: Path, shape: type[T]) -> T:
    """The file as a `shape`. Raises SpecError."""
    return parse(decode(read_text(path), str(path)), shape, _where(path))


def decode(text: str, where: str, *, line: int | None = None, pairs: Pairs | None = None) -> Any:
    """JSON text as plain data; NaN and Infinity are no JSON.

    pairs: makes each object of its keys and values, where a key may stand twice.
    """
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=pairs)
    except RecursionError:
        where = f"{where}:{line}" if line else where
        raise SpecError("nested too deeply", where=where) from None
    except ValueError as e:
        at = line or getattr(e, "lineno", 1)
        said = getattr(e, "msg", str(e))
        raise SpecError(f"not valid JSON: {said}", where=f"{where}:{at}") from None


def dumps(value: object) -> str:
    """A dataclass as indented JSON."""
    return json.dumps(plain(value), indent=1, ensure_ascii=False) + "\n"


def write(path: Path, text: str) -> None:
    """Replace the file as a whole: a reader sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    with fresh.open("w", encoding="utf-8", errors="surrogateescape") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    fresh.replace(path)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _where(path: Path) -> Any:
    def where(loc: Loc) -> str:
        del loc
        return str(path)

    return where
