"""The declared files before and after the reference solution. Pure."""

import ast
import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from sandbox.formats.digest import Entry

Files = Mapping[str, Entry]
"""Path, relative to the working directory → file."""


@dataclass(frozen=True)
class Source:
    base: Files
    solved: Files
    tests: Files = field(default_factory=dict)
    """The hidden tests: what they name, an honest variation keeps."""

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """Every path that the reference solution adds, changes or removes."""
        paths = sorted({*self.base, *self.solved})
        return tuple(p for p in paths if self.base.get(p) != self.solved.get(p))

    @cached_property
    def modules(self) -> tuple[str, ...]:
        """Python files that it adds or changes, and that Python can read."""
        return tuple(p for p in self.changed if p in self.solved and parsed(self.solved[p]))

    def added_lines(self, path: str) -> frozenset[int]:
        """Numbers, from 1, of the lines of the solved file that the base does not have there."""
        return frozenset(n for hunk in self.hunks_of(path) for n in hunk.after)

    def hunks_of(self, path: str) -> tuple["Hunk", ...]:
        return self._hunks.get(path, ())

    @cached_property
    def _hunks(self) -> dict[str, tuple["Hunk", ...]]:
        return {path: self._differences(path) for path in self.changed}

    def _differences(self, path: str) -> tuple["Hunk", ...]:
        before, after = (_lines(files.get(path)) for files in (self.base, self.solved))
        found = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        return tuple(
            Hunk(path=path, before=range(a + 1, b + 1), after=range(c + 1, d + 1))
            for kind, a, b, c, d in found
            if kind != "equal"
        )

    @cached_property
    def hunks(self) -> tuple["Hunk", ...]:
        return tuple(h for path in self.changed for h in self.hunks_of(path))

    def without(self, dropped: Iterable["Hunk"]) -> Files:
        """The solved files with these places as they were."""
        files = dict(self.solved)
        by_path: dict[str, list[Hunk]] = {}
        for hunk in dropped:
            by_path.setdefault(hunk.path, []).append(hunk)
        for path, hunks in by_path.items():
            if len(hunks) == len(self.hunks_of(path)):
                _as_it_was(files, path, self.base)
                continue
            before, after = _lines(self.base.get(path)), _lines(files.get(path))
            for hunk in sorted(hunks, key=lambda h: h.after.start, reverse=True):
                old = before[hunk.before.start - 1 : hunk.before.stop - 1]
                after[hunk.after.start - 1 : hunk.after.stop - 1] = old
            entry = files.get(path) or self.base[path]
            files[path] = replace(entry, data=b"".join(after))
        return files


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """A place that the reference solution changes."""

    path: str
    before: range
    """Line numbers, from 1, in the base."""
    after: range
    """In the solved file."""

    @property
    def name(self) -> str:
        return f"{self.path}:{self.after.start}-{self.after.stop - 1 or self.after.start}"


def by_path(entries: Iterable[Entry]) -> dict[str, Entry]:
    return {e.path: e for e in entries}


def parsed(entry: Entry) -> ast.Module | None:
    """None for what is no Python, and for what Python cannot read."""
    if entry.kind == "link" or not entry.path.endswith(".py"):
        return None
    try:
        return ast.parse(entry.data)
    except (SyntaxError, ValueError, RecursionError):
        return None


def text_of(entry: Entry) -> str:
    return entry.data.decode("utf-8")


def with_text(files: Files, path: str, text: str) -> Files:
    return {**files, path: replace(files[path], data=text.encode("utf-8"))}


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def touched_functions(source: Source, path: str) -> list[Function]:
    """The functions of which the reference solution adds or changes a line."""
    tree = parsed(source.solved[path])
    added = source.added_lines(path)
    found = functions(tree) if tree else iter(())
    return [f for f in found if added.intersection(range(f.lineno, (f.end_lineno or f.lineno) + 1))]


def _lines(entry: Entry | None) -> list[bytes]:
    return entry.data.splitlines(keepends=True) if entry and entry.kind != "link" else []


def _as_it_was(files: dict[str, Entry], path: str, base: Files) -> None:
    if path in base:
        files[path] = base[path]
    else:
        del files[path]
