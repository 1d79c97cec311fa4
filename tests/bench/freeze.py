"""What a clock of its own costs a box: programs in two boxes that differ in nothing else, by turns.

    ci/bench freeze [--rounds 7] [--no-docker] [--quick] [--strict]
    ci/bench freeze --write-docs [bench-freeze.json]

Reads of the clock, in C and in Python; stat; the small programs of a configure script; a build with
make and the machine's C compiler; the hidden tests of a task; and how long a box takes to start.
The build runs on this machine, not in a box: natively, and below the supervisor that a box has.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sandbox.formats.taskfile import load_task
from sandbox.model.task import Limits
from sandbox.rollout.run import agent_box
from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.freeze import build
from sandbox.runtime.spec import BoxSpec, Mount, Stillness
from sandbox.runtime.store import Store, default_store
from sandbox.runtime.supplies import Depot
from sandbox.runtime.tarball import pack
from tests.bench import freezereport as f
from tests.bench import machine
from tests.bench.clock import TROUBLE
from tests.bench.program import Bench, plain, run, say
from tests.support.compiled import c, compiled

SOURCES = Path(__file__).with_name("stillness")
PROGRAMS = (c("reads", "reads.c"), c("stats", "stats.c"))
PIN_NS = 1_715_774_400 * 10**9
TASK = "click-8.1.3"
LIMITS = Limits(memory_mib=1024, pids=512, cpus=2.0)
SECONDS = 600.0
FILES = 60
"""Of the build."""
Turn = Callable[[], dict[str, float]]
"""What it measured: measure → figure."""


class Pair:
    """Two boxes of one runtime, one with a clock of its own."""

    def __init__(self, runtime: Runtime, spec: BoxSpec, options: argparse.Namespace) -> None:
        self._runtime = runtime
        still = Stillness(at_ns=PIN_NS)
        self._specs = {f.PLAIN: spec, f.TICKING: replace(spec, still=still)}
        self._options = options
        self.boxes: dict[str, Box] = {}

    def open(self, stack: ExitStack, tests: bytes) -> None:
        for name, spec in self._specs.items():
            box = self.boxes[name] = stack.enter_context(self._runtime.create(spec))
            box.put(tests, spec.workdir)

    def turns(self, box: Box, name: str) -> Iterator[Turn]:
        reads, steps = self._options.reads, self._options.steps
        python = (
            "import time; t = time.time; b = time.perf_counter_ns()\n"
            f"for _ in range({reads}): t()\n"
            f"print((time.perf_counter_ns() - b) / {reads})"
        )
        tests = ("python3", "-m", "pytest", "-q", "tests")
        yield lambda: {f.C_READS: float(must(box, "/bench/reads", str(reads)))}
        yield lambda: {f.PYTHON_READS: float(must(box, "python3", "-c", python))}
        yield lambda: {f.STAT: float(must(box, "/bench/stats", "20000"))}
        yield lambda: _timed(box, f.CONFIGURE, "sh", "/bench/configure.sh", str(steps), cwd="/tmp")
        yield lambda: _timed(box, f.TESTS, *tests, failing=True)
        yield lambda: {f.START: self._start(name)}

    def _start(self, name: str) -> float:
        began = time.perf_counter_ns()
        with self._runtime.create(self._specs[name]) as box:
            must(box, "true")
            took = time.perf_counter_ns() - began
        return took / 1e6


def must(box: Box, *argv: str, cwd: str | None = None, failing: bool = False) -> str:
    """`failing`: exit code 1 will do, as of tests when nobody has done the task."""
    done = box.exec(list(argv), seconds=SECONDS, cwd=cwd, output_bytes=1 << 20)
    if done.exit_code not in ((0, 1) if failing else (0,)):
        words = (done.stdout + done.stderr)[-500:]
        raise OSError(f"{argv[0]}: exit code {done.exit_code}: {words!r}")
    return done.stdout.decode(errors="replace")


def _timed(
    box: Box, what: str, *argv: str, cwd: str | None = None, failing: bool = False
) -> dict[str, float]:
    """By the clock on the wall, and processor time, of all that is in the box: also what holds its
    clock. The first tells what a person waits; the second, more when others use the machine.
    """
    before, began = box.stats().cpu_seconds, time.perf_counter_ns()
    must(box, *argv, cwd=cwd, failing=failing)
    took = (time.perf_counter_ns() - began) / 1e6
    return {what: took, f.cpu(what): (box.stats().cpu_seconds - before) * 1e3}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {"machine": machine.facts(), "options": plain(options)}
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    left_out: dict[str, str] = {}
    store = default_store(os.environ)
    with ExitStack() as stack:
        for kind in ("embedded",) if options.no_docker else ("embedded", "docker"):
            try:
                values[kind] = _in_boxes(kind, store, options)
            except TROUBLE as e:
                left_out[kind] = f"{type(e).__name__}: {e}"
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stillroom-")))
            values[f.HOST] = _builds(store, folder, options.rounds)
        except TROUBLE as e:
            left_out[f.BUILD] = f"{type(e).__name__}: {e}"
    found |= {"values": values, "left_out": left_out}
    found["machine"]["load_after"] = machine.load()
    found["bounds"] = [bound.as_json() for bound in f.bounds(found)]
    return found


def _in_boxes(
    kind: str, store: Store, options: argparse.Namespace
) -> dict[str, dict[str, list[float]]]:
    task = load_task(Path.cwd(), TASK)
    supplies = Depot(store, lambda *_: None).supply(task)
    mount = Mount(source=compiled(store, SOURCES, PROGRAMS), target="/bench")
    spec = replace(agent_box(task, supplies), limits=LIMITS, mounts=(mount,))
    values: dict[str, dict[str, list[float]]] = {}
    with _opened(kind, store) as runtime, ExitStack() as stack:
        if why := runtime.capabilities().still:
            raise OSError(why)
        pair = Pair(runtime, spec, options)
        pair.open(stack, pack(supplies.tests))
        for number in range(options.rounds + 1):
            say(f"{kind}: round {number} of {options.rounds}")
            _take_turns(pair, values, number)
    return values


def _take_turns(pair: Pair, values: dict[str, dict[str, list[float]]], number: int) -> None:
    """Measure by measure, each box after the other; who comes first changes. Round 0 warms up."""
    names = (f.PLAIN, f.TICKING) if number % 2 else (f.TICKING, f.PLAIN)
    for both in zip(*(pair.turns(pair.boxes[name], name) for name in names), strict=True):
        for name, turn in zip(names, both, strict=True):
            for what, took in turn().items():
                if number:
                    values.setdefault(what, {}).setdefault(name, []).append(took)


@contextmanager
def _opened(kind: str, store: Store) -> Iterator[Runtime]:
    made: Runtime = DockerRuntime(store) if kind == "docker" else EmbeddedRuntime(store)
    try:
        yield made
    finally:
        made.close()


def _builds(store: Store, folder: Path, rounds: int) -> dict[str, dict[str, list[float]]]:
    """`make -j2` of small C files, natively and below the supervisor."""
    objects = " ".join(f"{n}.o" for n in range(FILES))
    for n in range(FILES):
        source = f'#include <stdio.h>\nint f{n}(int a) {{ return printf("%d", a * {n}); }}\n'
        (folder / f"{n}.c").write_text(source, encoding="utf-8")
    rules = f"all.a: {objects}\n\tar rc all.a {objects}\n%.o: %.c\n\t$(CC) -O1 -c -o $@ $<\n"
    (folder / "Makefile").write_text(rules, encoding="utf-8")
    still = [str(build.programs(store).still), "run", "--at", str(PIN_NS), "--"]
    subjects = {f.PLAIN: [], f.TICKING: still}
    values: dict[str, dict[str, list[float]]] = {
        what: {name: [] for name in subjects} for what in (f.BUILD, f.cpu(f.BUILD))
    }
    for number in range(rounds + 1):
        say(f"build: round {number} of {rounds}")
        for name in sorted(subjects, reverse=number % 2 == 1):
            for made in folder.glob("*.[oa]"):
                made.unlink()
            before, began = _processor_ms(), time.perf_counter_ns()
            argv = [*subjects[name], "make", "-s", "-j2"]
            subprocess.run(argv, cwd=folder, check=True, capture_output=True, timeout=SECONDS)
            if number:
                values[f.BUILD][name].append((time.perf_counter_ns() - began) / 1e6)
                values[f.cpu(f.BUILD)][name].append(_processor_ms() - before)
    return values


def _processor_ms() -> float:
    """Of all that was waited for, and of what that has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e3


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--rounds", type=int, default=7, help="of all (7)")
    add("--reads", type=int, default=10_000_000, help="of the clock (10,000,000)")
    add("--steps", type=int, default=150, help="of the configure script, six programs each (150)")
    add("--no-docker", action="store_true", help="leave all of Docker out")
    add("--quick", action="store_true", help="a little of everything, to see that it works")


def _settle(options: argparse.Namespace) -> None:
    if options.quick:
        options.rounds, options.reads, options.steps = 1, 100_000, 20


if __name__ == "__main__":
    program = Bench(
        name="freeze",
        about=__doc__,
        arguments=_arguments,
        settle=_settle,
        measure=measure,
        tables=f.tables,
    )
    sys.exit(run(program))
