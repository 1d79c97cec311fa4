"""Runs the hidden tests with pytest, in the box: `python3 -P -s run_pytest.py plan.json FD`.

Records go to the descriptor, one JSON object a line. pytest and this file are loaded before the
code under test can be imported, and that code comes last on the search path.
"""

import os
import random
import sys
import time
from collections.abc import Collection
from typing import Any

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

# A test, or what it tests, may have a module of this name.
del sys.path[0], sys.modules["common"]

_PHASES = ["setup", "call", "teardown"]


class Recorder:
    """Tells each test's outcome once all of its phases are over."""

    def __init__(self, tell: common.Teller) -> None:
        self._tell = tell
        self._phases: dict[str, list[pytest.TestReport]] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._tell({"begin": nodeid})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        phases = self._phases.setdefault(report.nodeid, [])
        phases.append(report)
        if report.when == "teardown":
            self._tell(_summary(report.nodeid, self._phases.pop(report.nodeid)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell({"uncollected": report.nodeid, "message": _message(report)})


class Shuffler:
    """Runs the tests in an order drawn with a seed, whatever any other plugin wants.

    -1 is no seed: the other way round.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._seed == -1:
            items.reverse()
            return
        items.sort(key=lambda item: item.nodeid)
        random.Random(self._seed).shuffle(items)


class Resumer:
    """Leaves out what an earlier runner came to."""

    def __init__(self, done: Collection[str]) -> None:
        self._done = frozenset(done)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid not in self._done]


def _summary(nodeid: str, phases: list[pytest.TestReport]) -> dict[str, Any]:
    outcome, message = "passed", ""
    for report in phases:
        found = _outcome(report)
        if found != "passed" and outcome == "passed":
            outcome, message = found, _message(report)
    if outcome == "passed" and [r.when for r in phases] != _PHASES:
        outcome, message = "error", "it was not set up, called and torn down, once each"
    return {
        "check": nodeid,
        "outcome": outcome,
        "seconds": round(sum(r.duration for r in phases), 6),
        "message": message,
    }


def _outcome(report: pytest.TestReport) -> str:
    expected_to_fail = hasattr(report, "wasxfail")
    if report.failed:
        return "failed" if report.when == "call" else "error"
    if report.skipped:
        return "xfailed" if expected_to_fail else "skipped"
    return "xpassed" if expected_to_fail else "passed"


def _message(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return common.message(str(crash.message if crash else report.longrepr or ""))


def main() -> None:
    plan, tell = common.begin()
    plugins: list[object] = [Recorder(tell), Resumer(plan.get("done", ()))]
    if plan["order"] is not None:
        plugins.append(Shuffler(plan["order"]))
    sys.path += [p for p in plan["environment"].get("PYTHONPATH", "").split(":") if p]
    began = time.monotonic()
    options = ["-c", plan["ini"], "--rootdir", plan["workdir"], "--confcutdir", plan["workdir"]]
    quiet = ["-p", "no:cacheprovider", "-q", f"--tb={plan['traceback']}", "--color=no"]
    status = pytest.main([*options, *quiet, *plan["arguments"]], plugins=plugins)
    common.finish(plan, tell, int(status), began)


if __name__ == "__main__":
    main()
