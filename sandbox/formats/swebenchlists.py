"""Lists of test ids as data sets write them: lists, lists as JSON text, lists as Python text."""

import ast
import json
import re
from dataclasses import dataclass
from typing import Any

from sandbox.formats.swebenchinstance import RowError, ends_open, kind_of, text_of

MOST_TEXT = 16 << 20
_SHOWN = 80
_ONE = r"""(?:'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+")"""
_TEXT = re.compile(_ONE)
_LIST = re.compile(rf"\s*+\[\s*+(?:{_ONE}\s*+(?:,\s*+{_ONE}\s*+)*+,?\s*+)?\]\s*+")


@dataclass(frozen=True, slots=True)
class Ids:
    names: tuple[str, ...]
    notes: tuple[str, ...]


def ids_of(value: Any, key: str, *, python: bool = False) -> Ids:
    """Each once, in order. python: text may be a Python literal; nothing of it is ever run.

    Raises RowError.
    """
    found = _listed(value, key, python=python) if isinstance(value, str) else value
    if found is None:
        found = []
    if not isinstance(found, list | tuple):
        raise RowError(f"`{key}` should be a list of test ids, and is {kind_of(found)}")
    names = [_name(one, key) for one in found]
    once = tuple(dict.fromkeys(name for name in names if name.strip()))
    notes = []
    if blank := sum(not name.strip() for name in names):
        notes.append(f"`{key}`: {blank} empty ids were left out")
    if len(once) + blank < len(names):
        notes.append(f"`{key}`: {len(names) - blank - len(once)} ids that stand twice count once")
    if cut := [name for name in once if ends_open(name)]:
        notes.append(f"`{key}`: {len(cut)} ids were cut at a space, e.g. {cut[0][:_SHOWN]}")
    return Ids(once, tuple(notes))


def _name(one: object, key: str) -> str:
    if not isinstance(one, str):
        raise RowError(f"`{key}` holds {kind_of(one)} where a test id should be")
    return text_of(one, key)


def _listed(text: str, key: str, *, python: bool) -> Any:
    if len(text) > MOST_TEXT:
        raise RowError(f"`{key}` has more than {MOST_TEXT >> 20} MiB")
    if not text.strip():
        return []
    if python:
        try:
            return _literal(text)
        except (ValueError, SyntaxError):
            pass  # some rows are JSON all the same
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        also = " nor a Python literal" if python else ""
        raise RowError(f"`{key}` is no JSON list{also}: {text[:_SHOWN]!r}") from None


def _literal(text: str) -> list[str]:
    """Texts in quotes with commas between them, as Python shows such a list, and nothing else.

    Two texts without a comma are what numpy shows: to Python that is one text. Raises ValueError.
    """
    if not _LIST.fullmatch(text):
        raise ValueError(text[:_SHOWN])
    return [ast.literal_eval(found) for found in _TEXT.findall(text)]
