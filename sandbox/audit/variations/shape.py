"""The same steps, built in another way: branches, returns, formats, types. Pure."""

import ast

from sandbox.audit.source.edits import Edit
from sandbox.audit.variations.module import (
    Module,
    is_plain,
    looks_around,
    rewritten,
    without_words,
)


class _Inverted(ast.NodeTransformer):
    """`if a: x else: y` as `if not a: y else: x`."""

    def visit_If(self, node: ast.If) -> ast.stmt:
        self.generic_visit(node)
        chained = len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
        if not node.orelse or chained:
            return node
        return ast.If(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)


class _NoEarlyReturn(ast.NodeTransformer):
    """`if a: return x` and what follows as `if a: return x else: …`, in a function's own body."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        self.generic_visit(node)
        for number, statement in enumerate(node.body[:-1]):
            if isinstance(statement, ast.If) and not statement.orelse and _leaves(statement.body):
                rest = node.body[number + 1 :]
                if not any(isinstance(n, ast.FunctionDef | ast.ClassDef) for n in rest):
                    statement.orelse = rest
                    node.body = node.body[: number + 1]
                    break
        return node


def _leaves(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return | ast.Raise)


class _Formatted(ast.NodeTransformer):
    """f-strings as calls of `format`."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        template, arguments = "", []
        for part in node.values:
            if isinstance(part, ast.Constant):
                template += str(part.value).replace("{", "{{").replace("}", "}}")
                continue
            assert isinstance(part, ast.FormattedValue)  # noqa: S101 - there is nothing else
            spec = part.format_spec
            if spec is not None and not _is_fixed(spec):
                return node
            template += "{" + (f"!{chr(part.conversion)}" if part.conversion > 0 else "")
            template += (f":{_fixed(spec)}" if spec is not None else "") + "}"
            arguments.append(part.value)
        called = ast.Attribute(ast.Constant(template), "format", ast.Load())
        return ast.Call(called, arguments, [])


def _is_fixed(spec: ast.expr) -> bool:
    parts = spec.values if isinstance(spec, ast.JoinedStr) else []
    return all(isinstance(p, ast.Constant) for p in parts)


def _fixed(spec: ast.expr) -> str:
    parts = spec.values if isinstance(spec, ast.JoinedStr) else []
    return "".join(str(p.value) for p in parts if isinstance(p, ast.Constant))


class _Untyped(ast.NodeTransformer):
    """Without the annotations of functions; those of classes make fields."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        self.generic_visit(node)
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        return node


class _Named(ast.NodeTransformer):
    """`return x` as `result = x; return result`."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        self.generic_visit(node)
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt | list[ast.stmt]:
        if node.value is None or isinstance(node.value, ast.Name | ast.Constant):
            return node
        made = ast.Assign([ast.Name("result_of_this", ast.Store())], node.value)
        return [made, ast.Return(ast.Name("result_of_this", ast.Load()))]


class _Chosen(ast.NodeTransformer):
    """`a if c else b` as `b if not c else a`."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)


class _Parted(ast.NodeTransformer):
    """`a and b` as `not (not a or not b)`, where only the truth of it is asked for."""

    def visit_If(self, node: ast.If) -> ast.stmt:
        self.generic_visit(node)
        node.test = _by_de_morgan(node.test)
        return node


def _by_de_morgan(test: ast.expr) -> ast.expr:
    if not isinstance(test, ast.BoolOp):
        return test
    other = ast.Or() if isinstance(test.op, ast.And) else ast.And()
    parts: list[ast.expr] = [ast.UnaryOp(ast.Not(), v) for v in test.values]
    return ast.UnaryOp(ast.Not(), ast.BoolOp(other, parts))


inverted = rewritten(_Inverted)
no_early_return = rewritten(_NoEarlyReturn)
formatted = rewritten(_Formatted)
untyped = rewritten(_Untyped)
named_results = rewritten(_Named)
chosen_otherwise = rewritten(_Chosen)
parted = rewritten(_Parted)


def constants_extracted(module: Module) -> str | None:
    """Numbers and texts of functions as names of the module."""
    names: dict[str, str] = {}
    edits = []
    for function in module.outermost:
        hidden = {
            id(inner)
            for node in ast.walk(function)
            if isinstance(node, ast.JoinedStr | ast.Match | ast.AnnAssign | ast.ClassDef)
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            for inner in ast.walk(node)
        }
        for statement in without_words(function.body):
            for node in ast.walk(statement):
                if (
                    not isinstance(node, ast.Constant)
                    or id(node) in hidden
                    or _inner(node, function)
                ):
                    continue
                if type(node.value) in (int, str) and node.value not in ("", 0, 1):
                    name = names.setdefault(repr(node.value), f"_CONSTANT_{len(names)}_OF_THIS")
                    edits.append(Edit(*module.places.span(node), f" {name} "))
    if not edits:
        return None
    start = module.body_start()
    head = "".join(f"{name} = {value}\n" for value, name in names.items())
    return module.with_edits([*edits, Edit(start, start, head)])


def _inner(node: ast.Constant, function: ast.AST) -> bool:
    """Of a default or an annotation: made where the function is."""
    for inner in ast.walk(function):
        if isinstance(inner, ast.arguments) and any(n is node for n in ast.walk(inner)):
            return True
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            outer = [*inner.decorator_list, *([inner.returns] if inner.returns else [])]
            if any(n is node for o in outer for n in ast.walk(o)):
                return True
    return False


class _Wrapped(ast.NodeTransformer):
    """A function's body in a function of its own."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        body = without_words(node.body)
        if not body or looks_around(node) or not is_plain(node) or _rebinds(node):
            return node
        words = node.body[: len(node.body) - len(body)]
        inner = ast.FunctionDef(
            name="inner_of_this",
            args=ast.arguments([], [], None, [], [], None, []),
            body=body,
            decorator_list=[],
            lineno=node.lineno,
        )
        called = ast.Call(ast.Name("inner_of_this", ast.Load()), [], [])
        node.body = [*words, inner, ast.Return(called)]
        return node


def _rebinds(node: ast.FunctionDef) -> bool:
    """Assigns to a parameter, or to a name of another scope; or is what only a type checker reads."""
    given = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Global | ast.Nonlocal):
            return True
        if (
            isinstance(inner, ast.Name)
            and not isinstance(inner.ctx, ast.Load)
            and inner.id in given
        ):
            return True
        if isinstance(inner, ast.ExceptHandler | ast.alias) and (
            getattr(inner, "asname", None) in given or inner.name in given
        ):
            return True
        if isinstance(inner, ast.FunctionDef) and inner.name in given:
            return True
    return any("overload" in ast.unparse(d) for d in node.decorator_list)


wrapped = rewritten(_Wrapped)


def reordered(module: Module) -> str | None:
    """Two functions that stand beside each other and hang on nothing, the other way round."""
    edits: list[Edit] = []
    body = module.tree.body
    names = [getattr(s, "name", "") for s in body]
    last = -1
    for number in range(len(body) - 1):
        one, other = body[number], body[number + 1]
        if number <= last or not (_is_free(one) and _is_free(other)):
            continue
        if names.count(names[number]) > 1 or names.count(names[number + 1]) > 1:
            continue
        first, second = module.places.span(one), module.places.span(other)
        edits += [
            Edit(*first, module.text[slice(*second)]),
            Edit(*second, module.text[slice(*first)]),
        ]
        last = number + 1
    return module.with_edits(edits) if edits else None


def _is_free(statement: ast.stmt) -> bool:
    """Making it needs nothing but Python."""
    if not isinstance(statement, ast.FunctionDef) or statement.decorator_list:
        return False
    arguments = statement.args
    made = [*arguments.defaults, *[d for d in arguments.kw_defaults if d]]
    return all(isinstance(d, ast.Constant) for d in made)
