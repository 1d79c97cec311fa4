"""Thousands of boxes, one after the other: does anything of what they take stay?"""

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sandbox.runtime.base import Box
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.spec import BoxSpec, Image
from sandbox.runtime.store import Store
from tests.bench import machine
from tests.bench.figures import Growth, growth
from tests.bench.machine import MIB
from tests.bench.product import LIMITS, SECONDS, payload_tar, spec_of, true
from tests.support.leftovers import leftovers

WARM_UP = 50
SAMPLES = 80
THOROUGH, LOOPED = 25, 200
"""Every so many cycles: one that uses all a box can do; one whose disk is a loop device."""
MARGINS = {
    "controller PSS, MiB": 2.0,
    "controller RSS, MiB": 2.0,
    "controller descriptors": 8.0,
    "controller threads": 2.0,
    "zygote PSS, MiB": 1.0,
    "zygote RSS, MiB": 1.0,
    "zygote descriptors": 4.0,
    "mounts seen by the controller": 0.5,
    "mounts seen by the zygote": 0.5,
    "cgroup folders": 15.0,
    "processes": 3.0,
    "disk, KiB": 256.0,
    "loop devices": 0.5,
}
"""What is sampled, and how much more of it is noise: whether two blanks are there or none at that
moment makes two processes, ten cgroup folders and 72 KiB."""


def run(store: Store, image: Image, cycles: int, jobs: int) -> Iterator[dict[str, Any]]:
    """Yields after every sample what there is so far; the last one is complete."""
    found: dict[str, Any] = {"cycles": 0, "jobs": jobs, "failed": 0, "errors": [], "samples": []}
    runtime = EmbeddedRuntime(store)
    workers = ThreadPoolExecutor(jobs)
    began = time.perf_counter()
    try:
        cycle = Cycle(runtime, spec_of(image))
        list(workers.map(cycle, range(min(cycles, WARM_UP))))
        for number in range(SAMPLES):
            share = range(cycles * number // SAMPLES, cycles * (number + 1) // SAMPLES)
            list(workers.map(cycle, share))
            found["cycles"] = share.stop
            found["seconds"] = round(time.perf_counter() - began, 1)
            found["failed"], found["errors"] = cycle.failed, cycle.errors
            found["samples"].append(sample(store))
            yield found
    finally:
        workers.shutdown(cancel_futures=True)
        runtime.close()
        found["left"] = leftovers(store)
    yield found


class Cycle:
    """Called with a number, from several threads; a failure is counted, and the first are kept."""

    def __init__(self, runtime: EmbeddedRuntime, spec: BoxSpec) -> None:
        self._runtime = runtime
        self._spec = spec
        self._archive = payload_tar()
        self._loops = "loop" in runtime.capabilities().disk
        self._lock = threading.Lock()
        self.failed = 0
        self.errors: list[str] = []

    def __call__(self, number: int) -> None:
        try:
            with self._runtime.create(self._spec_of(number)) as box:
                true(box)
                if number % THOROUGH == 1:
                    self._everything(box)
        except Exception as e:  # noqa: BLE001 - counted, and shown
            with self._lock:
                self.failed += 1
                if len(self.errors) < 10:
                    self.errors.append(f"cycle {number}: {type(e).__name__}: {e}")

    def _spec_of(self, number: int) -> BoxSpec:
        if not self._loops or number % LOOPED != LOOPED - 1:
            return self._spec
        return replace(self._spec, limits=replace(LIMITS, disk="loop", disk_mib=32))

    def _everything(self, box: Box) -> None:
        box.put(self._archive, "/tmp")
        list(box.get("/tmp/payload"))
        with suppress(FileNotFoundError):
            list(box.get("/no/such/path"))
        box.open_pty(["sh"]).close()
        box.exec(["true"], seconds=SECONDS, trusted=True)
        box.changes()
        with box.fork() as other:
            true(other)
        box.reset()
        box.freeze()
        box.thaw()
        box.kill_all()
        box.stats()
        true(box)


def sample(store: Store) -> dict[str, float]:
    """Taken when no cycle is going on. The keys are those of MARGINS."""
    us, zygote = os.getpid(), machine.zygote_of(store, os.getpid())
    values = (
        machine.pss(us) / MIB,
        machine.rss(us) / MIB,
        machine.descriptors(us),
        threading.active_count(),
        machine.pss(zygote) / MIB,
        machine.rss(zygote) / MIB,
        machine.descriptors(zygote),
        machine.mounts(store, us),
        machine.mounts(store, zygote),
        machine.group_folders(store),
        len(machine.processes_of(store)),
        machine.allocated(store.root / "boxes") / 1024,
        machine.loops(),
    )
    return {name: round(value, 2) for name, value in zip(MARGINS, values, strict=True)}


def growths(samples: list[dict[str, float]]) -> list[Growth]:
    return [
        growth(name, [sample[name] for sample in samples], least=margin)
        for name, margin in MARGINS.items()
    ]
