"""A value as text, for the host to compare: no method of the value is ever called.

Code under test can hand out a `str` that is equal to everything. What is told is what it holds as
a string, read with `str`'s own methods: of a subclass, too, since a named tuple or a member of an
enumeration is equal to its plain value. Anything else is `!` and the name of its type.
"""

from collections.abc import Callable, Iterator
from typing import Any

_DEEPEST, _LONGEST = 40, 20_000
_NAME = type.__dict__["__name__"]


class _TooMuchError(Exception):
    """It is deeper or longer than anything that a test writes down."""


def encode(value: object) -> str:
    """As a literal, types and order kept: the same text for the same value, in every process."""
    budget = [_LONGEST]
    try:
        return _encode(value, 0, budget)
    except _TooMuchError:
        return "!more"
    except Exception:
        return "!error"  # changed meanwhile, or made to look like what it is not


def _encode(value: object, depth: int, budget: list[int]) -> str:
    if depth > _DEEPEST:
        raise _TooMuchError
    for kind in type.__dict__["__mro__"].__get__(type(value)):
        # By identity: a metaclass could answer for its classes.
        for known, text_of in _KINDS:
            if kind is known:
                text = text_of(value, depth, budget)
                budget[0] -= len(text) if known in _PLAIN else 2
                if budget[0] < 0:
                    raise _TooMuchError
                return text
    return f"!{_NAME.__get__(type(value))}"


def _whole(value: Any, _: int, __: list[int]) -> str:
    number = int.__add__(value, 0)
    # So many digits take their time, and Python refuses to write more of them.
    return int.__repr__(number) if int.bit_length(number) < 10_000 else int.__format__(number, "#x")


def _text(value: Any, _: int, budget: list[int]) -> str:
    if str.__len__(value) > budget[0]:
        raise _TooMuchError
    return ascii(value if type(value) is str else str.join("", str.__iter__(value)))


def _bytes(value: Any, _: int, budget: list[int]) -> str:
    if bytes.__len__(value) > budget[0]:
        raise _TooMuchError
    return bytes.__repr__(bytes(bytes.__iter__(value)))


def _list(value: Any, depth: int, budget: list[int]) -> str:
    return "[" + ", ".join(_each(list.__iter__(value), depth, budget)) + "]"


def _tuple(value: Any, depth: int, budget: list[int]) -> str:
    items = list(_each(tuple.__iter__(value), depth, budget))
    return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"


def _dict(value: Any, depth: int, budget: list[int]) -> str:
    pairs = dict.items(value)
    return "{" + ", ".join(f"{k}: {v}" for k, v in _pairs(iter(pairs), depth, budget)) + "}"


def _set(iterate: Callable[[Any], Iterator[Any]]) -> Callable[[Any, int, list[int]], str]:
    def encoded(value: Any, depth: int, budget: list[int]) -> str:
        items = sorted(_each(iterate(value), depth, budget))
        return "{" + ", ".join(items) + "}" if items else "set()"

    return encoded


def _each(items: Iterator[Any], depth: int, budget: list[int]) -> Iterator[str]:
    for item in items:
        yield _encode(item, depth + 1, budget)


def _pairs(items: Iterator[Any], depth: int, budget: list[int]) -> Iterator[tuple[str, str]]:
    for key, value in items:
        yield _encode(key, depth + 1, budget), _encode(value, depth + 1, budget)


_KINDS: tuple[tuple[type, Callable[[Any, int, list[int]], str]], ...] = (
    (type(None), lambda *_: "None"),
    (bool, lambda value, *_: "True" if value is True else "False"),
    (int, _whole),
    (float, lambda value, *_: float.__repr__(value)),
    (complex, lambda value, *_: complex.__repr__(value)),
    (str, _text),
    (bytes, _bytes),
    (list, _list),
    (tuple, _tuple),
    (dict, _dict),
    (set, _set(set.__iter__)),
    (frozenset, _set(frozenset.__iter__)),
)
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes})
