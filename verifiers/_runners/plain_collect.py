"""Hidden tests, found where pytest finds them and called as it calls them."""

import configparser
import inspect
import os
import unittest
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any

from plain_builtin import BUILTIN
from plain_fixtures import Item, Makers, asked, closure, makers_in, nearest
from plain_ids import Row, rows_of_fixture, rows_of_mark
from plain_load import load
from plain_standin import Fixture, LeftError, Mark, as_marks, marks_of

_SKIPPED = ("*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}")
_HOOK = "pytest_generate_tests"
Trouble = Callable[[str, BaseException], None]
"""Told of what could not be collected."""


@dataclass
class _Place:
    """A module or class, and what is around it."""

    module: ModuleType
    kind: Any
    levels: list[Makers]
    hooks: list[Any]
    """What has a say in how its tests are called."""

    def within(self, kind: Any) -> "_Place":
        levels = [*self.levels, makers_in(dict(_members(kind)))]
        return _Place(self.module, kind, levels, self.hooks)


class Metafunc:
    """What `pytest_generate_tests` is told of a test, and answers with."""

    def __init__(self, place: _Place, function: Any, names: list[str]) -> None:
        self.module, self.cls, self.function = place.module, place.kind, function
        self.levels, self.fixturenames = place.levels, names
        self.rows: list[list[Row]] = []

    def parametrize(self, *args: Any, **kwargs: Any) -> None:
        self.rows.append(rows_of_mark(Mark("parametrize", args, kwargs)))

    def __getattr__(self, name: str) -> Any:
        raise LeftError(f"metafunc.{name} is not there")


class Collector:
    """All tests beneath what the runner is asked to run."""

    def __init__(self, workdir: Path, ini: dict[str, str], trouble: Trouble) -> None:
        self._workdir, self._trouble = workdir, trouble
        self._files = ini.get("python_files", "test_*.py *_test.py").split()
        self._classes = ini.get("python_classes", "Test").split()
        self._functions = ini.get("python_functions", "test").split()
        self._conftests: dict[Path, ModuleType | None] = {}

    def items(self, arguments: Sequence[str]) -> list[Item]:
        found: dict[str, Item] = {}
        for argument in arguments:
            path, _, within = argument.partition("::")
            for file in self._beneath(self._workdir / path):
                for item in self._of_file(file):
                    if not within or item.id.startswith(argument):
                        found.setdefault(item.id, item)
        return list(found.values())

    def _beneath(self, path: Path) -> Iterator[Path]:
        if path.is_file():
            yield path
        elif path.is_dir():
            for entry in sorted(path.iterdir(), key=lambda p: (p.is_dir(), p.name)):
                if entry.is_dir():
                    if not any(fnmatch(entry.name, p) for p in (*_SKIPPED, "__pycache__")):
                        yield from self._beneath(entry)
                elif any(fnmatch(entry.name, p) for p in self._files):
                    yield entry

    def _of_file(self, path: Path) -> Iterator[Item]:
        name = path.relative_to(self._workdir).as_posix()
        try:
            folders = [p for p in path.parents if p.is_relative_to(self._workdir)]
            around = [m for folder in reversed(folders) if (m := self._conftest(folder))]
            around.append(load(path))
            levels: list[Makers] = [BUILTIN, *(makers_in(vars(m)) for m in around)]
            hooks = [m for m in around if hasattr(m, _HOOK)]
            place = _Place(around[-1], None, levels, hooks)
            marks = as_marks(vars(around[-1]).get("pytestmark", []))
            yield from self._of_namespace(name, place, marks)
        except BaseException as e:
            self._trouble(name, e)

    def _conftest(self, folder: Path) -> ModuleType | None:
        if folder not in self._conftests:
            path = folder / "conftest.py"
            self._conftests[folder] = load(path) if path.is_file() else None
        return self._conftests[folder]

    def _of_namespace(self, prefix: str, place: "_Place", marks: list[Mark]) -> Iterator[Item]:
        for name, thing in _members(place.kind or place.module):
            inside = f"{prefix}::{name}"
            if isinstance(thing, type):
                if self._is_class(name, thing):
                    deeper = place.within(thing)
                    yield from self._of_namespace(inside, deeper, marks_of(thing) + marks)
            elif self._is_function(name, thing, place.kind):
                try:
                    yield from _calls(inside, place, name, marks)
                except BaseException as e:
                    self._trouble(inside, e)

    def _is_class(self, name: str, thing: Any) -> bool:
        if not vars(thing).get("__test__", getattr(thing, "__test__", True)):
            return False
        if issubclass(thing, unittest.TestCase):
            return True
        plain = thing.__init__ is object.__init__ and thing.__new__ is object.__new__
        return plain and _called(name, self._classes)

    def _is_function(self, name: str, thing: Any, kind: Any) -> bool:
        if isinstance(thing, staticmethod | classmethod):
            thing = thing.__func__
        if isinstance(thing, Fixture) or not inspect.isroutine(inspect.unwrap(thing)):
            return False
        if not getattr(thing, "__test__", True):
            return False
        if kind is not None and issubclass(kind, unittest.TestCase):
            return name.startswith("test")
        return _called(name, self._functions)


def _called(name: str, patterns: Sequence[str]) -> bool:
    return any(
        name.startswith(p) or (any(c in p for c in "*?[") and fnmatch(name, p)) for p in patterns
    )


def _members(thing: Any) -> Iterator[tuple[str, Any]]:
    """In the order in which they were written; of a class, its bases' first."""
    if isinstance(thing, ModuleType):
        yield from list(vars(thing).items())
        return
    seen: dict[str, Any] = {}
    for base in reversed(thing.__mro__[:-1]):
        seen.update(vars(base))
    yield from seen.items()


def _calls(prefix: str, place: _Place, name: str, marks: list[Mark]) -> Iterator[Item]:
    """Of one test, once for each way of calling it."""
    kind, levels = place.kind, place.levels
    function = getattr(kind or place.module, name)
    case = kind is not None and issubclass(kind, unittest.TestCase)
    every = marks_of(function) + marks
    static = kind is not None and isinstance(inspect.getattr_static(kind, name), staticmethod)
    wanted = [] if case else asked(function, bound=kind is not None and not static)
    used = [n for mark in every if mark.name == "usefixtures" for n in mark.args]
    rows = [Row()]
    if not case:
        asker = Metafunc(place, function, closure(levels, [*used, *wanted]))
        for hook in place.hooks:
            getattr(hook, _HOOK)(asker)
        rows = _rows(asker, [m for m in every if m.name == "parametrize"])
    for row in rows:
        suffix = "" if row.id is None else f"[{row.id}]"
        yield Item(
            id=prefix + suffix,
            name=name + suffix,
            module=place.module,
            kind=kind,
            attribute=name,
            levels=levels,
            row=row,
            marks=row.marks + every,
        )


def _rows(asker: "Metafunc", marks: list[Mark]) -> list[Row]:
    of_marks = [rows_of_mark(mark) for mark in marks]
    given = {n for rows in asker.rows + of_marks for n in (*rows[0].arguments, *rows[0].params)}
    of_fixtures = []
    for name in asker.fixturenames:
        made = nearest(asker.levels, name)
        if made is not None and made.params is not None and name not in given:
            of_fixtures.append(rows_of_fixture(name, made))
    found = [Row()]
    for rows in (*asker.rows, *of_fixtures, *of_marks):
        found = [row.with_more(more) for row in found for more in rows]
    return found


def read_ini(path: str) -> dict[str, str]:
    """The runner's configuration, as far as it says what a test is and what warnings are."""
    parser = configparser.RawConfigParser()
    if path and os.path.exists(path):
        parser.read(path, encoding="utf-8")
    return dict(parser["pytest"]) if parser.has_section("pytest") else {}
