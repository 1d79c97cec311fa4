"""Runs hidden Go tests, in the box. Ids: `import/path.TestName` and `import/path.TestName/sub`.

Each package's tests are built once, and each of its tests is a process of its own: it has passed if
that process ended with 0, and said so. Nothing is fetched, and no cache is used that was there.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common
import programs

_NAMES = re.compile(r"^func ((?:Test|Example|Fuzz)\w*)\(", re.MULTILINE)
_RESULT = re.compile(r"--- (PASS|FAIL|SKIP): (\S+) \((\d+\.\d+)s\)$")
"""At a line's end: what was printed before it need not have ended its line."""
_OUTCOMES = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    folder: str
    tests: tuple[str, ...]
    """As its sources name them."""


def packages(patterns: list[str], flags: list[str]) -> tuple[list[Package], str]:
    """Those that have tests; and what is wrong with them."""
    program = ["go", "list", "-e", "-json", *flags, *patterns]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    found = []
    for raw in _values(done.stdout):
        files = [*raw.get("TestGoFiles", ()), *raw.get("XTestGoFiles", ())]
        if files:
            tests = tuple(t for f in files for t in _tests(os.path.join(raw["Dir"], f)))
            found.append(Package(raw["ImportPath"], raw["Dir"], tests))
    return found, done.stderr.strip()


def _values(text: str) -> Iterator[dict[str, Any]]:
    """`go list` writes one JSON value after the other."""
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        yield value


def _tests(path: str) -> list[str]:
    with open(path, encoding="utf-8", errors="replace") as f:
        return [name for name in _NAMES.findall(f.read()) if name != "TestMain"]


class Bench:
    """Where the tests of one run are built and run."""

    def __init__(self, plan: dict[str, Any], tell: common.Teller, scratch: str) -> None:
        self._plan = plan
        self._tell = tell
        self._scratch = scratch
        options = plan["options"]
        self._flags = [f"-{name}={options[name]}" for name in sorted(options)]

    def run(self) -> None:
        arguments = [a if a.startswith(".") else f"./{a}" for a in self._plan["arguments"]]
        found, wrong = packages(arguments, self._flags)
        if wrong or not found:
            self._tell({"uncollected": "the packages", "message": common.message(wrong)})
        order = self._plan["order"]
        if order is not None:
            random.Random(order).shuffle(found)
        for package in found:
            self._package(package)

    def _package(self, package: Package) -> None:
        program = os.path.join(self._scratch, "tests")
        build = ["go", "test", "-c", "-vet=off", *self._flags, "-o", program, package.name]
        built = programs.run(build, limit=programs.within(None))
        if built.status != 0:
            self._not_built(package, common.message(built.words))
            return
        listed = self._listed(program, package)
        names = [n for n in listed if n.startswith(("Test", "Example", "Fuzz"))]
        if self._plan["order"] is not None:
            random.Random(self._plan["order"]).shuffle(names)
        for name in names:
            self._test(program, package, name)

    def _not_built(self, package: Package, why: str) -> None:
        self._tell({"uncollected": package.name, "message": why})
        for name in package.tests:
            told = {"check": f"{package.name}.{name}", "outcome": "error"}
            self._tell({**told, "message": f"it cannot be built: {why}"})

    def _listed(self, program: str, package: Package) -> list[str]:
        """In the order of its sources. A package's own main may do as it likes: it may not list."""
        found: list[str] = []

        def hear(line: bytes) -> None:
            found.append(line.decode("utf-8", "replace"))

        limit = programs.within(self._plan["check_seconds"])
        done = programs.run(
            [program, "-test.list=."], limit=limit, cwd=package.folder, printed=hear
        )
        if done.status != 0:
            self._not_built(package, f"it does not list its tests: {done.how}")
            return []
        return [name for name in dict.fromkeys(found) if name in package.tests]

    def _test(self, program: str, package: Package, name: str) -> None:
        said: dict[str, tuple[str, float]] = {}

        def hear(line: bytes) -> None:
            if result := _RESULT.search(line.decode("utf-8", "replace")):
                verdict, test, seconds = result.groups()
                known = said.get(test, ("passed", 0.0))
                if known[0] == "passed":
                    said[test] = (_OUTCOMES[verdict], float(seconds))

        arguments = [f"-test.run=^{name}$", "-test.v", "-test.paniconexit0", "-test.count=1"]
        limit = programs.within(self._plan["check_seconds"])
        ended = programs.run([program, *arguments], limit=limit, cwd=package.folder, printed=hear)
        whole = said.pop(name, ("", 0.0))[0]
        for test, (outcome, seconds) in said.items():
            if test.startswith(f"{name}/"):
                told = {"check": f"{package.name}.{test}", "outcome": outcome}
                self._tell({**told, "seconds": seconds})
        if ended.status == 0 and whole:
            outcome, message = whole, ""
        else:
            outcome, message = "failed", f"{ended.how}: {ended.words[-700:]}"
        told = {"check": f"{package.name}.{name}", "outcome": outcome}
        spent = round(ended.seconds, 6)
        self._tell({**told, "seconds": spent, "message": common.message(message)})


def main() -> None:
    plan, tell = common.begin()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        offline = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": ""}
        os.environ.update(offline, GOCACHE=os.path.join(scratch, "cache"), GOTMPDIR=scratch)
        Bench(plan, tell, scratch).run()
    common.finish(plan, tell, 0, began)


if __name__ == "__main__":
    main()
