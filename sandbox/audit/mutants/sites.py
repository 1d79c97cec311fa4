"""One small change on a line that the reference solution adds: each should fail a test. Pure."""

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.audit.source.edits import Edit, Places, edited
from sandbox.audit.source.trees import Files, Source, parsed, text_of, with_text

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip
_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    id: str
    """By content and not by number of line: it stays when lines above it come and go."""
    path: str
    line: int
    kind: str
    old: str
    new: str
    files: Files

    @property
    def said(self) -> str:
        return f"{self.path}:{self.line}: `{_short(self.old)}` as `{_short(self.new)}`"


def mutants(source: Source, most: int | None = None) -> tuple[Mutant, ...]:
    """All of them, or as many as `most`, drawn by what they are: the same ones each time."""
    sites = {s.id: s for path in source.modules for s in _sites(source, path)}
    drawn = sorted(sites.values(), key=lambda s: hashlib.sha256(s.id.encode()).digest())
    found: list[Mutant] = []
    for site in drawn:
        if most is not None and len(found) >= most:
            break
        if made := _mutant(source, site):
            found.append(made)
    return tuple(sorted(found, key=lambda m: (m.path, m.line, m.id)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    id: str
    path: str
    line: int
    kind: str
    edit: Edit
    old: str


def _sites(source: Source, path: str) -> Iterator[_Site]:
    entry = source.solved[path]
    tree, text = parsed(entry), text_of(entry)
    if tree is None or "\r" in text:
        return
    places, added = Places(text), source.added_lines(path)
    seen: Counter[str] = Counter()
    for node in sorted(_eligible(tree), key=lambda n: (n.lineno, n.col_offset)):
        if node.lineno not in added:
            continue
        start, end = places.span(node)
        line = places.line(node.lineno).strip()
        for kind, new in _changed(node):
            told = "\0".join([path, kind, line, text[start:end], new])
            seen[told] += 1
            digest = hashlib.sha256(f"{told}\0{seen[told]}".encode()).hexdigest()
            yield _Site(
                id=f"{kind}-{digest[:10]}",
                path=path,
                line=node.lineno,
                kind=kind,
                edit=Edit(start, end, new),
                old=text[start:end],
            )


def _mutant(source: Source, site: _Site) -> Mutant | None:
    """None for what is no Python, or the same to the interpreter."""
    text = text_of(source.solved[site.path])
    mutated = edited(text, [site.edit])
    try:
        made = compile(mutated, "", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    if made == compile(text, "", "exec", dont_inherit=True):
        return None
    return Mutant(
        id=site.id,
        path=site.path,
        line=site.line,
        kind=site.kind,
        old=site.old,
        new=site.edit.new,
        files=with_text(source.solved, site.path, mutated),
    )


def _eligible(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    """Neither annotations, nor docstrings, nor messages, nor what only a type checker runs."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.JoinedStr):
            continue  # the parser does not tell well where its parts are
        if isinstance(node, ast.expr | ast.stmt):
            yield node
        todo += _inner(node)


def _inner(node: ast.AST) -> list[ast.AST]:
    found = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return list(node.orelse)
    hidden: list[ast.AST | None] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        hidden.append(node.returns)
        if any("overload" in ast.unparse(d) for d in node.decorator_list):
            return []
    elif isinstance(node, ast.arg | ast.AnnAssign):
        hidden.append(node.annotation)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        hidden.append(node.value)
    elif isinstance(node, ast.Assign) and _is_metadata(node):
        return []
    elif isinstance(node, ast.Raise | ast.keyword):
        hidden += _words(node)
    return [n for n in found if n not in hidden]


def _words(node: ast.Raise | ast.keyword) -> list[ast.AST | None]:
    """What is said to people: a test that asks for each word of it would be too narrow."""
    if isinstance(node, ast.keyword):
        return [node.value] if node.arg == "help" else []
    texts = (ast.Constant, ast.JoinedStr, ast.BinOp)
    said = isinstance(node.exc, ast.Call) and all(isinstance(a, texts) for a in node.exc.args)
    return [node.exc] if said else []


def _is_metadata(node: ast.Assign) -> bool:
    """`__version__` and its like: no behaviour."""
    return all(isinstance(t, ast.Name) and t.id.startswith("__") for t in node.targets)


def _changed(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    """Kind, and what stands there instead."""
    match node:
        case ast.Compare():
            other = copy.deepcopy(node)
            other.ops[0] = _COMPARED[type(node.ops[0])]()
            yield "comparison", f"({ast.unparse(other)})"
        case ast.BinOp() if not _is_text(node):
            swapped = ast.BinOp(node.left, _COMPUTED.get(type(node.op), ast.Add)(), node.right)
            yield "arithmetic", f"({ast.unparse(swapped)})"
        case ast.BoolOp():
            op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "boolean", f"({ast.unparse(ast.BoolOp(op, node.values))})"
        case ast.UnaryOp(op=ast.Not()):
            yield "boolean", f"(not not {ast.unparse(node.operand)})"
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield "return", "return None"
        case ast.Constant():
            yield from _constants(node.value)
        case _:
            pass


def _constants(value: object) -> Iterator[tuple[str, str]]:
    match value:
        case bool():
            yield "constant", str(not value)
        case int() | float():
            yield "constant", f"({value!r} + 1)" if value < 0 else repr(value + 1)
        case str():
            yield "constant", repr(value + "X") if value else "'X'"
        case bytes():
            yield "constant", repr(value + b"X")
        case _:
            pass


def _is_text(node: ast.BinOp) -> bool:
    """`'%s' % x`: as a product it would be another fault than a wrong one."""
    return isinstance(node.left, ast.Constant | ast.JoinedStr) and not isinstance(
        getattr(node.left, "value", 0), int | float
    )


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CHARACTERS else line[: _CHARACTERS - 1] + "…"
