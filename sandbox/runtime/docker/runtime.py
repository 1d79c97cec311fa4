"""The Docker runtime: makes boxes, remembers them, and cleans up after runs that died."""

import contextlib
import os
import secrets
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Capabilities
from sandbox.runtime.docker import facts, server
from sandbox.runtime.docker.address import DEFAULT_HOST
from sandbox.runtime.docker.box import ANSWER_SECONDS, DockerBox
from sandbox.runtime.docker.container import Container
from sandbox.runtime.docker.ending import Ending
from sandbox.runtime.docker.engine import BRIEF_SECONDS, Engine, faults
from sandbox.runtime.docker.images import Loaded
from sandbox.runtime.docker.make import Maker
from sandbox.runtime.docker.programs import ask
from sandbox.runtime.docker.still import Holder, folder_of
from sandbox.runtime.gate import Gate
from sandbox.runtime.lease import Lease, orphans
from sandbox.runtime.pool import Pool
from sandbox.runtime.spec import BoxSpec, Image
from sandbox.runtime.store import Store, remove_tree
from sandbox.runtime.watch import Watch

OWNER, STORE = "stillroom.owner", "stillroom.store"


class DockerRuntime:
    """`host` is an address as in DOCKER_HOST, which is asked when there is none."""

    name = "docker"

    def __init__(
        self, store: Store, *, host: str | None = None, brief_seconds: float = BRIEF_SECONDS
    ) -> None:
        """`brief_seconds`: for each call of the engine that makes nothing."""
        self._store = store
        address = host or os.environ.get("DOCKER_HOST") or DEFAULT_HOST
        self._engine = Engine(address, brief_seconds=brief_seconds)
        self._lock = threading.Lock()
        self._gate = Gate()
        self._lease: Lease | None = None
        self._boxes: dict[str, DockerBox] = {}
        self._images = Loaded(self._engine, store, self._store_id)
        self._holder = Holder(self._engine, store, self._owner)
        self._maker = Maker(self._engine, store, self._images, self._holder, self._labels)
        self._watch = Watch()
        self._pool = Pool(self._maker.make, Container.remove, _memory_of)

    def capabilities(self) -> Capabilities:
        here = self._engine.reads_storage()
        return Capabilities(
            limits=frozenset({"memory", "pids", "cpus", "disk", "file", "open_files"}),
            disk=("watch",),
            cgroups="engine",
            user_namespace=self._engine.remaps_users(),
            rootless=False,
            freeze=True,
            snapshot=here,
            still=self._holder.lacks(),
        )

    def ensure_image(self, image: Image) -> None:
        self._images.ready(BoxSpec(image=image))

    def create(self, spec: BoxSpec) -> DockerBox:
        with self._gate:
            box = DockerBox(self, spec, self.container(spec))
            with self._lock:
                self._boxes[box.id] = box
            self._watch.add(box, spec.limits.disk_mib << 20)
            return box

    def warm(self, spec: BoxSpec, boxes: int) -> None:
        """Not of those with a clock of their own: in a box that waits, it would run on."""
        if spec.still is None:
            self._pool.keep(spec, boxes)

    def container(self, spec: BoxSpec) -> Container:
        return self._pool.take(spec) or self._maker.make(spec)

    def fork(self, box: DockerBox) -> DockerBox:
        """The copy keeps its snapshot: it may be reset."""
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(self._store.scratch())
            snapshot = box.snapshot(folder / "changes.tar")
            made = self.create(replace(box.spec, snapshot=snapshot))
            made.keep(stack.pop_all())
            return made

    def forget(self, box: DockerBox) -> None:
        self._watch.remove(box)
        with self._lock:
            self._boxes.pop(box.id, None)

    def reap(self) -> list[str]:
        """A box is left over when nobody holds its owner's lease. Only this store's are looked at.

        Listing comes before looking at the leases, and an owner holds its lease before its
        first box: so a box in the list whose lease is free has an owner that has died.
        """
        with faults("list boxes"):
            mine = {"label": [f"{STORE}={self._store_id()}"]}
            found = self._engine.brief.containers(all=True, filters=mine)
        owned: dict[str, list[str]] = defaultdict(list)
        for container in found:
            owned[container["Labels"].get(OWNER, "")].append(container["Id"])
        gone: list[str] = []
        ending = Ending(self._engine)
        for owner, containers in owned.items():
            with self._left(owner) as left:
                gone += [
                    f"docker container {container}"
                    for container in (containers if left else ())
                    if ending.of(container, Container(self._engine, container).remove)
                ]
                if left:
                    remove_tree(folder_of(self._store, owner))
        for lease in orphans(self._folder):  # of runs that died without a box
            with lease:
                remove_tree(folder_of(self._store, lease.path.name))
        images, late = self._images.reap()
        ending.tell(late)
        return [*gone, *(f"docker image {name}" for name in images)]

    def close(self) -> None:
        """What the engine does not remove in time is left to the next reap, with a warning."""
        self._gate.close()
        self._watch.close()
        ending = Ending(self._engine)
        try:
            self._pool.close(lambda container: ending.of(container.id, container.remove))
            with self._lock:
                boxes = list(self._boxes.values())
            for box in boxes:
                ending.of(box.id, box.destroy)
            ending.tell(self._images.close())
        finally:
            with self._lock:
                if self._lease is not None:
                    remove_tree(folder_of(self._store, self._lease.path.name))
                    self._lease.release()
                    self._lease = None
            self._engine.close()

    @property
    def _folder(self) -> Path:
        return self._store.root / "docker"

    def _labels(self) -> dict[str, str]:
        return {OWNER: self._owner(), STORE: self._store_id()}

    def _owner(self) -> str:
        """This run's lease, taken with its first box."""
        with self._lock:
            if self._lease is None:
                self._lease = Lease.fresh(self._folder)
            return self._lease.path.name

    def _store_id(self) -> str:
        """A name of the store that is the same wherever it is mounted.

        Without it, a run with another store, or on another machine with the same engine, would
        take our boxes for leftovers: it cannot see our leases.
        """
        path = self._folder / "id"
        with self._store.lock("docker-id"):
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(secrets.token_hex(8))
            return path.read_text()

    @contextlib.contextmanager
    def _left(self, owner: str) -> Iterator[bool]:
        """Whether the owner is dead; nobody else cleans up after it meanwhile."""
        try:
            lease = Lease(self._folder / owner)
        except (RuntimeFault, OSError):
            yield False
            return
        with lease:
            yield True


def _memory_of(container: Container) -> int:
    if container.channel is None:
        return 0
    return facts.parse(ask(container.channel, server.FACTS, ANSWER_SECONDS)).memory_bytes
