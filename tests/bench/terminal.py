"""The terminal, beside other ways to drive a shell: taking turns, in one run.

    ci/bench terminal [--only latency|throughput|many|input] [--quick] [--strict]
    ci/bench terminal --write-docs [bench-terminal.json]

Latency: `true`, of ours on each runtime, a bare PTY, SWE-ReX, `docker exec`, the Docker SDK,
libtmux, pexpect with its delays. Throughput: much output, beside a loop that only reads. Many: 200
terminals with a program in each, 100 sessions together. Input: is it said of a program that it
waits for somebody to type when it does, and only then? What is not here is named and left out.
SWE-ReX and libtmux are installed from PyPI, each into a virtual environment in the user's cache.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store
from tests.bench import crowd, engine, flood, latency, machine, ours, termreport, waiting
from tests.bench.clock import TROUBLE
from tests.bench.program import Bench, plain, run, say
from tests.support.leftovers import leftovers
from tests.support.tinyimage import tiny_image

SECTIONS = ("latency", "throughput", "many", "input")
QUICK_PART = 50
"""Of the output that the throughput is measured with."""


class Parts:
    """The sections of one run, in one store."""

    def __init__(self, options: argparse.Namespace, store: Store, image: Image) -> None:
        self._options, self._store, self._image = options, store, image
        self.kinds: tuple[ours.Kind, ...] = ours.KINDS

    def latency(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="stillroom-bench-") as folder:
            rounds = self._options.rounds
            return latency.measure(self._store, self._image, Path(folder), self.kinds, rounds)

    def throughput(self) -> dict[str, Any]:
        part = QUICK_PART if self._options.quick else 1
        return flood.measure(self._store, self._image, self.kinds, part)

    def many(self) -> dict[str, Any]:
        options, store, image = self._options, self._store, self._image
        left_out: dict[str, str] = {}
        found: dict[str, Any] = {"left_out": left_out}
        count, sessions = options.terminals, options.sessions
        say(f"{count} terminals at once")
        alive = _try("alive", left_out, lambda: crowd.measure_alive(store, image, count))
        found["alive"] = alive or {}
        found["rates"] = {}
        for kind in self.kinds:
            say(f"{sessions} sessions together, {kind}")
            rate = _try(
                f"sessions together, {kind}",
                left_out,
                lambda kind=kind: crowd.measure_rate(  # type: ignore[misc]
                    kind, store, image, sessions, options.commands
                ),
            )
            found["rates"] |= {kind: rate} if rate else {}
        return found

    def input(self) -> dict[str, Any]:
        left_out: dict[str, str] = {}
        kinds: dict[str, Any] = {}
        runs, rounds = self._options.runs, self._options.cats
        for kind in self.kinds:
            say(f"who waits for input, {kind}")
            found = _try(
                f"input, {kind}",
                left_out,
                lambda kind=kind: waiting.measure(  # type: ignore[misc]
                    kind, self._store, self._image, runs, rounds
                ),
            )
            kinds |= {kind: found} if found else {}
        return {"kinds": kinds, "left_out": left_out}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {"machine": machine.facts(), "options": plain(options)}
    with ExitStack() as stack:
        prefix = "stillroom-terminal-"
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix)))
        store = Store(folder / "store")
        parts = Parts(options, store, tiny_image(store))
        without = _without_docker(options, store, parts._image, stack)
        if without:
            parts.kinds = ("embedded",)
        for section in SECTIONS:
            if section in (options.only or SECTIONS):
                say(f"{section}:")
                found[section] = getattr(parts, section)()
                found[section]["left_out"] |= without
        found["left"] = leftovers(store)
    found["machine"]["load_after"] = machine.load()
    found["bounds"] = [bound.as_json() for bound in termreport.bounds(found)]
    return found


def _without_docker(
    options: argparse.Namespace, store: Store, image: Image, stack: ExitStack
) -> dict[str, str]:
    """Why there is none; empty if there is one."""
    if options.no_docker:
        return {"docker": "not asked for"}
    why: dict[str, str] = {}
    _try("docker", why, lambda: engine.load(store, image, stack))
    return why


def _try(name: str, left_out: dict[str, str], work: Callable[[], Any]) -> Any:
    """None, and the reason noted, if it cannot be done here: the rest still is."""
    try:
        return work()
    except TROUBLE as e:
        left_out[name] = f"{type(e).__name__}: {e}"
        return None


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--only", action="append", choices=SECTIONS, help="this section; may be given again")
    add("--rounds", type=int, default=1000, help="commands of each subject; slow ones: a tenth")
    add("--terminals", type=int, default=200, help="with a program in each (200)")
    add("--sessions", type=int, default=100, help="together (100)")
    add("--commands", type=int, default=10_000, help="of all sessions together (10,000)")
    add("--runs", type=int, default=1000, help="of programs that wait for nobody (1,000)")
    add("--cats", type=int, default=20, help="programs that wait for input (20)")
    add("--no-docker", action="store_true", help="leave all of Docker out")
    add("--quick", action="store_true", help="a little of everything, to see that it works")


def _settle(options: argparse.Namespace) -> None:
    if options.quick:
        options.rounds, options.terminals, options.sessions = 20, 12, 8
        options.commands, options.runs, options.cats = 80, 40, 3


if __name__ == "__main__":
    program = Bench(
        name="terminal",
        about=__doc__,
        arguments=_arguments,
        settle=_settle,
        measure=measure,
        tables=termreport.tables,
    )
    sys.exit(run(program))
