"""What the plain runner tells of a value, and when it is what is expected. Pure.

The runner's own encoder is `verifiers/_runners/plain_encode.py`: this one is only for what can be
written as a literal, and gives the same text.
"""

import ast
from typing import Any

_LONGEST = 20_000
_DIGITS = 10_000
"""Of two. Python refuses to write out longer numbers in tens."""


def encoded(value: Any) -> str:
    """Of a value made of None, numbers, strings, bytes and the usual containers.

    Raises ValueError for anything else, and for what is too long.
    """
    text = _encoded(value)
    if len(text) > _LONGEST // 2:
        raise ValueError("too long to be told")
    return text


def _encoded(value: Any) -> str:
    kind = type(value)
    if kind is int and value.bit_length() >= _DIGITS:
        return f"{value:#x}"
    if kind in {type(None), bool, int, float, complex, bytes, str}:
        return ascii(value)
    if kind is dict:
        pairs = (f"{_encoded(k)}: {_encoded(v)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if kind in {set, frozenset}:
        return "{" + ", ".join(sorted(map(_encoded, value))) + "}" if value else "set()"
    if kind is list:
        return "[" + ", ".join(map(_encoded, value)) + "]"
    if kind is tuple:
        return "(" + ", ".join(map(_encoded, value)) + ("," if len(value) == 1 else "") + ")"
    raise ValueError(f"a {kind.__name__} is no literal")


def agrees(told: str, expected: str) -> bool:
    """Is a value that was told so equal to the one that is expected, as `==` has it?

    The test would have been content with 3.0 for 3, with another order of a dictionary's keys.
    """
    if told == expected:
        return True
    if told.startswith("!") or len(told) > 2 * _LONGEST:
        return False
    try:
        # Both are texts of plain values: nothing but Python's own equality is asked.
        return bool(ast.literal_eval(told) == ast.literal_eval(expected))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return False


def bits(expected: str) -> int:
    """About how many bits a guess has to get right: 1 for true, false and nothing at all."""
    if expected in {"None", "True", "False"}:
        return 1
    return max(1, 4 * len(expected.strip("'\"[](){}b ")))
