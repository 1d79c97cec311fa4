"""More than there was, to no effect: helpers, files, classes, decorators, time. Pure."""

import ast
import posixpath

from sandbox.audit.source.edits import Edit
from sandbox.audit.source.trees import Files, Source, parsed
from sandbox.audit.variations.module import Module, everywhere, rewritten, without_words
from sandbox.formats.digest import Entry

_SAME = 'def _same_as_before(value):\n    """Give it back."""\n    return value\n\n\n'
_VENDORED = _SAME.replace("_same_as_before", "_as_vendored")
_UNUSED = '''class _NotUsed:
    """Kept for later."""

    limit = 3

    def __init__(self, size=0):
        self.size = size

    def __len__(self):
        return self.size + self.limit


'''
_DEAD = "if False:  # not reached\n    raise SystemExit('never')\n"
_TEST = "def test_what_is_plain():\n    assert 1 + 1 == 2\n"
_NOTES = '"""Notes for whoever comes next."""\n\nNOTES = ("first", "second")\n\n\ndef note(n):\n    return NOTES[n]\n'
_LOOPS = 50


def helper_functions(module: Module) -> str | None:
    """What a function returns goes through another one."""
    edits = _returned(module, "_same_as_before")
    return _with_head(module, edits, _SAME) if edits else None


def vendored_helper(source: Source) -> Files | None:
    """The same helper, from a new private file of the package."""
    made = everywhere(_imports_helper)(source)
    if made is None:
        return None
    folders = {posixpath.dirname(p) for p in source.modules if made[p] != source.solved[p]}
    new = {
        f"{f}/_vendored_here.py": Entry(f"{f}/_vendored_here.py", "file", _VENDORED.encode())
        for f in folders
    }
    return {**made, **new}


def _imports_helper(module: Module) -> str | None:
    if not _in_package(module.source, module.path):
        return None
    edits = _returned(module, "_as_vendored")
    head = "from ._vendored_here import _as_vendored\n"
    return _with_head(module, edits, head) if edits else None


def more_files(source: Source) -> Files | None:
    folders = {posixpath.dirname(p) for p in source.modules if _in_package(source, p)}
    new = {}
    for folder in folders:
        for name, text in (("_notes_of_ours.py", _NOTES), ("NOTES.txt", "Thank you.\n")):
            path = f"{folder}/{name}"
            new[path] = Entry(path, "file", text.encode())
    return {**source.solved, **new} if new else None


def more_tests(source: Source) -> Files:
    """Outside of what is graded: left out, and no harm done."""
    path = "tests/test_of_ours.py"
    return {**source.solved, path: Entry(path, "file", _TEST.encode())}


def executable(source: Source) -> Files | None:
    """A file's mode is no part of what it does."""
    new = {
        p: Entry(p, "exec", source.solved[p].data)
        for p in source.modules
        if source.solved[p].kind == "file"
    }
    return {**source.solved, **new} if new else None


def unused_class(module: Module) -> str:
    return _with_head(module, [], _UNUSED)


def dead_code(module: Module) -> str:
    edits = []
    for function in module.outermost:
        start, _ = module.places.span(function.body[-1])
        line = module.text[module.text.rfind("\n", 0, start) + 1 : start]
        if not line.strip():
            place = start - len(line)
            told = "".join(f"{line}{x}\n" for x in _DEAD.splitlines())
            edits.append(Edit(place, place, told))
    return _with_head(module, edits, _DEAD)


def decorated(module: Module) -> str | None:
    """A decorator that gives back the function as it is, next to it."""
    edits = []
    for function in module.outermost:
        start = module.places.at(function.lineno, function.col_offset)
        edits.append(Edit(start, start, f"@_same_as_before\n{' ' * function.col_offset}"))
    indented_by_tabs = "\n\t" in module.text
    return _with_head(module, edits, _SAME) if edits and not indented_by_tabs else None


class _Slow(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        body = without_words(node.body)
        loop = ast.parse(f"for _ in range({_LOOPS}):\n    pass").body
        if body and not any(isinstance(n, ast.Name) and n.id == "_" for n in ast.walk(node)):
            node.body = [*node.body[: len(node.body) - len(body)], *loop, *body]
        return node


_loops = rewritten(_Slow)


def slow(module: Module) -> str | None:
    """It takes its time when it is loaded, and a little whenever it is called."""
    text = _loops(module)
    if text is None:
        return None
    tree = parsed(Entry(module.path, "file", text.encode()))
    assert tree is not None  # noqa: S101 - it was made from a tree
    wait = ast.parse("sum(range(10_000_000))").body  # a test may look at what is imported
    after = sum(_is_head(s) for s in tree.body)
    tree.body[after:after] = wait
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def imported_otherwise(module: Module) -> str | None:
    """`import re` as `import re as _re_here` and a name for it."""
    edits = []
    for node in module.tree.body:
        match node:
            case ast.Import(names=[ast.alias(name=name, asname=None)]) if "." not in name:
                new = f"import {name} as _{name}_here; {name} = _{name}_here"
            case ast.ImportFrom(names=names) if node.module != "__future__" and len(names) > 1:
                dots = "." * node.level + (node.module or "")
                lines = [f"from {dots} import {ast.unparse(n)}" for n in names]
                new = "; ".join(lines)
            case _:
                continue
        edits.append(Edit(*module.places.span(node), new))
    return module.with_edits(edits) if edits else None


def _returned(module: Module, name: str) -> list[Edit]:
    """All that follows `return`: the parser leaves out the brackets around a value."""
    edits = []
    for function in module.touched:
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                start, end = module.places.span(node)
                start += len("return")
                edits.append(Edit(start, end, f" {name}(({module.text[start:end]}))"))
    return list(dict.fromkeys(edits))


def _with_head(module: Module, edits: list[Edit], head: str) -> str:
    start = module.body_start()
    return module.with_edits([*edits, Edit(start, start, head)])


def _is_head(statement: ast.stmt) -> bool:
    words = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return words or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")


def _in_package(source: Source, path: str) -> bool:
    folder = posixpath.dirname(path)
    return bool(folder) and f"{folder}/__init__.py" in source.solved
