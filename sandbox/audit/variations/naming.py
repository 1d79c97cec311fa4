"""Other names for what no other file can see. Pure."""

import ast
from collections.abc import Iterator

from sandbox.audit.source.edits import Edit
from sandbox.audit.source.trees import Function
from sandbox.audit.variations.module import Module, looks_around

_SUFFIX = "_renamed"


def renamed_locals(module: Module) -> str | None:
    """Variables of functions in which no other scope could see them."""
    edits = []
    for function in module.touched:
        if looks_around(function) or _has_inner_scope(function):
            continue
        names = _variables(function)
        edits += [
            Edit(*module.places.span(node), node.id + _SUFFIX)
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and node.id in names
        ]
    return module.with_edits(edits) if edits else None


def renamed_helpers(module: Module) -> str | None:
    """Private functions that no other file of the repository names, and no hidden test."""
    source = module.source
    others = [
        e.data for files in (source.solved, source.base, source.tests)
        for path, e in files.items() if path != module.path
    ]  # fmt: skip
    own = {f.name for f in module.tree.body if isinstance(f, ast.FunctionDef)}
    names = {
        n for n in own
        if n.startswith("_") and not n.startswith("__")
        and not any(n.encode() in data for data in others)
        and not _is_said(n, module)
    }  # fmt: skip
    edits = [*_definitions(module, names), *_uses(module, names)]
    return module.with_edits(edits) if edits else None


def _definitions(module: Module, names: set[str]) -> Iterator[Edit]:
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            start = module.places.at(node.lineno, node.col_offset)
            place = module.text.index(node.name, start)
            yield Edit(place, place + len(node.name), node.name + _SUFFIX)


def _uses(module: Module, names: set[str]) -> Iterator[Edit]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and node.id in names:
            yield Edit(*module.places.span(node), node.id + _SUFFIX)


def _is_said(name: str, module: Module) -> bool:
    """In a text, as an attribute or argument, in another scope: not only as a name of the module."""
    defined = sum(getattr(n, "name", "") == name for n in ast.walk(module.tree))
    return defined > 1 or any(_says(node, name) for node in ast.walk(module.tree))


def _says(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            found = name in text
        case ast.Attribute(attr=other) | ast.arg(arg=other):
            found = other == name
        case ast.JoinedStr():
            found = name in ast.unparse(node)
        case ast.Name(id=other, ctx=ast.Store() | ast.Del()):
            found = other == name
        case ast.alias():
            found = name in (node.name, node.asname)
        case ast.Global() | ast.Nonlocal():
            found = name in node.names
        case _:
            found = False
    return found


def _has_inner_scope(function: Function) -> bool:
    kinds = (
        ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Global, ast.Nonlocal,
        ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Match,
        ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    )  # fmt: skip
    return any(isinstance(n, kinds) for n in ast.walk(function) if n is not function)


def _variables(function: Function) -> set[str]:
    """What it assigns, without its parameters and what `except … as` names."""
    given = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    caught = {n.name for n in ast.walk(function) if isinstance(n, ast.ExceptHandler) and n.name}
    stored = {
        n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    hints = {
        n.id
        for a in ast.walk(function)
        if isinstance(a, ast.AnnAssign | ast.arg) and a.annotation
        for n in ast.walk(a.annotation)
        if isinstance(n, ast.Name)
    }
    return stored - given - caught - hints
