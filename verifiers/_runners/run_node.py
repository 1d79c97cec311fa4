"""Runs hidden tests written for node's test runner, in the box. Ids: `FILE > suite > test`.

Each file is a process of its own, in which a reporter of ours tells what node's runner reports; what
the file prints is no part of it. A file is a check as well: it passes if node says so when it ends.
"""

import os
import random
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common
import programs

_TEST_FILE = re.compile(r"(test|test-.+|.+[._-]test)\.[cm]?js")
_NOT_RUN = ("hookFailed", "cancelledByParent")


class File:
    """What one file's process has told, and how long it may go on."""

    def __init__(self, path: str, tell: common.Teller, seconds: float | None) -> None:
        self._path = path
        self._tell = tell
        self._seconds = seconds or float("inf")
        # What loading takes counts for the first test; one that never waits lets nobody tell it began.
        self._end = time.monotonic() + self._seconds
        self._reported: list[str] = []
        self._running: list[str] = []
        self.told: set[str] = set()
        self.open = 0
        """Tests that were begun and not told of. (Some are told of that never began.)"""

    def limit(self) -> float:
        return self._end

    @property
    def running(self) -> str:
        """The id of the test that is being run."""
        return " > ".join((self._path, *self._running))

    def hear(self, line: bytes) -> None:
        match programs.parsed(line):
            case {"type": "test:dequeue", "name": str(name), "nesting": int(depth)}:
                self.open += 1
                self._running = [*self._running[:depth], name]
                self._end = time.monotonic() + self._seconds
            case {"type": "test:start", "name": str(name), "nesting": int(depth)}:
                self._reported = [*self._reported[:depth], name]
            case {"type": str(kind), "name": str(name), "nesting": int(depth)} as event:
                check = " > ".join((self._path, *self._reported[:depth], name))
                self._report(check, kind, event)
            case _:
                pass

    def _report(self, check: str, kind: str, event: dict[str, Any]) -> None:
        self.told.add(check)
        self.open -= 1
        self._tell(
            {
                "check": check,
                "outcome": outcome(kind, event),
                "seconds": event.get("seconds", 0),
                "message": str(event.get("message", "")),
            }
        )


def outcome(kind: str, event: dict[str, Any]) -> str:
    passed = kind == "test:pass"
    if event.get("skip"):
        return "skipped"
    if event.get("todo"):
        return "xpassed" if passed else "xfailed"
    if passed:
        return "passed"
    return "error" if event.get("why") in _NOT_RUN else "failed"


def files(arguments: list[str]) -> Iterator[str]:
    for argument in arguments:
        path = Path(argument)
        if not path.is_dir():
            yield argument
            continue
        found = (p for p in sorted(path.rglob("*")) if _TEST_FILE.fullmatch(p.name))
        yield from (str(p) for p in found if "node_modules" not in p.parts)


def run_file(path: str, tell: common.Teller, plan: dict[str, Any]) -> None:
    file = File(path, tell, plan["check_seconds"])
    beside = Path(__file__).resolve().parent
    reporter = (beside / "node_reporter.mjs").as_uri()
    # Nothing is written to it; /dev/null will not do, as node 22 flushes a file to the disk.
    options = [f"--test-reporter={reporter}", "--test-reporter-destination=stderr"]
    options += [f"--require={beside / 'node_between.cjs'}"]
    extra = [f"--{name}={value}" for name, value in sorted(plan["options"].items())]
    program = ("node", *options, *extra, path)
    ended = programs.run(program, limit=file.limit, told=file.hear)
    message = "it ended within a test" if file.open > 0 else ""
    if ended.status != 0:
        message = f"{ended.how}; its last words: {ended.words[-500:]}"
    if ended.status is None and file.running not in file.told:
        tell({"check": file.running, "outcome": "failed", "message": ended.how})
    elif not file.told:
        tell({"uncollected": path, "message": message or "no test in it"})
    passed = ended.status == 0 and file.told and file.open <= 0
    spent = round(ended.seconds, 6)
    told = {"check": path, "outcome": "passed" if passed else "failed"}
    tell({**told, "seconds": spent, "message": message})


def main() -> None:
    plan, tell = common.begin()
    began = time.monotonic()
    found = list(files(plan["arguments"]))
    if plan["order"] is not None:
        random.Random(plan["order"]).shuffle(found)
    for path in found:
        run_file(path, tell, plan)
    common.finish(plan, tell, 0, began)


if __name__ == "__main__":
    main()
