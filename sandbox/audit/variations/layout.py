"""The same program, written in another way: spaces, comments, line ends. Pure."""

import ast
import re
import tokenize

from sandbox.audit.source.edits import Edit
from sandbox.audit.variations.module import Module

_COMMENT = "# Überprüft, naïve façade, 検証 ✓"


def reformatted(module: Module) -> str:
    return ast.unparse(module.tree) + "\n"


def uncommented(module: Module) -> str:
    """Without comments; those that a tool reads (`# type:`, `# noqa`) are comments, too."""
    edits = []
    for token in module.tokens():
        if token.type == tokenize.COMMENT and token.start[0] > 2:
            start = module.places.line_start(token.start[0]) + token.start[1]
            edits.append(Edit(start, start + len(token.string), ""))
    return module.with_edits(edits)


def commented(module: Module) -> str:
    """A comment that is not ASCII after each line on which a statement ends."""
    return _after_lines(module, f"  {_COMMENT}")


def trailing_spaces(module: Module) -> str:
    return _after_lines(module, " \t ") + "\n\n   \n"


def _after_lines(module: Module, more: str) -> str:
    edits, last = [], -1
    for token in module.tokens():
        if token.type == tokenize.NEWLINE and token.start[0] != last:
            last = token.start[0]
            place = module.places.line_start(last) + len(module.places.line(last))
            edits.append(Edit(place, place, more))
    return module.with_edits(edits)


def windows_line_ends(module: Module) -> str:
    return module.text.replace("\n", "\r\n")


def no_last_line_end(module: Module) -> str:
    return module.text.rstrip("\n") + "  # the end"


def byte_order_mark(module: Module) -> str | None:
    return None if module.text.startswith("\ufeff") else "\ufeff" + module.text


def tabs(module: Module) -> str | None:
    """Indented by tabs, but for lines within a string."""
    text = reformatted(module)
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno:
            return None
    return "\n".join(re.sub(r"^( {4})+", lambda m: "\t" * (len(m[0]) // 4), x) for x in lines)


def spread_out(module: Module) -> str:
    """A blank line after each line on which a statement ends."""
    return _after_lines(module, "\n")


def unexplained(module: Module) -> str | None:
    """Without the docstrings of private functions: nobody prints those."""
    edits = []
    for function in module.touched:
        body = function.body
        words = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        if words and len(body) > 1 and function.name.startswith("_"):
            edits.append(Edit(*module.places.span(body[0]), "pass"))
    return module.with_edits(edits) if edits else None
