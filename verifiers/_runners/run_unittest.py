"""Runs hidden tests written with unittest, in the box. Ids: `tests.test_x.Class.test_y`.

They run in a copy of this process, which tells what it does; when a test ends or hangs that process,
the test has failed, and the others go on in another copy.
"""

import importlib
import json
import os
import random
import sys
import time
import traceback
import unittest
import unittest.mock
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common
import programs

# A test, or what it tests, may have modules of these names.
del sys.path[0], sys.modules["common"], sys.modules["programs"]

_PATTERN = "test*.py"
_Failure = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


def tell(record: dict[str, Any]) -> None:
    """In the copy: to the process that started it."""
    os.write(programs.RECORDS, json.dumps(record).encode() + b"\n")


class Result(unittest.TestResult):
    """Tells each test's outcome once all of its phases are over; the worst of them counts."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self._names = names
        self._outcome = self._message = ""
        self._began = 0.0

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._outcome = self._message = ""
        self._began = time.monotonic()

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        seconds = round(time.monotonic() - self._began, 6)
        outcome = self._outcome or "error"
        tell(_record(test.id(), outcome, self._message, seconds))

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._note(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: _Failure) -> None:
        self.addError(test, err)

    def addError(self, test: unittest.TestCase, err: _Failure) -> None:
        self._note(test, "failed" if _in_test(test, err) else "error", _said(err))

    def addSubTest(
        self, test: unittest.TestCase, subtest: unittest.TestCase, err: _Failure | None
    ) -> None:
        del subtest
        if err is not None:
            self._note(test, "failed", _said(err))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._note(test, "skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: _Failure) -> None:
        self._note(test, "xfailed", _said(err))

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self._note(test, "xpassed")

    def _note(self, test: unittest.TestCase, outcome: str, message: str = "") -> None:
        whole = getattr(test, "test_case", test)
        if not isinstance(whole, unittest.TestCase):
            self._note_all(str(whole.id()), outcome, message)
        elif self._outcome in ("", "passed", "skipped"):
            self._outcome, self._message = outcome, message

    def _note_all(self, name: str, outcome: str, message: str) -> None:
        """A class or module could not be set up or torn down: so were all of its tests."""
        place = name.partition("(")[2].rstrip(")")
        for test in self._names:
            if test.startswith(f"{place}."):
                tell(_record(test, outcome, f"{name.partition(' ')[0]}: {message}"))


class Suite(unittest.TestSuite):
    """Tells which test is next before what it needs is set up."""

    _cleanup = False

    def __iter__(self) -> Iterator[unittest.TestCase | unittest.TestSuite]:
        for test in super().__iter__():
            tell({"next": test.id() if isinstance(test, unittest.TestCase) else ""})
            yield test
        tell({"next": ""})


def _record(name: str, outcome: str, message: str, seconds: float = 0.0) -> dict[str, Any]:
    text = common.message(message)
    return {"check": name, "outcome": outcome, "seconds": seconds, "message": text}


def _said(err: _Failure) -> str:
    return "".join(traceback.format_exception_only(err[1])).strip() if err[1] else ""


def _in_test(test: unittest.TestCase, err: _Failure) -> bool:
    """Was it raised by the test itself, and not by what sets it up or tears it down?

    unittest calls everything but a failed assertion an error, wherever it was raised.
    """
    name = getattr(test, "_testMethodName", "")
    return any(frame.f_code.co_name == name for frame, _ in traceback.walk_tb(err[2]))


def run_tests(plan: dict[str, Any], done: Collection[str]) -> None:
    """In the copy: all tests but those that are done."""
    tests = [t for t in _loaded(plan) if t.id() not in done]
    if plan["order"] is not None:
        tests = _shuffled(tests, plan["order"])
    tell({"next": ""})
    Suite(tests).run(Result([t.id() for t in tests]))
    tell({"finished": True})


def _loaded(plan: dict[str, Any]) -> list[unittest.TestCase]:
    sys.path.append(plan["workdir"])
    loader = unittest.TestLoader()
    found: list[unittest.TestCase] = []
    for name in _modules(plan):
        try:
            module = importlib.import_module(name)
        except BaseException as error:
            traceback.print_exc()
            tell({"uncollected": name, "message": common.message(str(error))})
        else:
            found += _flat(loader.loadTestsFromModule(module))
    return found


def _modules(plan: dict[str, Any]) -> Iterator[str]:
    pattern = plan["options"].get("pattern", _PATTERN)
    for argument in plan["arguments"]:
        path = Path(argument)
        for file in sorted(path.rglob(pattern)) if path.is_dir() else [path]:
            yield ".".join(file.with_suffix("").parts)


def _flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _flat(test)
        else:
            yield test


def _shuffled(tests: list[unittest.TestCase], seed: int) -> list[unittest.TestCase]:
    """The classes in another order, and the tests of each; what a class sets up is set up once."""
    draw = random.Random(seed)
    classes: dict[str, list[unittest.TestCase]] = {}
    for test in sorted(tests, key=lambda t: t.id()):
        classes.setdefault(test.id().rpartition(".")[0], []).append(test)
    groups = list(classes.values())
    draw.shuffle(groups)
    for group in groups:
        draw.shuffle(group)
    return [test for group in groups for test in group]


class Watch:
    """What one copy has told so far, and how long it may go on."""

    def __init__(self, told: common.Teller, seconds: float | None, uncollected: set[str]) -> None:
        self._told = told
        self._uncollected = uncollected
        """Told already, by an earlier copy as well."""
        self._seconds = seconds
        self._end = float("inf")
        self.done: set[str] = set()
        self.next = ""
        self.last = ""
        self.finished = False

    def limit(self) -> float:
        return self._end

    def hear(self, line: bytes) -> None:
        match programs.parsed(line):
            case {"next": str(name)}:
                self.next = name
                self._end = time.monotonic() + (self._seconds or float("inf"))
            case {"check": str(name)} as record:
                self.done.add(name)
                self.last = name
                self._told(record)
            case {"uncollected": str(name)} as record:
                if name not in self._uncollected:
                    self._told(record)
                self._uncollected.add(name)
            case {"finished": True}:
                self.finished = True
            case _:
                pass


def main() -> None:
    plan, told = common.begin()
    began = time.monotonic()
    sys.path += [p for p in plan["environment"].get("PYTHONPATH", "").split(":") if p]
    done: set[str] = set()
    uncollected: set[str] = set()
    while True:
        watch = Watch(told, plan["check_seconds"], uncollected)
        ended = programs.run(partial(run_tests, plan, done), limit=watch.limit, told=watch.hear)
        if watch.finished:
            break
        if not watch.next:
            _blame_class(watch, told, ended.how)
            break
        told(_record(watch.next, "failed", ended.how))
        done |= watch.done | {watch.next}
    common.finish(plan, told, 0, began)


def _blame_class(watch: Watch, told: common.Teller, how: str) -> None:
    """It ended in no test: while the tests were loaded, or in the last teardown."""
    if not watch.last:
        told({"uncollected": "the tests", "message": how})
    place = watch.last.rpartition(".")[0]
    for name in sorted(watch.done):
        if place and name.startswith(f"{place}."):
            told(_record(name, "error", f"tearDownClass: {how}"))


if __name__ == "__main__":
    main()
