"""Which literals of a test are what it expects, and which are what it gives. Pure."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sandbox.audit.canary.places import (
    ASSERTED,
    CLOSE,
    EXPECTED,
    GIVEN,
    MAYBE,
    Group,
    Literal,
    Places,
    constants,
    is_error,
)

Def = ast.FunctionDef | ast.AsyncFunctionDef
_EQUAL = {
    *("assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual"),
    *("assertSetEqual", "assertSequenceEqual", "assertCountEqual", "assertMultiLineEqual"),
    *("assert_equal", "assertAlmostEqual", "eq_"),
}
_RAISED = {
    *("raises", "warns", "assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex"),
    "assert_raises",
}
_LITERAL = (
    *(ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.UnaryOp, ast.BinOp),
    *(ast.operator, ast.unaryop, ast.expr_context),
)


@dataclass(frozen=True, slots=True)
class Helper:
    """A function of the file that is no test, and what it does with its arguments."""

    arguments: tuple[str, ...]
    names: "_Names"

    @classmethod
    def of(cls, node: Def) -> "Helper":
        known = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        return cls(tuple(n for n in known if n not in {"self", "cls"}), _Names.of(node))


@dataclass(frozen=True, slots=True)
class Around:
    """What a file has beside its tests."""

    helpers: Mapping[str, Helper]
    """By their names, wherever they are."""
    values: frozenset[str]
    """Names of the module that stand for one value: they are written as constants or classes are."""

    @classmethod
    def of(cls, tree: ast.Module) -> "Around":
        made = (n for n in ast.walk(tree) if isinstance(n, Def) and not n.name.startswith("test_"))
        bound = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        bound |= {
            t.id for n in tree.body if isinstance(n, ast.Assign) for t in _names_in(n.targets)
        }
        bound |= {n.name for n in tree.body if isinstance(n, ast.ClassDef)}
        return cls(
            helpers={n.name: Helper.of(n) for n in made},
            values=frozenset(n for n in bound if n[:1].isupper()),
        )


def _names_in(targets: Sequence[ast.expr]) -> list[ast.Name]:
    return [t for t in targets if isinstance(t, ast.Name)]


def ranked(
    places: Places,
    node: Def,
    known: Around,
    *,
    mark: ast.expr | None = None,
    rows: Sequence[ast.expr] = (),
    index: int = 0,
) -> Iterator[Literal]:
    """The literals of a test's body; with `mark`, those of the rows of that decorator."""
    reader = _Reader(places, node, known)
    if mark is None:
        yield from reader.body(node)
        return
    columns = _columns(mark)
    for number, row in enumerate(rows):
        yield from reader.row(row, columns, (index, number))


class _Reader:
    def __init__(self, places: Places, node: Def, known: Around) -> None:
        self._places = places
        self._known = known
        self._names = _Names.of(node)

    def body(self, node: ast.AST) -> Iterator[Literal]:
        statements = getattr(node, "body", [])
        for number, child in enumerate(statements):
            if number == 0 and isinstance(node, Def) and _is_text(child):
                continue
            yield from self._statement(child)

    def row(self, row: ast.expr, columns: Sequence[str], group: Group) -> Iterator[Literal]:
        values = row
        if isinstance(row, ast.Call):  # pytest.param(…, id=…, marks=…)
            cells = row.args
        elif len(columns) > 1 and isinstance(values, ast.Tuple | ast.List):
            cells = values.elts
        else:
            cells = [row]
        for number, cell in enumerate(cells):
            column = columns[number] if number < len(columns) else ""
            yield from self._all(cell, self._of_name(column, cell), group)

    def _statement(self, node: ast.stmt) -> Iterator[Literal]:
        if isinstance(node, ast.Assert):
            yield from self._asserted_expression(node.test)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from self._call(node.value)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield from self._assigned(node.targets[0], node.value)
        elif isinstance(node, ast.For):
            yield from self._loop(node)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                yield from self._expression(item.context_expr)
            yield from self.body(node)
        elif isinstance(node, ast.If | ast.While | ast.Try | Def | ast.ClassDef):
            yield from self._nested(node)
        else:
            yield from self._all(node, GIVEN)

    def _nested(self, node: ast.stmt) -> Iterator[Literal]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                if not _is_text(child):
                    yield from self._statement(child)
            elif isinstance(child, ast.ExceptHandler):
                for inner in child.body:
                    yield from self._statement(inner)
            else:
                yield from self._all(child, GIVEN)

    def _loop(self, node: ast.For) -> Iterator[Literal]:
        target = node.target
        names = [getattr(t, "id", "") for t in getattr(target, "elts", [target])]
        rows = node.iter.elts if isinstance(node.iter, ast.List | ast.Tuple) else None
        if rows is None:
            yield from self._all(node.iter, MAYBE)
        for row in rows or ():
            yield from self.row(row, names, ())
        yield from self.body(node)

    def _assigned(self, target: ast.expr, value: ast.expr) -> Iterator[Literal]:
        if isinstance(target, ast.Name):
            yield from self._all(value, self._of_name(target.id, value))
        else:
            yield from self._all(value, GIVEN)

    def _of_name(self, name: str, value: ast.expr, names: "_Names | None" = None) -> int:
        names = names or self._names
        if name in names.expected and self._literal(value):
            return EXPECTED
        if name in names.compared:
            return CLOSE if self._literal(value) else MAYBE
        return ASSERTED if name in names.asserted else GIVEN

    def _literal(self, node: ast.expr) -> bool:
        return _is_literal(node, self._known.values)

    def _asserted_expression(self, test: ast.expr) -> Iterator[Literal]:
        if isinstance(test, ast.BoolOp):
            for value in test.values:
                yield from self._asserted_expression(value)
        elif isinstance(test, ast.Compare):
            yield from self._comparison(test)
        else:
            yield from self._all(test, ASSERTED)

    def _comparison(self, test: ast.Compare) -> Iterator[Literal]:
        sides = [test.left, *test.comparators]
        equal = all(isinstance(op, ast.Eq | ast.Is) for op in test.ops)
        no = any(isinstance(op, ast.NotEq | ast.NotIn | ast.IsNot) for op in test.ops)
        pure = [self._literal(side) for side in sides]
        for number, side in enumerate(sides):
            if pure[number]:
                rank = EXPECTED if equal else ASSERTED if no else CLOSE
            elif number and not any(pure):
                rank = ASSERTED if no else MAYBE
            else:
                rank = GIVEN
            yield from self._all(side, rank)

    def _call(self, call: ast.Call) -> Iterator[Literal]:
        name = _called(call)
        if helper := self._known.helpers.get(name):
            yield from self._helped(call, helper)
            return
        if not name.startswith(("assert", "eq_")):
            yield from self._expression(call)
            return
        yield from self._errors(call)
        yield from self._all(call.func, GIVEN)
        for number, argument in enumerate(call.args):
            if self._literal(argument):
                rank = EXPECTED if name in _EQUAL else CLOSE
            else:
                rank = MAYBE if number and name in _EQUAL else GIVEN
            yield from self._all(argument, rank)

    def _helped(self, call: ast.Call, helper: Helper) -> Iterator[Literal]:
        """What the helper compares with is expected here."""
        pairs = [*zip(helper.arguments, call.args, strict=False)]
        pairs += [(k.arg, k.value) for k in call.keywords if k.arg]
        for name, argument in pairs:
            yield from self._all(argument, self._of_name(name, argument, helper.names))

    def _expression(self, node: ast.expr, rank: int = GIVEN) -> Iterator[Literal]:
        """`match=` of a call says what is expected; its other arguments what is given."""
        if not isinstance(node, ast.Call):
            yield from self._all(node, rank)
            return
        yield from self._all(node.func, GIVEN)
        yield from self._errors(node)
        for argument in node.args:
            yield from self._all(argument, rank)
        for keyword in node.keywords:
            yield from self._all(keyword.value, EXPECTED if keyword.arg == "match" else GIVEN)

    def _errors(self, call: ast.Call) -> Iterator[Literal]:
        """Classes of which one is to be raised."""
        if _called(call) in _RAISED and call.args:
            for name in ast.walk(call.args[0]):
                if isinstance(name, ast.Name | ast.Attribute) and is_error(_name(name)):
                    yield from self._places.name(name, EXPECTED, ())

    def _all(self, node: ast.AST, rank: int, group: Group = ()) -> Iterator[Literal]:
        if isinstance(node, ast.JoinedStr):
            return
        for constant in constants(node):
            yield from self._places.of(constant, rank, group)
        if rank <= ASSERTED:
            for name in ast.walk(node):
                if isinstance(name, ast.Name) and name.id in self._known.values:
                    yield from self._places.name(name, rank, group)


@dataclass(frozen=True, slots=True)
class _Names:
    """What the names of a test are used for."""

    expected: frozenset[str]
    """Compared with `==`, alone on their side, and used for nothing else."""
    compared: frozenset[str]
    asserted: frozenset[str]

    @classmethod
    def of(cls, node: ast.AST) -> "_Names":
        equal: list[ast.expr] = []
        compared: list[ast.expr] = []
        asserted: set[str] = set()
        for found in ast.walk(node):
            if isinstance(found, ast.Assert):
                asserted |= _named(found.test)
                for inner in ast.walk(found.test):
                    if isinstance(inner, ast.Compare):
                        sides = [inner.left, *inner.comparators]
                        compared += sides
                        equal += sides if all(isinstance(o, ast.Eq) for o in inner.ops) else []
            elif isinstance(found, ast.Call):
                name = _called(found)
                if name.startswith(("assert", "eq_")):
                    compared += found.args
                    equal += found.args if name in _EQUAL else []
                    asserted |= _named(found)
                equal += [k.value for k in found.keywords if k.arg == "match"]
        alone = [e for e in equal if isinstance(e, ast.Name)]
        uses = Counter(
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
        )
        counted = Counter(e.id for e in alone)
        return cls(
            expected=frozenset(n for n, count in counted.items() if uses[n] == count),
            compared=frozenset(e.id for e in (*compared, *alone) if isinstance(e, ast.Name)),
            asserted=frozenset(asserted),
        )


def _named(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _called(call: ast.Call) -> str:
    return _name(call.func)


def _name(node: ast.expr) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _columns(mark: ast.expr) -> list[str]:
    given = {k.arg: k.value for k in mark.keywords} if isinstance(mark, ast.Call) else {}
    args = mark.args if isinstance(mark, ast.Call) else []
    names = args[0] if args else given.get("argnames")
    if isinstance(names, ast.Constant) and isinstance(names.value, str):
        return [n.strip() for n in names.value.split(",") if n.strip()]
    elements = getattr(names, "elts", [])
    return [str(getattr(e, "value", "")) for e in elements]


def _is_literal(node: ast.AST, values: frozenset[str]) -> bool:
    """Constants, names that stand for one, and what is made of nothing else."""
    return all(
        isinstance(n, _LITERAL) or (isinstance(n, ast.Name) and n.id in values)
        for n in ast.walk(node)
    )


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
