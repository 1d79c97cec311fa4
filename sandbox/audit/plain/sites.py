"""Assertions of hidden tests that compare with a literal, found in their source. Pure.

Only those are taken whose other side can be observed in their place, once, without a change to what
is evaluated or in which order, and that say more than true or false.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sandbox.formats.digest import Entry
from sandbox.grading.observed import encoded
from sandbox.model.layers import Site
from sandbox.model.verdict import function_of

_METHODS = {"assertEqual", "assertEquals"}
_NOT_AGAIN = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_IS = (type(None), bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A site, and the test that it is in: `path::Class::function`, as checks begin."""

    site: Site
    test: str


def find_sites(tests: Sequence[Entry]) -> list[Found]:
    found: list[Found] = []
    for entry in tests:
        if entry.kind == "file" and entry.path.endswith(".py"):
            found += _of_file(entry, len(found))
    return found


def _of_file(entry: Entry, first: int) -> Iterator[Found]:
    try:
        text = entry.data.decode("utf-8")
        # A lone carriage return, or a form feed, counts as a line's end for some and not for others.
        if "\r" in text or "\f" in text:
            return
        tree = ast.parse(text)
    except (ValueError, SyntaxError, RecursionError):
        return
    lines = text.split("\n")
    number = first
    for test, function in _functions(tree.body, entry.path):
        for span in _spans(function):
            if site := _site(f"o{number}", entry.path, lines, span):
                yield Found(site=site, test=test)
                number += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Statements, one after another, that only compare what is observed with a literal."""

    first: ast.stmt
    last: ast.stmt
    observed: ast.expr
    literal: ast.expr


def _spans(function: ast.FunctionDef) -> Iterator[_Span]:
    names = Counter(n.id for n in ast.walk(function) if isinstance(n, ast.Name))
    for body in _bodies(function):
        for place, statement in enumerate(body):
            if span := _span(statement, body[max(0, place - 2) : place], names):
                yield span


def _bodies(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for part in ("body", "orelse", "finalbody"):
            body = getattr(node, part, None)
            if isinstance(body, list) and body:
                yield body


def _span(
    statement: ast.stmt, before: Sequence[ast.stmt], names: Mapping[str, int]
) -> _Span | None:
    """before: at most two statements, in which a side may have got a name that is used here only."""
    sides = _compared(statement)
    if sides is None:
        return None
    if told := _sides(*sides):
        return _Span(first=statement, last=statement, observed=told[0], literal=told[1])
    asked = {side.id for side in sides if isinstance(side, ast.Name) and names[side.id] == 2}
    named: dict[str, ast.expr] = {}
    first = statement
    for one in reversed(before):
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in asked:
                named[name], first = value, one
            case _:
                break
    left, right = (named.get(s.id, s) if isinstance(s, ast.Name) else s for s in sides)
    if told := _sides(left, right):
        return _Span(first=first, last=statement, observed=told[0], literal=told[1])
    return None


def _functions(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}::{node.name}")
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            yield f"{prefix}::{node.name}", node


def _compared(statement: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            return left, right
        case ast.Assert(
            test=ast.Compare(
                left=left, ops=[ast.Is()], comparators=[ast.Constant(value=v) as right]
            )
        ) if isinstance(v, _IS):
            return left, right
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id="self"), attr=method),
                args=[left, right, *_],
                keywords=[],
            )
        ) if method in _METHODS:
            return left, right
        case _:
            return None


def _sides(left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """What is observed, and the literal."""
    literal = [_value(side) is not None for side in (left, right)]
    if literal == [False, True]:
        return left, right
    return (right, left) if literal == [True, False] else None


def _value(node: ast.expr) -> str | None:
    """As it is encoded; None for what is no literal."""
    try:
        return encoded(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _site(key: str, path: str, lines: Sequence[str], span: _Span) -> Site | None:
    first, observed = span.first, span.observed
    expected = _value(span.literal)
    if expected is None or any(isinstance(n, _NOT_AGAIN) for n in ast.walk(observed)):
        return None
    end_line, end_offset = span.last.end_lineno or 0, span.last.end_col_offset or 0
    tail = lines[end_line - 1].encode()[end_offset:].decode().strip()
    if tail and not tail.startswith("#"):
        return None  # more than one statement on the line
    source = _source(lines, observed)
    if source is None:
        return None
    return Site(
        key=key,
        path=path,
        line=first.lineno,
        column=_characters(lines[first.lineno - 1], first.col_offset),
        end_line=end_line,
        end_column=_characters(lines[end_line - 1], end_offset),
        source=source,
        expected=expected,
    )


def _source(lines: Sequence[str], node: ast.expr) -> str | None:
    """On one line: as it is written, if it is written so."""
    if node.lineno == node.end_lineno:
        text = lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()
    else:
        text = ast.unparse(node)
    try:
        same = ast.dump(ast.parse(text, mode="eval").body) == ast.dump(node)
    except SyntaxError:
        return None
    return text if same and "\n" not in text else None


def _characters(line: str, offset: int) -> int:
    """The parser counts bytes."""
    return len(line.encode()[:offset].decode())


def homes_of(check: str, bases: Mapping[str, Sequence[str]]) -> list[str]:
    """Where the statements of a check may stand: in its class, or in one that this is made from."""
    name = function_of(check)
    *home, function = name.split("::")
    if len(home) < 2:
        return [name]
    kinds = ["::".join(home)]
    for kind in kinds:  # grows meanwhile
        kinds += [base for base in bases.get(kind, ()) if base not in kinds]
    return [f"{kind}::{function}" for kind in kinds]


def class_bases(tests: Sequence[Entry]) -> dict[str, list[str]]:
    """`path::Class` → the classes of the same file that it is made from, by name."""
    found: dict[str, list[str]] = {}
    for entry in tests:
        if entry.kind != "file" or not entry.path.endswith(".py"):
            continue
        try:
            tree = ast.parse(entry.data)
        except (ValueError, SyntaxError, RecursionError):
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                bases = [b.id for b in node.bases if isinstance(b, ast.Name)]
                found[f"{entry.path}::{node.name}"] = [f"{entry.path}::{b}" for b in bases]
    return found
