"""What may stand in a literal's place: as it is written, in words that the suite has. Pure.

Nothing is drawn: a choice hangs on the literal's place and text alone, so that the same tests get
the same canaries.
"""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sandbox.audit.canary.places import Literal, is_error

_PARTS = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|[0-7]{1,3}|.)"
    r"|%\([^)]*\)[a-z]|\{[^{}\s]*\}|(?P<word>[A-Za-z]+)|(?P<digits>[0-9]+)|(?P<mark>[-_.,;:/+*=<>|])"
)
"""Escapes and places of a format are left as they are."""
_QUOTED = re.compile(r"(?is)^([rbu]{0,2})('''|\"\"\"|'|\")(.*)\2$")
_INTEGER = re.compile(r"[1-9][0-9]*|0")
_LAST_DIGIT = re.compile(r"[0-9](?=[^0-9]*$)")
_ERRORS = ("AttributeError", "IndexError", "KeyError", "TypeError", "ValueError")
_SIMILAR = 0.34
_MOST_CHARACTERS = 200
_STEPS, _FIRST = 9, 2
"""How far a number may be moved, and how many such come before others of the suite."""
_EACH, _MANY = 3, 8
"""Of one word, and of one kind, at most."""
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a suite's literals are made of."""

    words: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    """Shape and length → words, sorted."""
    digits: dict[int, list[str]] = field(default_factory=dict)
    """Length → runs of digits, in its strings or alone."""
    numbers: dict[int, list[str]] = field(default_factory=dict)
    """Length → integers."""
    strings: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Prefix and quotes → literals, by length."""
    marks: frozenset[str] = frozenset()
    constants: frozenset[str] = frozenset()
    names: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """File and shape → names of values that it compares."""


def vocabulary(literals: Iterable[Literal]) -> Vocabulary:
    words: set[str] = set()
    digits: set[str] = set()
    numbers: set[str] = set()
    strings: set[str] = set()
    marks: set[str] = set()
    constants: set[str] = set()
    names: dict[tuple[str, str], set[str]] = {}
    for literal in literals:
        if literal.kind == "constant":
            constants.add(literal.text)
        elif literal.kind == "name":
            names.setdefault((literal.path, _shape(literal.text)), set()).add(literal.text)
        elif literal.kind == "number":
            numbers |= {literal.text} if _INTEGER.fullmatch(literal.text) else set()
        else:
            strings |= {literal.text} if literal.kind == "string" else set()
            for part in _PARTS.finditer(_inside(literal)[1]):
                words |= {part["word"]} if part["word"] else set()
                digits |= {part["digits"]} if part["digits"] else set()
                marks |= {part["mark"]} if part["mark"] else set()
    return Vocabulary(
        words=_grouped(words, lambda w: (_shape(w), len(w))),
        digits=_grouped(digits | numbers, len),
        numbers=_grouped(numbers, len),
        strings=_by_length(strings),
        marks=frozenset(marks),
        constants=frozenset(constants),
        names={key: sorted(found) for key, found in names.items()},
    )


def proposals(literal: Literal, known: Vocabulary) -> list[str]:
    """Different ones, the most inconspicuous first."""
    if literal.kind == "constant":
        found = _constants(literal.text, known)
    elif literal.kind == "name":
        found = _names(literal, known)
    elif literal.kind == "number":
        found = _numbers(literal, known)
    else:
        found = _strings(literal, known)
    return [text for text in dict.fromkeys(found) if text != literal.text and "\n" not in text]


def _names(literal: Literal, known: Vocabulary) -> Iterator[str]:
    """In place of an error another one, which may be Python's own."""
    error = is_error(literal.text)
    same = known.names.get((literal.path, _shape(literal.text)), [])
    others = [n for n in same if n != literal.text and is_error(n) == error]
    yield from _some(others, _seed(literal), 2)
    if error:
        own = [n for n in _ERRORS if n != literal.text and n not in others]
        yield from _some(own, _seed(literal, "own"), len(own))


def _constants(text: str, known: Vocabulary) -> Iterator[str]:
    others = {"True": ["False"], "False": ["True"], "None": ["False", "True"]}
    yield from (other for other in others.get(text, ()) if other in known.constants)


def _numbers(literal: Literal, known: Vocabulary) -> Iterator[str]:
    text, seed = literal.text, _seed(literal, "number")
    if _INTEGER.fullmatch(text):
        near = [n for n in _near(int(text)) if len(n) == len(text)]
        yield from _some(near, seed, _FIRST)
        yield from _some(known.numbers.get(len(text), []), seed, _MANY)
        yield from _some(near, seed, len(near))
    else:
        mantissa = re.split(r"[eEjJ]", text)[0] if not text.startswith(("0x", "0X")) else text
        last = _LAST_DIGIT.search(mantissa)
        if last:
            digit = str((int(last[0]) + 1 + seed % 8) % 10)
            if text[:2] in {"0b", "0o"}:
                digit = "1" if last[0] == "0" else "0"
            yield text[: last.start()] + digit + text[last.end() :]


def _near(value: int) -> list[str]:
    """Not the next ones alone: if all were odd steps away, a sum's parity would tell tests from canaries."""
    return [str(n) for n in range(max(value - _STEPS, 0), value + _STEPS + 1) if n != value]


def _strings(literal: Literal, known: Vocabulary) -> Iterator[str]:
    """In turns, so that few tries are of different kinds."""
    head, body, tail = _inside(literal)
    parts = [p for p in _PARTS.finditer(body) if p.lastgroup and p.end() <= _MOST_CHARACTERS]
    if literal.text[:2].lower().startswith(("r", "br", "rb")):
        parts = [p for p in parts if not body[: p.start()].endswith("\\")]
    ways = [
        _swapped_words(literal, body, parts, known),
        _swapped_digits(literal, body, parts, known),
        _whole(literal, known),
        _swapped_marks(literal, body, parts, known),
    ]
    for number, found in _in_turns(ways):
        yield found if number == 2 else head + found + tail


def _in_turns(ways: Sequence[Iterator[str]]) -> Iterator[tuple[int, str]]:
    left = dict(enumerate(ways))
    while left:
        for number, way in list(left.items()):
            found = next(way, None)
            if found is None:
                del left[number]
            else:
                yield number, found


def _swapped_words(
    literal: Literal, body: str, parts: Sequence[re.Match[str]], known: Vocabulary
) -> Iterator[str]:
    words = [p for p in parts if p["word"]]
    # Longer ones first: they have more to say.
    words.sort(key=lambda p: (-min(len(p["word"]), 4), _seed(literal, p.start())))
    found = [(part, _words_like(literal, body, part, known)) for part in words]
    for number in range(_EACH):
        for part, others in found:
            if number < len(others):
                yield body[: part.start()] + others[number] + body[part.end() :]


def _words_like(
    literal: Literal, body: str, part: re.Match[str], known: Vocabulary
) -> Sequence[str]:
    word, shape = part["word"], _shape(part["word"])
    for length in (len(word), len(word) + 1, len(word) - 1):
        others = [w for w in known.words.get((shape, length), []) if w != word]
        if fresh := [w for w in others if w not in body] or others:
            return _some(fresh, _seed(literal, part.start(), length), min(_EACH, len(fresh)))
    return ()


def _swapped_digits(
    literal: Literal, body: str, parts: Sequence[re.Match[str]], known: Vocabulary
) -> Iterator[str]:
    digits = [p for p in parts if p["digits"]]
    for part in sorted(digits, key=lambda p: _seed(literal, p.start())):
        run = part["digits"]
        others = [d for d in known.digits.get(len(run), []) if d != run]
        seed = _seed(literal, part.start(), "digits")
        for chosen in _some(others, seed, 1) or [str((int(run) + 1) % 10)] * (len(run) == 1):
            yield body[: part.start()] + chosen + body[part.end() :]


def _whole(literal: Literal, known: Vocabulary) -> Iterator[str]:
    """Another literal of the suite, about as long."""
    quoted = _QUOTED.match(literal.text)
    if literal.kind != "string" or quoted is None:
        return
    same = known.strings.get((quoted[1], quoted[2]), [])
    size = len(literal.text)
    slack = max(2, int(size * _SIMILAR))
    low = bisect_left(same, size - slack, key=len)
    high = bisect_right(same, size + slack, key=len)
    others = [s for s in same[low:high] if s != literal.text]
    others = others or [s for s in same if s != literal.text]
    yield from _some(others, _seed(literal, "whole"), _MANY)


def _swapped_marks(
    literal: Literal, body: str, parts: Sequence[re.Match[str]], known: Vocabulary
) -> Iterator[str]:
    marks = [p for p in parts if p["mark"]]
    for part in sorted(marks, key=lambda p: _seed(literal, p.start()))[:4]:
        others = sorted(known.marks - {part["mark"]})
        for chosen in _some(others, _seed(literal, part.start(), "mark"), 1):
            yield body[: part.start()] + chosen + body[part.end() :]


def _inside(literal: Literal) -> tuple[str, str, str]:
    """What stands before, within and behind the quotes."""
    quoted = _QUOTED.match(literal.text) if literal.kind == "string" else None
    if quoted is None:
        return "", literal.text, ""
    start, end = quoted.span(3)
    return literal.text[:start], quoted[3], literal.text[end:]


def _shape(word: str) -> str:
    if word.islower():
        return "lower"
    if word.isupper():
        return "upper"
    return "title" if word[:1].isupper() else "mixed"


def _some(choice: Sequence[str], seed: int, count: int) -> list[str]:
    """Different ones of them, from a place that the seed names."""
    return [choice[(seed + i * 7919) % len(choice)] for i in range(count)] if choice else []


def _seed(literal: Literal, *more: object) -> int:
    about = repr((literal.path, literal.line, literal.column, literal.text, more))
    digest = hashlib.sha256(about.encode("utf-8", "backslashreplace")).digest()
    return int.from_bytes(digest[:6], "big")


def _grouped(found: set[str], key: Callable[[str], K]) -> dict[K, list[str]]:
    made: dict[K, list[str]] = {}
    for text in sorted(found):
        made.setdefault(key(text), []).append(text)
    return made


def _by_length(strings: set[str]) -> dict[tuple[str, str], list[str]]:
    made: dict[tuple[str, str], list[str]] = {}
    for text in sorted(strings, key=lambda s: (len(s), s)):
        if quoted := _QUOTED.match(text):
            made.setdefault((quoted[1], quoted[2]), []).append(text)
    return made
