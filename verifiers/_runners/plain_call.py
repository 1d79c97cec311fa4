"""One test, called without a test runner: what comes of it."""

import importlib
import inspect
import os
import platform
import sys
import unittest
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from plain_fixtures import Item, Stages, asked, closure
from plain_standin import FailedError, LeftError, Mark, SkippedError, XFailedError

Outcome = tuple[str, str]
"""What is told of a check: how it ended, and why."""
_PASSED: Outcome = ("passed", "")
_SKIPS = (SkippedError, unittest.SkipTest)


class Caller:
    """Calls tests, one after another."""

    def __init__(self, filters: Sequence[str]) -> None:
        self._filters = filters
        self._stages = Stages()

    def call(self, item: Item, following: Item | None) -> Outcome:
        """following: the next one; what it shares with this is not undone."""
        with _warnings(self._filters, item):
            outcome = self._called(item)
            wrong = self._stages.leave(following)
        if wrong and outcome[0] == "passed":
            return "error", _words(wrong[0])
        return outcome

    def _called(self, item: Item) -> Outcome:
        try:
            if (reason := _skipped(item)) is not None:
                return "skipped", reason
            xfail = _xfail(item)
            test = self._ready(item)
        except BaseException as e:
            return ("skipped" if isinstance(e, _SKIPS) else "error"), _words(e)
        try:
            test()
        except BaseException as e:
            return _failed(e, xfail)
        if xfail is None:
            return _PASSED
        return ("failed" if xfail.kwargs.get("strict") else "xpassed"), ""

    def _ready(self, item: Item) -> Callable[[], Any]:
        """All that is to be done before the test itself."""
        _once(self._stages.stage(item, "module"), item.module, ("setup_module", "teardown_module"))
        if item.kind is not None:
            item.instance = _instance(item)
            names = ("setup_class", "teardown_class")
            if isinstance(item.instance, unittest.TestCase):
                names = ("setUpClass", "tearDownClass")
            _once(self._stages.stage(item, "class"), item.kind, names)
        used = [n for mark in item.marked("usefixtures") for n in mark.args]
        for name in closure(item.levels, used):
            self._stages.value(item, name)
        if isinstance(item.instance, unittest.TestCase):
            return lambda: _case(item.instance, item.attribute)
        return self._function(item)

    def _function(self, item: Item) -> Callable[[], Any]:
        function = getattr(item.module if item.kind is None else item.instance, item.attribute)
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise LeftError("it is asynchronous, or yields")
        given = {n: self._stages.value(item, n) for n in asked(function, bound=False)}
        # What has a default can be given all the same.
        given.update(item.row.arguments)
        stage = self._stages.stage(item, "function")
        if item.kind is None:
            names = ("setup_function", "teardown_function")
            _around(stage.undone_by, item.module, names, function)
        else:
            names = ("setup_method", "teardown_method")
            _around(stage.undone_by, item.instance, names, function)
        return lambda: function(**given)


def _instance(item: Item) -> Any:
    if not issubclass(item.kind, unittest.TestCase):
        return item.kind()
    if hasattr(unittest, "IsolatedAsyncioTestCase") and issubclass(
        item.kind, unittest.IsolatedAsyncioTestCase
    ):
        raise LeftError("it is asynchronous")
    for thing in (item.kind, getattr(item.kind, item.attribute)):
        if getattr(thing, "__unittest_skip__", False):
            raise SkippedError(getattr(thing, "__unittest_skip_why__", ""))
        if getattr(thing, "__unittest_expecting_failure__", False):
            raise LeftError("it is expected to fail")
    return item.kind(item.attribute)


def _case(case: unittest.TestCase, name: str) -> None:
    """As `TestCase.run` does it, without its frames."""
    try:
        case.setUp()
        try:
            getattr(case, name)()
        finally:
            case.tearDown()
    finally:
        case.doCleanups()


def _once(stage: Any, owner: Any, names: tuple[str, str]) -> None:
    """The old way of fixtures: called when the scope is entered and left."""
    key = ("once", id(owner))
    if key not in stage.made:
        stage.made[key] = None
        _around(stage.undone_by, owner, names, owner)


def _around(
    undone_by: list[Callable[[], Any]], owner: Any, names: tuple[str, str], of: Any
) -> None:
    before, after = (_given(getattr(owner, name, None), of) for name in names)
    before()
    undone_by.append(after)


def _given(function: Any, about: Any) -> Callable[[], Any]:
    """It may or may not want to be told what it is called for."""
    if function is None:
        return lambda: None
    given = (about,) if inspect.signature(function).parameters else ()
    return lambda: function(*given)


def _failed(e: BaseException, xfail: Mark | None) -> Outcome:
    if isinstance(e, LeftError):
        return "error", _words(e)
    if isinstance(e, _SKIPS):
        return "skipped", _words(e)
    if isinstance(e, XFailedError):
        return "xfailed", _words(e)
    kinds = xfail.kwargs.get("raises") if xfail else None
    if xfail is not None and (kinds is None or isinstance(e, kinds)):
        return "xfailed", _words(e)
    return "failed", _words(e)


def _words(e: BaseException) -> str:
    if isinstance(e, LeftError):
        return f"left: {e}"
    try:
        text = str(e)
    except BaseException:
        text = ""
    kind = {FailedError: "Failed", SkippedError: "Skipped"}.get(type(e), type(e).__name__)
    return f"{kind}: {text}" if text else kind


def _skipped(item: Item) -> str | None:
    for mark in item.marks:
        if mark.name == "skip":
            return str(mark.kwargs.get("reason", mark.args[0] if mark.args else ""))
        if mark.name == "skipif" and _holds(item, mark):
            return str(mark.kwargs.get("reason", ""))
    return None


def _xfail(item: Item) -> Mark | None:
    for mark in item.marked("xfail"):
        if _holds(item, mark):
            if mark.kwargs.get("run") is False:
                raise LeftError("it is not to be run")
            return mark
    return None


def _holds(item: Item, mark: Mark) -> bool:
    conditions = list(mark.args)
    if "condition" in mark.kwargs:
        conditions.append(mark.kwargs["condition"])
    if not conditions:
        return mark.name == "xfail"
    return any(_true(item, condition) for condition in conditions)


def _true(item: Item, condition: Any) -> bool:
    if isinstance(condition, str):
        names = {"os": os, "sys": sys, "platform": platform, **vars(item.module)}
        return bool(eval(condition, names))
    return bool(condition)


@contextmanager
def _warnings(filters: Sequence[str], item: Item) -> Iterator[None]:
    """Each test has the filters of the suite, and its own before them."""
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        for kind in (DeprecationWarning, PendingDeprecationWarning):
            warnings.filterwarnings("always", category=kind)
        own = [text for mark in reversed(list(item.marked("filterwarnings"))) for text in mark.args]
        for text in (*filters, *own):
            _filter(text)
        yield


def _filter(text: str) -> None:
    parts = [part.strip() for part in text.split(":", 4)] + [""] * 5
    action, message, category, module, line = parts[:5]
    kind: Any = Warning
    if category:
        home, _, name = category.rpartition(".")
        if home.partition(".")[0] in {"pytest", "_pytest"}:
            return
        kind = getattr(importlib.import_module(home or "builtins"), name)
    where = f"{module}\\Z" if module else ""
    warnings.filterwarnings(cast("Any", action), message, kind, where, int(line or 0))
