"""Hundreds of boxes alive at one time."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sandbox.runtime.base import Box
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store
from tests.bench import machine
from tests.bench.machine import MIB
from tests.bench.product import SECONDS, spec_of
from tests.support.leftovers import leftovers

_JOBS = 8


def run(store: Store, image: Image, count: int) -> dict[str, Any]:
    """Make them all, ask each for one answer, look what they take, destroy them all."""
    spec = spec_of(image)
    found: dict[str, Any] = {"wanted": count, "made": 0, "answered": 0, "errors": []}
    runtime = EmbeddedRuntime(store)
    boxes: list[Box] = []

    def make(_: int) -> None:
        try:
            boxes.append(runtime.create(spec))
        except Exception as e:  # noqa: BLE001 - counted, and shown
            found["errors"].append(f"create: {type(e).__name__}: {e}")

    def answers(box: Box) -> bool:
        try:
            return box.exec(["echo", box.id], seconds=SECONDS).stdout.decode().strip() == box.id
        except Exception as e:  # noqa: BLE001 - counted, and shown
            found["errors"].append(f"exec: {type(e).__name__}: {e}")
            return False

    with ThreadPoolExecutor(_JOBS) as workers:
        try:
            began = time.perf_counter()
            list(workers.map(make, range(count)))
            found["create_seconds"] = round(time.perf_counter() - began, 2)
            found["made"] = len(boxes)
            began = time.perf_counter()
            found["answered"] = sum(workers.map(answers, boxes))
            found["answer_seconds"] = round(time.perf_counter() - began, 2)
            found |= _taken(store, len(boxes))
            began = time.perf_counter()
            list(workers.map(lambda box: box.destroy(), boxes))
            found["destroy_seconds"] = round(time.perf_counter() - began, 2)
        finally:
            runtime.close()
    found["errors"] = found["errors"][:10]
    found["left"] = leftovers(store)
    return found


def _taken(store: Store, boxes: int) -> dict[str, Any]:
    processes = machine.processes_of(store)
    memory = sum(map(machine.pss, processes))
    return {
        "processes": len(processes),
        "pss_mib": round(memory / MIB, 1),
        "pss_mib_per_box": round(memory / MIB / max(boxes, 1), 2),
        "disk_mib": round(machine.allocated(store.root / "boxes") / MIB, 1),
    }
