"""How fast boxes are, beside what else makes sandboxes: taking turns, in one run.

    ci/bench boxes [--rounds 15] [--quick] [--strict]
    ci/bench boxes --table bench-boxes.json          print the tables of a run that is over
    ci/bench boxes --write-docs [bench-boxes.json]   put them into docs/reference/benchmarks.md

Every round has a turn of each subject, in another order each time and without a pause. A first
round warms up and is not counted. All boxes have memory and process limits, but those of bubblewrap
and the raw limit, which have none to set. The embedded runtime is used as it comes: that includes
two blanks, first processes which it orders ahead whenever it has finished a box; what happens when
they are used up is a subject of its own. Timings are of this machine, now: compare within one run.
"""

import argparse
import random
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from sandbox.errors import Fault
from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.store import Store
from tests.bench import engine, loads, machine, report
from tests.bench.clock import TROUBLE, Clock, Subject
from tests.bench.others import Bubblewrap, DockerRun, NaiveSdk, Raw
from tests.bench.product import InARow, Pooled, Product, spec_of
from tests.bench.program import Bench, plain, run, say
from tests.support.tinyimage import tiny_image

JOBS = (1, 2, 8, 32)
IDLE_CONTAINERS = 10
TIRED = 3
"""A subject that fails so often is left out."""


class Turns:
    """One run: its place, its subjects, and what was found."""

    def __init__(self, options: argparse.Namespace, stack: ExitStack) -> None:
        self._options = options
        self._stack = stack
        self._token = secrets.token_hex(6)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stillroom-bench-")))
        self._folder = folder
        self._store = Store(folder / "store")
        self._image = tiny_image(self._store)
        self._subjects: list[Subject] = []
        self._clocks: dict[str, Clock] = {}
        self._sdk: NaiveSdk | None = None
        self.left_out: dict[str, str] = {}

    def open(self) -> None:
        """Have every subject that can be had here."""
        image, store, folder = self._image, self._store, self._folder
        self._add("embedded", lambda: Product("embedded", EmbeddedRuntime(store), image))
        self._add("embedded, warm pool", lambda: Pooled(EmbeddedRuntime(store), image))
        self._add("embedded in a row", lambda: InARow(EmbeddedRuntime(store), image))
        if self._options.no_docker:
            self.left_out["docker"] = "not asked for"
        elif self._load():
            self._add("docker", lambda: Product("docker", DockerRuntime(store), image))
            self._add("docker run", lambda: DockerRun(image, self._token))
            self._sdk = self._add("Docker SDK", lambda: NaiveSdk(image, self._token))
        bwrap = self._options.bwrap
        if shutil.which(bwrap):
            self._add("bubblewrap", lambda: Bubblewrap(image, folder, bwrap))
        else:
            self.left_out["bubblewrap"] = f"there is no {bwrap}: apt-get install bubblewrap"
        self._add("raw limit", lambda: Raw(image, folder, mapped=False))
        self._add("raw limit, mapped", lambda: Raw(image, folder, mapped=True))

    def take_turns(self) -> dict[str, Clock]:
        rounds = self._options.rounds
        tired = dict.fromkeys(self._clocks, 0)
        for number in range(rounds + 1):
            say(f"round {number} of {rounds}")
            turns = list(self._subjects)
            random.Random(number).shuffle(turns)
            for subject in turns:
                if tired[subject.name] >= TIRED:
                    continue
                clock = Clock() if number == 0 else self._clocks[subject.name]
                try:
                    subject.round(clock)
                except TROUBLE as e:
                    tired[subject.name] += 1
                    self.left_out[subject.name] = f"round {number}: {type(e).__name__}: {e}"
        return self._clocks

    def throughput(self) -> dict[str, dict[str, Any]]:
        seconds = self._options.seconds
        found: dict[str, dict[str, Any]] = {}
        runtime = EmbeddedRuntime(self._store)
        with ExitStack() as stack:
            stack.callback(runtime.close)
            cycles = {"embedded": loads.embedded_cycle(runtime, spec_of(self._image))}
            if self._sdk:
                cycles["Docker SDK"] = loads.sdk_cycle(self._sdk)
            for name, cycle in cycles.items():
                found[name] = {}
                for jobs in JOBS:
                    say(f"throughput of {name}, {jobs} concurrent")
                    found[name][str(jobs)] = loads.throughput(cycle, jobs, seconds)
        return found

    def idle(self) -> dict[str, Any]:
        say("memory and disk at rest")
        boxes = self._options.idle
        found = {"embedded": loads.idle_embedded(self._store, self._image, boxes)}
        if self._sdk:
            found["Docker SDK"] = loads.idle_docker(self._sdk, min(boxes, IDLE_CONTAINERS))
        return found

    def images(self) -> dict[str, Any]:
        if self._options.quick:
            self.left_out["the image's size"] = "quick"
            return {}
        sizes = (self._options.small_mib, self._options.big_mib)
        images = {}
        for mib in sizes:
            say(f"writing an image of {mib} MiB")
            images[f"{mib} MiB"] = loads.padded(self._image, self._store, mib)
        return {"ms": loads.by_image_size(self._store, images, self._options.rounds)}

    def close_subjects(self) -> None:
        """They are no company for what is measured next; the SDK's client is still needed."""
        for subject in self._subjects:
            if subject is not self._sdk:
                with suppress(*TROUBLE):
                    subject.close()
        self._subjects = []

    def _add(self, name: str, make: Callable[[], Any]) -> Any:
        try:
            subject = make()
        except TROUBLE as e:
            self.left_out[name] = f"{type(e).__name__}: {e}"
            return None
        self._stack.callback(_close_quietly, subject)
        self._subjects.append(subject)
        self._clocks[subject.name] = Clock()
        return subject

    def _load(self) -> bool:
        try:
            engine.load(self._store, self._image, self._stack)
        except (Fault, OSError) as e:
            self.left_out["docker"] = str(e)
            return False
        return True


def measure(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {"machine": machine.facts(), "options": plain(options)}
    with ExitStack() as stack:
        turns = Turns(options, stack)
        turns.open()
        clocks = turns.take_turns()
        turns.close_subjects()
        found["ms"] = {
            name: {measure: [round(x, 3) for x in ms] for measure, ms in clock.ms.items()}
            for name, clock in clocks.items()
        }
        found["failed"] = {name: clock.failed for name, clock in clocks.items() if clock.failed}
        found["throughput"] = turns.throughput()
        found["idle"] = turns.idle()
        found["images"] = turns.images()
        found["left_out"] = turns.left_out
    found["machine"]["load_after"] = machine.load()
    found["bounds"] = [bound.as_json() for bound in report.bounds(found)]
    return found


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--rounds", type=int, default=15, help="of each subject (15)")
    add("--seconds", type=float, default=6.0, help="of each throughput (6)")
    add("--idle", type=int, default=50, help="boxes at rest (50)")
    add("--small-mib", type=int, default=120, help="the small image (120)")
    add("--big-mib", type=int, default=1600, help="the big image (1600)")
    add("--bwrap", default="bwrap", help="the bubblewrap to use; with --overlay from 0.11 on")
    add("--no-docker", action="store_true", help="leave all of Docker out")
    add("--quick", action="store_true", help="3 rounds, 2 seconds, 5 boxes, no image sizes")


def _settle(options: argparse.Namespace) -> None:
    if options.quick:
        options.rounds, options.seconds, options.idle = 3, 2.0, 5


def _close_quietly(subject: Subject) -> None:
    """Harmless the second time; what cannot be closed must not keep the others from it."""
    with suppress(*TROUBLE):
        subject.close()


if __name__ == "__main__":
    program = Bench(
        name="boxes",
        about=__doc__,
        arguments=_arguments,
        settle=_settle,
        measure=measure,
        tables=report.tables,
    )
    sys.exit(run(program))
