"""The embedded runtime, seen from the user's process."""

import hashlib
import os
import shutil
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

from sandbox.errors import RuntimeFault
from sandbox.runtime import changeset
from sandbox.runtime.base import Capabilities, Held
from sandbox.runtime.embedded import loop
from sandbox.runtime.embedded.body import Body
from sandbox.runtime.embedded.box import EmbeddedBox, House
from sandbox.runtime.embedded.crew import Crew
from sandbox.runtime.embedded.machine import HINT, find_groups, missing, raise_own_limits
from sandbox.runtime.freeze import build
from sandbox.runtime.gate import Gate
from sandbox.runtime.lease import orphans
from sandbox.runtime.pool import Pool
from sandbox.runtime.spec import BoxSpec, Image
from sandbox.runtime.store import Store, remove_tree
from sandbox.runtime.watch import Watch

_MIB = 1 << 20
_RESERVE_MIB = 256
"""No box is made when the disk has less left than this."""
_ALWAYS: frozenset[Held] = frozenset(("disk", "file", "open_files", "terminals"))


class EmbeddedRuntime:
    """Boxes made by namespaces and overlayfs: no daemon. On Linux, best as root."""

    name = "embedded"

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = store.root / "boxes"
        self._tag = tag(store)
        self._lock = threading.Lock()
        self._gate = Gate()
        self._crew: Crew | None = None
        self._programs: build.Programs | None = None
        self._boxes: dict[str, EmbeddedBox] = {}
        self._pool: Pool[Body] = Pool(
            self._build, Body.destroy, lambda body: body.usage().memory_bytes
        )
        self._watch = Watch(free=self._left_on_disk)
        self._janitor = ThreadPoolExecutor(1, "disposal of boxes")

    def capabilities(self) -> Capabilities:
        self._require()
        groups, rootless = find_groups(self._tag), os.geteuid() != 0
        held: set[Held] = set(_ALWAYS)
        if groups.folders:
            held |= {"memory", "pids", "cpus"}
        elif rootless:
            held |= {"pids"}
        loops = not rootless and loop.available() and shutil.which("mkfs.ext4") is not None
        return Capabilities(
            limits=frozenset(held),
            disk=("watch", "tmpfs", "loop") if loops else ("watch", "tmpfs"),
            cgroups=groups.kind,
            user_namespace=self._crew is None or self._crew.mapped,
            rootless=rootless,
            freeze=groups.can_freeze,
            snapshot=True,
            still=build.lacks(),
        )

    def ensure_image(self, image: Image) -> None:
        """Nothing to do: what is in the store is used where it is."""
        for layer in image.layers:
            if not layer.folder.is_dir():
                raise RuntimeFault(f"image {image.name}: {layer.folder} is gone", retry=False)

    def create(self, spec: BoxSpec) -> EmbeddedBox:
        with self._gate:
            box = EmbeddedBox(spec, self._take(spec), self._house())
            with self._lock:
                self._boxes[box.id] = box
            self._watch_over(box)
        return box

    def warm(self, spec: BoxSpec, boxes: int) -> None:
        self._require()
        self._pool.keep(spec, boxes)

    def reap(self) -> list[str]:
        """Boxes of dead runs: their processes are dead already; folders and groups may be left."""
        self._require()
        gone = []
        groups = find_groups(self._tag)
        for lease in orphans(self._folder):
            run = lease.path.with_suffix("")
            names = sorted(
                {name for name in groups.boxes() if name.split(".")[0] == run.name}
                | {path.name for path in run.glob("*.*")}
            )
            try:
                for name in names:
                    groups.kill(name)
                    groups.remove(name)
                remove_tree(run)
            except OSError:
                lease.let_go()  # what could not be removed now is still an orphan next time
                continue
            lease.release()
            gone += [f"box {name}" for name in names]
        # A first process may make its groups after its run has removed the others, and the lease.
        for name in groups.boxes():
            if not (self._folder / f"{name.split('.')[0]}.lease").exists():
                with suppress(OSError):  # it is seen again next time
                    groups.kill(name)
                    groups.remove(name)
                    gone.append(f"box {name}")
        groups.tidy()
        return gone

    def close(self) -> None:
        self._gate.close()
        self._pool.close()
        self._watch.close()
        with self._lock:
            boxes, crew, self._crew = list(self._boxes.values()), self._crew, None
        with ExitStack() as all_of_it:  # the last first; one that fails keeps no other from it
            if crew:
                all_of_it.callback(crew.close)
            all_of_it.callback(self._janitor.shutdown)
            for box in boxes:
                all_of_it.callback(box.destroy)

    def _house(self) -> House:
        return House(
            ask_zygote=self._ask_zygote,
            make=self._make_again,
            create=self.create,
            dispose=self._dispose,
            watch=self._watch_over,
            scratch=self._store.scratch,
            forget=self._forget,
        )

    def _ask_zygote(self, message: dict[str, Any], fds: list[int]) -> socket.socket:
        with self._gate:
            return self._ready().zygote.ask(message, fds)

    def _make_again(self, spec: BoxSpec) -> Body:
        """For a reset, which may come while the runtime is being closed."""
        with self._gate:
            return self._take(spec)

    def _watch_over(self, box: EmbeddedBox) -> None:
        self._watch.add(box, box.spec.limits.disk_mib * _MIB)

    def _dispose(self, body: Body) -> None:
        self._janitor.submit(body.destroy)

    def _forget(self, box: EmbeddedBox) -> None:
        self._watch.remove(box)
        with self._lock:
            self._boxes.pop(box.id, None)

    def _require(self) -> None:
        if why := missing():
            raise RuntimeFault("; ".join(why), hint=HINT, retry=False)

    def _ready(self) -> Crew:
        with self._lock:
            if self._crew is not None and not self._crew.zygote.alive():
                self._crew.close()
                self._crew = None
            if self._crew is None:
                self._require()
                raise_own_limits()
                self._crew = Crew(self._folder, self._tag)
            return self._crew

    def _take(self, spec: BoxSpec) -> Body:
        body = self._pool.take(spec) or self._build(spec, begin=True)
        try:
            body.begin(spec)
        except BaseException:
            body.destroy()
            raise
        return body

    def _build(self, spec: BoxSpec, *, begin: bool = False) -> Body:
        """A box that nobody has used. `begin`: somebody is about to: its clock starts."""
        changeset.check(spec)
        self._check(spec)
        try:
            programs = self._still_programs() if spec.still else None
            return self._ready().build(spec, programs, begin=begin)
        except OSError as e:
            # A snapshot that cannot be laid today cannot be laid tomorrow.
            raise RuntimeFault(
                f"cannot make a box: {e}", hint=HINT, retry=spec.snapshot is None
            ) from e

    def _still_programs(self) -> build.Programs:
        """Looked for once: finding out which compiler there is takes longer than a box."""
        with self._lock:
            if self._programs is None:
                self._programs = build.programs(self._store)
            return self._programs

    def _left_on_disk(self) -> int:
        place = self._folder if self._folder.exists() else self._store.root
        place.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(place).free

    def _check(self, spec: BoxSpec) -> None:
        kind = spec.limits.disk
        if kind != "watch" and kind not in self.capabilities().disk:
            raise RuntimeFault(
                f"the disk limit cannot be held by `{kind}` here",
                hint="limits.disk: watch; `stillroom doctor` says what this machine can do",
                retry=False,
            )
        if spec.still and (why := build.lacks()):
            raise RuntimeFault(
                f"a box cannot have a clock of its own here: {why}",
                hint="`stillroom doctor` says what this machine can do",
                retry=False,
            )
        if self._left_on_disk() < _RESERVE_MIB * _MIB:
            raise RuntimeFault(
                f"less than {_RESERVE_MIB} MiB are free in {self._store.root}: no box is made",
                hint="free some, or set STILLROOM_STORE to another folder",
            )


def tag(store: Store) -> str:
    """What processes and control groups of a store's boxes are called: it tells no path."""
    found = hashlib.sha256(str(store.root.resolve()).encode()).hexdigest()
    return f"stillroom-{found[:12]}"
