"""Where the literals of a file are, exactly as they are written. Pure."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as OneOf

Kind = OneOf["string", "piece", "number", "constant", "name"]
Group = tuple[int, ...]
"""(): the function's body; (i, j): row j of its i-th parametrize."""
EXPECTED, CLOSE, MAYBE, ASSERTED, GIVEN = range(5)
"""How sure it is that a test which passes would fail with another value: from what an assertion
compares with, on its own, to what the code under test is given."""
_WORDY = re.compile(r"\w")
_QUOTED = re.compile(r"(?i)^([rbu]{0,2})('''|\"\"\"|'|\")")


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    path: str
    line: int
    column: int
    text: str
    """As it is written; all of it on this line."""
    kind: Kind
    """`piece`: a line of a string that has several; `name`: of a constant or a class of the module."""
    rank: int = GIVEN
    group: Group = ()
    whole: str = ""
    """Its line."""


class Places:
    """The literals of one file, found by their tokens."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self._lines = text.split("\n")
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        self._strings: dict[tuple[int, int], tokenize.TokenInfo] = {
            t.start: t for t in tokens if t.type == tokenize.STRING
        }

    def of(self, node: ast.Constant, rank: int = GIVEN, group: Group = ()) -> Iterator[Literal]:
        """What can be edited of it: each string that it is made of, or each line of one."""
        start = node.lineno, self._column(node.lineno, node.col_offset)
        end = node.end_lineno or 0, self._column(node.end_lineno or 0, node.end_col_offset or 0)
        if isinstance(node.value, str | bytes):
            for at in sorted(s for s in self._strings if start <= s < end):
                yield from self._string(self._strings[at], rank, group)
            return
        text = self._lines[start[0] - 1][start[1] : end[1]] if start[0] == end[0] else ""
        if not text or node.value is Ellipsis:
            return
        named = node.value is None or isinstance(node.value, bool)
        yield self._made(start, text, "constant" if named else "number", rank, group)

    def name(self, node: ast.Name | ast.Attribute, rank: int, group: Group) -> Iterator[Literal]:
        """One that stands for a value."""
        start = node.lineno, self._column(node.lineno, node.col_offset)
        text = self._lines[start[0] - 1][start[1] :].removesuffix("\r")
        if node.end_lineno == node.lineno:
            text = text[: self._column(node.lineno, node.end_col_offset or 0) - start[1]]
        if all(part.isidentifier() for part in text.split(".")):
            yield self._made(start, text, "name", rank, group)

    def plain(self, root: ast.AST) -> Iterator[Literal]:
        """All that are in a statement, whatever they are for."""
        for node in constants(root):
            yield from self.of(node)

    def _string(self, token: tokenize.TokenInfo, rank: int, group: Group) -> Iterator[Literal]:
        quoted = _QUOTED.match(token.string)
        if quoted is None:
            return
        if token.start[0] == token.end[0]:
            yield self._made(token.start, token.string, "string", rank, group)
            return
        first, last = token.start[0], token.end[0]
        for number in range(first, last + 1):
            line = self._lines[number - 1]
            begin = token.start[1] + len(quoted[0]) if number == first else 0
            stop = token.end[1] - len(quoted[2]) if number == last else len(line)
            text = line[begin:stop].rstrip("\\\r")
            bare = text.strip()
            if _WORDY.search(bare):
                at = begin + text.index(bare)
                yield self._made((number, at), bare, "piece", rank, group)

    def _made(self, at: tuple[int, int], text: str, kind: Kind, rank: int, group: Group) -> Literal:
        line, column = at
        return Literal(
            path=self.path,
            line=line,
            column=column,
            text=text,
            kind=kind,
            rank=rank,
            group=group,
            whole=self._lines[line - 1],
        )

    def _column(self, line: int, offset: int) -> int:
        """Of bytes, as ast counts them, in characters."""
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        return len(text.encode("utf-8")[:offset].decode("utf-8", "ignore"))


def is_error(name: str) -> bool:
    """By its name, an exception's class."""
    return name.endswith(("Error", "Exception", "Warning"))


def constants(root: ast.AST) -> Iterator[ast.Constant]:
    """In a statement or an expression; no docstrings, and nothing of an f-string."""
    docstring = _docstring(root)
    for child in ast.iter_child_nodes(root):
        if child is docstring or isinstance(child, ast.JoinedStr):
            continue
        yield from constants(child)
    if isinstance(root, ast.Constant):
        yield root


def _docstring(node: ast.AST) -> ast.AST | None:
    body = getattr(node, "body", None)
    first = body[0] if isinstance(body, list) and body else None
    alone = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return first if alone else None
