"""Each function that the reference solution touches, without its body. Pure."""

import ast
from dataclasses import dataclass

from sandbox.audit.source.edits import Edit, Places, edited
from sandbox.audit.source.trees import (
    Files,
    Function,
    Source,
    text_of,
    touched_functions,
    with_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knockout:
    path: str
    function: str
    line: int
    files: Files

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}: {self.function}"


def knockouts(source: Source) -> tuple[Knockout, ...]:
    """The function returns None, and does nothing else."""
    found = []
    for path in source.modules:
        text = text_of(source.solved[path])
        if "\r" in text:
            continue
        places = Places(text)
        for function in touched_functions(source, path):
            body = [s for s in function.body if not _is_words(s)]
            if not body or all(_is_nothing(s) for s in body) or _is_overload(function):
                continue
            start, end = places.span(body[0])[0], places.span(body[-1])[1]
            files = with_text(source.solved, path, edited(text, [Edit(start, end, "return None")]))
            found.append(
                Knockout(path=path, function=function.name, line=function.lineno, files=files)
            )
    return tuple(found)


def _is_words(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_nothing(statement: ast.stmt) -> bool:
    """It returns None, or says that it is not there, anyway."""
    if isinstance(statement, ast.Pass | ast.Raise):
        return True
    return isinstance(statement, ast.Return) and (
        statement.value is None
        or (isinstance(statement.value, ast.Constant) and statement.value.value is None)
    )


def _is_overload(function: Function) -> bool:
    return any("overload" in ast.unparse(d) for d in function.decorator_list)
