"""Wrong solutions, made of the reference solution by changing one thing in it. Pure."""

import ast
import copy
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sandbox.formats.digest import Entry

_TURNED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def mutants(base: Sequence[Entry], solution: Sequence[Entry], count: int) -> list[list[Entry]]:
    """The solution with one site changed, `count` times; the same ones every time.

    Half of them in files that the solution changes, if there are so many.
    """
    before = {e.path: e.data for e in base}
    sites = [(e, n) for e in solution if e.path.endswith(".py") for n in range(_count(e))]
    ordered = sorted(sites, key=lambda s: _seed(s[0].path, s[1]))
    near = [s for s in ordered if before.get(s[0].path) != s[0].data]
    far = [s for s in ordered if s not in near]
    chosen = near[: count - min(len(far), count // 2)]
    chosen += far[: count - len(chosen)]
    return [
        [replace(e, data=_mutated(e, site)) if e is entry else e for e in solution]
        for entry, site in chosen
    ]


def _count(entry: Entry) -> int:
    try:
        tree = ast.parse(entry.data)
    except (SyntaxError, ValueError):
        return 0
    return sum(1 for _ in _sites(tree))


def _mutated(entry: Entry, number: int) -> bytes:
    tree = ast.parse(entry.data)
    for index, node in enumerate(_sites(tree)):
        if index == number:
            _change(node)
            break
    return ast.unparse(ast.fix_missing_locations(tree)).encode() + b"\n"


def _sites(tree: ast.Module) -> Iterator[ast.AST]:
    """In functions only: what is wrong there does not keep a module from being loaded."""
    for function in ast.walk(tree):
        if isinstance(function, _FUNCTION):
            for statement in function.body:
                yield from (n for n in ast.walk(statement) if _can_change(n))


def _can_change(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in _TURNED
    if isinstance(node, ast.Return):
        return node.value is not None
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    return isinstance(node, ast.BoolOp | ast.If)


def _change(node: ast.AST) -> None:
    if isinstance(node, ast.Compare):
        node.ops[0] = _TURNED[type(node.ops[0])]()
    elif isinstance(node, ast.Return):
        node.value = ast.Constant(None)
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else int(node.value) + 1  # type: ignore[arg-type]
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.If):
        node.test = ast.UnaryOp(ast.Not(), copy.deepcopy(node.test))


def _seed(path: str, number: int) -> str:
    return hashlib.sha256(f"{path}\0{number}".encode()).hexdigest()
