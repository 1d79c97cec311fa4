"""A hidden test file, read: its test functions, and the literals that could be edited. Pure."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sandbox.audit.canary.places import Literal, Places
from sandbox.audit.canary.ranks import Around, ranked
from sandbox.formats.digest import Entry
from sandbox.model.verdict import function_of

Holder = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
Def = ast.FunctionDef | ast.AsyncFunctionDef
_ODD_ENDS = re.compile(r"\r(?!\n)")
"""Python ends a line there; an edit's lines end with a line feed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A test function, or something that several of them share."""

    path: str
    name: str
    """Within the file, e.g. `TestA::test_b`."""
    literals: tuple[Literal, ...]
    shape: tuple[int, ...] = ()
    """How many rows each `parametrize` has, the outermost loop first."""
    names: frozenset[str] = frozenset()
    """What it refers to."""

    @property
    def id(self) -> str:
        return f"{self.path}::{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFile:
    path: str
    functions: dict[str, Function]
    """Name within the file → a function that may be a test."""
    shared: dict[str, Function]
    """Name of a module → what it stands for: a table, a helper, a fixture."""
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Class → the names of those it inherits from."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class _Known:
    """Of the file around a test."""

    tables: dict[str, ast.expr]
    around: Around


def read_files(entries: Sequence[Entry]) -> dict[str, TestFile]:
    """Each Python file that can be read."""
    found = (_read(e) for e in entries if e.kind != "link" and e.path.endswith(".py"))
    return {f.path: f for f in found if f}


def resolve(files: dict[str, TestFile], check: str) -> Function | None:
    """The function that a check runs: `path::Class::name[row]`; inherited ones included."""
    path, *names = function_of(check).split("::")
    if path not in files or not names:
        return None
    *classes, name = names
    if not classes:
        return files[path].functions.get(name)
    for place, owner in _lineage(files, path, "::".join(classes), set()):
        if found := files[place].functions.get(f"{owner}::{name}"):
            return found
    return None


def _lineage(
    files: dict[str, TestFile], path: str, owner: str, seen: set[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    if (path, owner) in seen:
        return
    seen.add((path, owner))
    yield path, owner
    for base in files[path].bases.get(owner, ()):
        places = (
            [path] if base in files[path].bases else [p for p in files if base in files[p].bases]
        )
        for place in places:
            yield from _lineage(files, place, base, seen)


def _read(entry: Entry) -> TestFile | None:
    try:
        text = entry.data.decode("utf-8")
        tree = ast.parse(text)
        places = Places(entry.path, text)
    except (SyntaxError, ValueError):
        return None
    if _ODD_ENDS.search(text):
        return None
    made = TestFile(path=entry.path, functions={}, shared={})
    known = _Known(_tables(tree), Around.of(tree))
    for node in _statements(tree):
        if isinstance(node, Def):
            made.functions[node.name] = _function(places, node.name, node, known)
            made.shared[node.name] = made.functions[node.name]
        elif isinstance(node, ast.ClassDef):
            _class(made, places, node, node.name, known)
            made.shared[node.name] = _shared(places, node.name, node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for name in _targets(node):
                made.shared[name] = _shared(places, name, node)
    return made


def _class(made: TestFile, places: Places, owner: ast.ClassDef, name: str, known: _Known) -> None:
    made.bases[name] = tuple(_last_name(b) for b in owner.bases)
    outer = [d for d in owner.decorator_list if _called(d) == "parametrize"]
    for node in owner.body:
        full = f"{name}::{getattr(node, 'name', '')}"
        if isinstance(node, Def):
            made.functions[full] = _function(places, full, node, known, outer)
        elif isinstance(node, ast.ClassDef):
            _class(made, places, node, full, known)


def _function(
    places: Places,
    name: str,
    node: Def,
    known: _Known,
    outer: Sequence[ast.expr] = (),
) -> Function:
    own = [d for d in node.decorator_list if _called(d) == "parametrize"]
    shape, clear = [], True
    literals = list(ranked(places, node, known.around))
    # The one nearest to the function is the outermost loop.
    for index, mark in enumerate([*reversed(own), *reversed(outer)]):
        rows = _rows(mark, known.tables)
        clear = clear and rows is not None
        shape.append(len(rows or ()))
        if rows and mark in own:
            literals += ranked(places, node, known.around, mark=mark, rows=rows, index=index)
    return Function(
        path=places.path,
        name=name,
        literals=tuple(literals),
        shape=tuple(shape) if clear else (0,),
        names=_names(node),
    )


def _shared(places: Places, name: str, node: Holder) -> Function:
    return Function(
        path=places.path, name=name, literals=tuple(places.plain(node)), names=_names(node)
    )


def _rows(mark: ast.expr, tables: dict[str, ast.expr]) -> list[ast.expr] | None:
    if not isinstance(mark, ast.Call):
        return None
    given = {k.arg: k.value for k in mark.keywords}
    values = mark.args[1] if len(mark.args) > 1 else given.get("argvalues")
    if isinstance(values, ast.Name):
        values = tables.get(values.id)
    return list(values.elts) if isinstance(values, ast.List | ast.Tuple | ast.Set) else None


def _tables(tree: ast.Module) -> dict[str, ast.expr]:
    """Module-level lists that one function alone refers to: its rows, written elsewhere."""
    used: dict[str, int] = {}
    for node in _statements(tree):
        for name in _names(node):
            used[name] = used.get(name, 0) + 1
    made: dict[str, ast.expr] = {}
    for node in _statements(tree):
        if isinstance(node, ast.Assign):
            # Once where it is assigned, once where it is used.
            made.update({n: node.value for n in _targets(node) if used.get(n, 0) == 2})
    return made


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Of the module, those in its conditions included."""
    todo = list(tree.body)
    while todo:
        node = todo.pop(0)
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            todo += [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)]


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [t.id for t in targets if isinstance(t, ast.Name)]


def _names(node: ast.AST) -> frozenset[str]:
    """Arguments included: they name fixtures."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    found |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    return frozenset(found | {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)})


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _called(node: ast.expr) -> str:
    return _last_name(node.func) if isinstance(node, ast.Call) else _last_name(node)
