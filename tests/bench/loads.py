"""What is not the time of one box: cycles a second, memory and disk at rest, the image's size."""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from sandbox.model.task import Digest
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.spec import BoxSpec, Image, ImageLayer
from sandbox.runtime.store import Store
from tests.bench.machine import MIB, allocated, parent_of, processes_of, pss, zygote_of
from tests.bench.others import NaiveSdk
from tests.bench.product import spec_of, true

_FILE_BYTES, _IN_A_FOLDER = 40 << 10, 80


class Stopper:
    """Ends the workers of a throughput run: when its time is up, or on ^C."""

    def __init__(self, seconds: float) -> None:
        self._until = time.perf_counter() + seconds
        self._told = threading.Event()

    def go_on(self) -> bool:
        return not self._told.is_set() and time.perf_counter() < self._until

    def stop(self) -> None:
        self._told.set()


def throughput(cycle: Callable[[], None], jobs: int, seconds: float) -> dict[str, float]:
    """Cycles a second by so many threads, until the last of them has finished its last one."""
    stopper = Stopper(seconds)

    def work() -> tuple[int, int]:
        done = failed = 0
        while stopper.go_on():
            try:
                cycle()
                done += 1
            except Exception:  # noqa: BLE001 - counted, and shown
                failed += 1
        return done, failed

    began = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        workers = [pool.submit(work) for _ in range(jobs)]
        try:
            counts = [worker.result() for worker in workers]
        finally:
            stopper.stop()
    took = time.perf_counter() - began
    return {
        "per_second": round(sum(done for done, _ in counts) / took, 3),
        "cycles": sum(done for done, _ in counts),
        "failed": sum(failed for _, failed in counts),
        "seconds": round(took, 2),
    }


def embedded_cycle(runtime: EmbeddedRuntime, spec: BoxSpec) -> Callable[[], None]:
    def cycle() -> None:
        with runtime.create(spec) as box:
            true(box)

    return cycle


def sdk_cycle(sdk: NaiveSdk) -> Callable[[], None]:
    def cycle() -> None:
        container = sdk.start()
        try:
            sdk.true(container)
        finally:
            container.remove(force=True)

    return cycle


def idle_embedded(store: Store, image: Image, boxes: int) -> dict[str, float]:
    """Of everything the runtime needs, the zygote and blanks included, a box's share."""
    with ExitStack() as stack:
        runtime = EmbeddedRuntime(store)
        stack.callback(runtime.close)
        made = [stack.enter_context(runtime.create(spec_of(image))) for _ in range(boxes)]
        for box in made:
            true(box)
        zygote = zygote_of(store, os.getpid())
        sizes = {pid: pss(pid) for pid in processes_of(store)}
        runs = {box.id.partition(".")[0] for box in made}
        disk = sum(allocated(store.root / "boxes" / run) for run in runs)
        return {
            "boxes": boxes,
            "processes": len(sizes),
            "pss_kib_per_box": round(sum(sizes.values()) / boxes / 1024, 1),
            "pss_kib_median_init": round(
                median(size for pid, size in sizes.items() if pid != zygote) / 1024, 1
            ),
            "pss_kib_zygote": round(sizes.get(zygote, 0) / 1024, 1),
            "disk_kib_per_box": round(disk / boxes / 1024, 1),
        }


def idle_docker(sdk: NaiveSdk, boxes: int) -> dict[str, float]:
    """Of the shim and the main process; the daemons, which are there anyway, are not counted."""
    containers: list[Any] = []
    try:
        sizes, disk = [], 0
        for _ in range(boxes):
            containers.append(sdk.start())
            sdk.true(containers[-1])
        for container in containers:
            container.reload()
            main = int(container.attrs["State"]["Pid"])
            sizes.append(pss(main) + pss(parent_of(main)))
            disk += sum(map(allocated, _folders(container.attrs)))
        return {
            "boxes": boxes,
            "pss_kib_per_box": round(median(sizes) / 1024, 1),
            "disk_kib_per_box": round(disk / boxes / 1024, 1),
        }
    finally:
        for container in containers:
            container.remove(force=True)


def _folders(attrs: dict[str, Any]) -> Iterator[Path]:
    """What the engine keeps of a container: its files twice over, once for its init layer."""
    upper = Path(attrs["GraphDriver"]["Data"]["UpperDir"]).parent
    yield upper / "diff"
    yield upper / "work"
    yield upper.with_name(f"{upper.name}-init")
    yield Path(attrs["ResolvConfPath"]).parent


def padded(image: Image, store: Store, mib: int) -> Image:
    """The image with a second layer of real files, so that it has so many MiB on the disk."""
    folder = store.root / "layers" / f"{mib:064d}"
    have = sum(allocated(layer.folder) for layer in image.layers)
    content = os.urandom(_FILE_BYTES)
    for number in range(max(1, (mib * MIB - have) // _FILE_BYTES)):
        inside = folder / "opt" / "padding" / str(number // _IN_A_FOLDER)
        if number % _IN_A_FOLDER == 0:
            inside.mkdir(parents=True)
        (inside / str(number)).write_bytes(content)
    layer = ImageLayer(
        diff_id=Digest(f"sha256:{mib:064d}"), tar=folder.with_suffix(".tar"), folder=folder
    )
    return replace(image, name=f"{image.name}-{mib}", layers=(*image.layers, layer))


def by_image_size(store: Store, images: dict[str, Image], rounds: int) -> dict[str, list[float]]:
    """create → first command done, in milliseconds, taking turns; the first turn only warms up."""
    found: dict[str, list[float]] = defaultdict(list)
    runtime = EmbeddedRuntime(store)
    try:
        for number in range(rounds + 1):
            for name, image in images.items():
                began = time.perf_counter()
                with runtime.create(spec_of(image)) as box:
                    true(box)
                    if number:
                        found[name].append((time.perf_counter() - began) * 1e3)
    finally:
        runtime.close()
    return dict(found)
