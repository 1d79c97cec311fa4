"""One Python file being varied, and what is asked about it. Pure."""

import ast
import io
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from sandbox.audit.source.edits import Edit, Places, edited
from sandbox.audit.source.trees import (
    Files,
    Function,
    Source,
    functions,
    parsed,
    text_of,
    touched_functions,
    with_text,
)

_SCOPED = ("locals", "globals", "vars", "eval", "exec", "super", "dir", "_getframe", "warn")
"""Where one of these is called, a frame more or a name less would be seen."""


@dataclass(frozen=True)
class Module:
    """A file that the reference solution adds or changes."""

    source: Source
    path: str

    @cached_property
    def text(self) -> str:
        return text_of(self.source.solved[self.path])

    @cached_property
    def tree(self) -> ast.Module:
        tree = parsed(self.source.solved[self.path])
        assert tree is not None  # noqa: S101 - Source.modules has those only that can be read
        return tree

    @cached_property
    def places(self) -> Places:
        return Places(self.text)

    @cached_property
    def touched(self) -> tuple[Function, ...]:
        """Functions to work on: what the reference solution changes; without any, what there is."""
        return tuple(touched_functions(self.source, self.path) or functions(self.tree))

    @cached_property
    def outermost(self) -> tuple[Function, ...]:
        """Of the touched ones, those that no other one holds."""
        inner = {id(n) for f in self.touched for n in ast.walk(f) if n is not f}
        return tuple(f for f in self.touched if id(f) not in inner)

    def tokens(self) -> Iterator[tokenize.TokenInfo]:
        return tokenize.generate_tokens(io.StringIO(self.text).readline)

    def with_edits(self, edits: list[Edit]) -> str:
        return edited(self.text, edits)

    def body_start(self) -> int:
        """Where the first statement after the docstring and `from __future__` is."""
        for statement in self.tree.body:
            words = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            if not words and not future:
                return self.places.line_start(_first_line(statement))
        return len(self.text)


Change = Callable[[Module], str | None]
"""The file's new text; None where there is nothing to change."""


def everywhere(change: Change) -> Callable[[Source], Files | None]:
    """In every file that the reference solution changes; None where that changes nothing."""

    def apply(source: Source) -> Files | None:
        files, changed = source.solved, False
        for path in source.modules:
            module = Module(source, path)
            if "\r" in module.text or "\f" in module.text:
                continue
            text = change(module)
            if text is not None and text != module.text:
                files, changed = with_text(files, path, text), True
        return files if changed else None

    return apply


def rewritten(transform: Callable[[], ast.NodeTransformer]) -> Change:
    """By way of the tree; comments are lost, which changes nothing."""

    def change(module: Module) -> str | None:
        tree = ast.parse(module.text)
        before = ast.unparse(tree)
        made = ast.unparse(ast.fix_missing_locations(transform().visit(tree)))
        return made + "\n" if made != before else None

    return change


def looks_around(function: Function) -> bool:
    """Does it look at its own frame, or at that of its caller?"""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name in _SCOPED:
                return True
        if isinstance(node, ast.Name) and node.id == "__class__":
            return True
    return False


def is_plain(function: Function) -> bool:
    """Neither a coroutine nor a generator: its body runs when it is called, to its end."""
    if isinstance(function, ast.AsyncFunctionDef):
        return False
    return not any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in ast.walk(function))


def without_words(body: list[ast.stmt]) -> list[ast.stmt]:
    """Without the docstring."""
    first = body[0]
    words = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if words else body


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return int(min([statement.lineno, *(d.lineno for d in decorators)]))
