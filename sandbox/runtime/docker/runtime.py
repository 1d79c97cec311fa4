"""The Docker runtime: makes boxes, remembers them, and cleans up after runs that died."""

import contextlib
import os
import secrets
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docker.types import LogConfig

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import HOSTNAME, BoxSpec
from sandbox.runtime.docker.address import DEFAULT_HOST
from sandbox.runtime.docker.box import ROOT, DockerBox
from sandbox.runtime.docker.engine import Engine, faults
from sandbox.runtime.docker.images import ensure_loaded
from sandbox.runtime.gate import Gate
from sandbox.runtime.lease import Lease, orphans
from sandbox.runtime.store import Store

OWNER, STORE = "stillroom.owner", "stillroom.store"
MAIN = ("env", "--ignore-signal=CHLD", "sleep", "infinity")
"""Process 1. As process 1 it cannot be killed from inside; as it ignores SIGCHLD, the kernel
reaps the orphans it inherits. With an init and a child, `kill -9 -1` would end the box."""
CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETGID",
    "SETUID",
    "SYS_CHROOT",
)
SHM_BYTES = 64 << 20


class DockerRuntime:
    """`host` is an address as in DOCKER_HOST, which is asked when there is none."""

    name = "docker"

    def __init__(self, store: Store, *, host: str | None = None) -> None:
        self._store = store
        self._engine = Engine(host or os.environ.get("DOCKER_HOST") or DEFAULT_HOST)
        self._lock = threading.Lock()
        self._gate = Gate()
        self._lease: Lease | None = None
        self._boxes: dict[str, DockerBox] = {}

    def create(self, spec: BoxSpec) -> DockerBox:
        with self._gate:
            return self._create(spec)

    def _create(self, spec: BoxSpec) -> DockerBox:
        image = ensure_loaded(self._engine, self._store, spec.image)
        labels = {**spec.labels, OWNER: self._owner(), STORE: self._store_id()}
        with faults("create a box"):
            answer = self._engine.api.create_container(
                image,
                name=f"stillroom-{secrets.token_hex(6)}",
                entrypoint=list(MAIN),
                command=[],
                user=ROOT,
                hostname=HOSTNAME,
                working_dir=spec.workdir,
                environment=environment(spec),
                labels=labels,
                healthcheck={"test": ["NONE"]},
                host_config=self._host_config(spec),
            )
        box = DockerBox(self._engine, str(answer["Id"]), self._forget)
        with self._lock:
            self._boxes[box.id] = box
        try:
            box.start(spec.seeds)
        except BaseException:
            with contextlib.suppress(RuntimeFault):  # the first error is the one to tell
                box.destroy()
            raise
        return box

    def reap(self) -> list[str]:
        """A box is left over when nobody holds its owner's lease. Only this store's are looked at.

        Listing comes before looking at the leases, and an owner holds its lease before its
        first box: so a box in the list whose lease is free has an owner that has died.
        """
        with faults("list boxes"):
            mine = {"label": [f"{STORE}={self._store_id()}"]}
            found = self._engine.api.containers(all=True, filters=mine)
        owned: dict[str, list[str]] = defaultdict(list)
        for container in found:
            owned[container["Labels"].get(OWNER, "")].append(container["Id"])
        gone = []
        for owner, containers in owned.items():
            with self._left(owner) as left:
                for container in containers if left else ():
                    DockerBox(self._engine, container, self._forget).destroy()
                    gone.append(f"docker container {container}")
        for lease in orphans(self._folder):  # of runs that died without a box
            lease.release()
        return gone

    def close(self) -> None:
        self._gate.close()
        with self._lock:
            boxes = list(self._boxes.values())
        try:
            for box in boxes:
                box.destroy()
        finally:
            with self._lock:
                if self._lease is not None:
                    self._lease.release()
                    self._lease = None
            self._engine.close()

    @property
    def _folder(self) -> Path:
        return self._store.root / "docker"

    def _forget(self, container: str) -> None:
        with self._lock:
            self._boxes.pop(container, None)

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

    def _host_config(self, spec: BoxSpec) -> Any:
        memory = spec.limits.memory_mib << 20
        return self._engine.api.create_host_config(
            network_mode="none",
            dns=["127.0.0.1"],  # the host's resolvers are none of the box's business
            dns_search=["."],
            cap_drop=["ALL"],
            cap_add=list(CAPABILITIES),
            security_opt=["no-new-privileges"],
            mem_limit=memory,
            memswap_limit=memory,
            pids_limit=spec.limits.pids,
            nano_cpus=round(spec.limits.cpus * 1e9),
            shm_size=SHM_BYTES,
            ipc_mode="private",
            cgroupns="private",
            log_config=LogConfig(type="none"),
        )


def environment(spec: BoxSpec) -> list[str]:
    """As it is, and no more: a bare name takes away what the engine would add."""
    given = spec.environment
    added = [name for name in ("HOSTNAME", "TERM") if name not in given]
    return [f"{name}={value}" for name, value in given.items()] + added
