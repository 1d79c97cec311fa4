"""The network of an agent's box, as its task says. The verifier's box never has one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from sandbox.model.index import LOCK_NAME
from sandbox.model.task import TaskSpec
from sandbox.runtime.base import Box
from sandbox.runtime.freeze.build import programs
from sandbox.runtime.network.attach import connected
from sandbox.runtime.network.cassette import Cassette
from sandbox.runtime.network.settings import Settings
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.supplies import Depot

LOG = "network.jsonl"
_NOTHING = "`open`: nothing is recorded"
_OPEN_REMEDY = "`network: open` passes on what the real network's web answers, and nothing else"


class Joined(Protocol):
    """What a box is given of a network, and what is asked of it afterwards."""

    def joined(self, spec: BoxSpec) -> BoxSpec: ...

    def start(self, box: Box) -> None: ...

    def check(self) -> None: ...


class Loopback:
    """No network: the box is as it is."""

    def joined(self, spec: BoxSpec) -> BoxSpec:
        return spec

    def start(self, box: Box) -> None: ...

    def check(self) -> None: ...


@contextmanager
def network_of(task: TaskSpec, depot: Depot, folder: Path) -> Iterator[Joined]:
    """`folder`: where it is written down what was asked for. Raises NetworkFault."""
    if task.network.mode == "none":
        yield Loopback()
        return
    store = depot.store
    cassette = depot.cassette(task)
    settings = settings_of(task, cassette, folder / LOG, blobs=store.blob(""))
    lock = cassette.lock if cassette else None
    with connected(store, programs(store).program("wire"), settings, lock) as link:
        yield link


def settings_of(task: TaskSpec, cassette: Cassette | None, log: Path, *, blobs: Path) -> Settings:
    """What answers is told of a task's network, `replay` or `open`."""
    if cassette is None:
        return Settings(mode="open", log=str(log), cassette=_NOTHING, remedy=_OPEN_REMEDY)
    settings = Settings(
        mode="replay",
        log=str(log),
        cassette=f"task_specs/{task.id}/{task.network.cassette}",
        remedy=f"to record it: stillroom record {task.id}",
        entries=cassette.entries,
        bodies={sha256: str(path.absolute()) for sha256, path in cassette.bodies.items()},
    )
    return with_index(settings, cassette, blobs)


def with_index(settings: Settings, cassette: Cassette, blobs: Path) -> Settings:
    """And the frozen package index, if the cassette has one."""
    if cassette.lock is None:
        return settings
    return replace(settings, index=str(cassette.folder.absolute() / LOCK_NAME), blobs=str(blobs))
