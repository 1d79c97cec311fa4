"""The embedded runtime, seen from the user's process."""

import hashlib
import heapq
import os
import shutil
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from sandbox.errors import RuntimeFault
from sandbox.runtime import changeset
from sandbox.runtime.base import BoxSpec, Capabilities, Held, Image
from sandbox.runtime.embedded import loop, wire
from sandbox.runtime.embedded.body import Body, Files
from sandbox.runtime.embedded.box import EmbeddedBox, House
from sandbox.runtime.embedded.client import Blank, Blanks, Zygote
from sandbox.runtime.embedded.filesystem import DISK_IMAGE
from sandbox.runtime.embedded.machine import HINT, find_groups, missing, raise_own_limits
from sandbox.runtime.gate import Gate
from sandbox.runtime.lease import Lease, orphans
from sandbox.runtime.pool import Pool
from sandbox.runtime.store import Store, remove_tree
from sandbox.runtime.watch import Watch

_FIRST_OWNER, _OWNER_STEP = 200_000, 65536
_MIB = 1 << 20
_RESERVE_MIB = 256
"""No box is made when the disk has less left than this."""
_MAPPING = ("mount_setattr", "open_tree", "mount overlay")
"""In what the zygote says when a kernel cannot map owners of overlay layers."""
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
        self._crew: _Crew | None = None
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
            user_namespace=True,
            rootless=rootless,
            freeze=groups.can_freeze,
            snapshot=True,
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

    def _ready(self) -> "_Crew":
        with self._lock:
            if self._crew is not None and not self._crew.zygote.alive():
                self._crew.close()
                self._crew = None
            if self._crew is None:
                self._require()
                raise_own_limits()
                self._crew = _Crew(self._folder, self._tag)
            return self._crew

    def _take(self, spec: BoxSpec) -> Body:
        return self._pool.take(spec) or self._build(spec)

    def _build(self, spec: BoxSpec) -> Body:
        """A box that nobody has used."""
        tar = changeset.check(spec)
        self._check(spec)
        try:
            body = self._ready().build(spec)
        except OSError as e:
            raise RuntimeFault(f"cannot make a box: {e}", hint=HINT) from e
        if tar is not None:
            try:
                _restore(body, tar)
            except BaseException:
                body.destroy()
                raise
        return body

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
        if self._left_on_disk() < _RESERVE_MIB * _MIB:
            raise RuntimeFault(
                f"less than {_RESERVE_MIB} MiB are free in {self._store.root}: no box is made",
                hint="free some, or set STILLROOM_STORE to another folder",
            )


class _Crew:
    """One zygote, what it has made, and the lease that says they have an owner."""

    def __init__(self, folder: Path, name: str) -> None:
        self._groups = find_groups(name)
        self._lease = Lease.fresh(folder)
        self._run = folder / self._lease.name
        self._rootless = os.geteuid() != 0
        self._lock = threading.Lock()
        self._mapped = not self._rootless
        self._count = 0
        self._owners = 0
        self._free: list[int] = []
        """Owners that boxes had which are gone."""
        with ExitStack() as undo:
            undo.callback(self._lease.release)
            self._run.mkdir(mode=0o700)
            undo.callback(remove_tree, self._run)
            self._groups.make_parent()
            self.zygote = Zygote(name, self._run, self._groups.parents)
            undo.pop_all()
        self._blanks = Blanks(self._order, self._destroy)

    def build(self, spec: BoxSpec) -> Body:
        """Raises OSError."""
        blank = self._blanks.take()
        try:
            body = self._become(blank, spec)
        except OSError as e:
            # Only a refused mapping may cost the mapping: any other trouble is told as it is.
            if not blank.owner or not any(word in str(e) for word in _MAPPING):
                raise
            # Kernels before 5.19 cannot map overlay layers: root in the box is then the host's
            # root, without its capabilities.
            self._mapped = False
            self._destroy_blanks()
            body = self._become(self._blanks.take(), spec)
        with suppress(OSError):  # whoever needs it will hear why
            self._blanks.order()
        return body

    def close(self) -> None:
        self._destroy_blanks()
        self.zygote.close()
        self._groups.tidy()
        with suppress(OSError):
            remove_tree(self._run)
        self._lease.release()

    def _order(self) -> tuple[Blank, socket.socket]:
        with self._lock:
            self._count += 1
            name = f"{self._run.name}.{self._count}"
            owner = self._owner() if self._mapped else 0
        ours, theirs = wire.pair()
        blank = Blank(name=name, folder=self._run / name, owner=owner, channel=ours)
        request = {
            "op": "blank",
            "folder": str(blank.folder),
            "owner": owner,
            "groups": self._groups.paths(name),
            "rootless": self._rootless,
        }
        with theirs:
            return blank, self.zygote.ask(request, [theirs.fileno()])

    def _owner(self) -> int:
        if self._free:
            return heapq.heappop(self._free)
        self._owners += 1
        return _FIRST_OWNER + (self._owners - 1) * _OWNER_STEP

    def _become(self, blank: Blank, spec: BoxSpec) -> Body:
        wanted = spec.limits
        try:
            if wanted.disk == "loop":
                _make_disk(blank.folder / DISK_IMAGE, wanted.disk_mib)
            self._groups.limit(
                blank.name,
                memory_bytes=wanted.memory_mib * _MIB,
                pids=wanted.pids,
                cpus=wanted.cpus,
            )
            folders = tuple(str(folder) for folder in spec.lowers)
            request = {
                "op": "build",
                "lowers": folders,
                "disk": wanted.disk,
                "disk_mib": wanted.disk_mib,
                "terminals": wanted.terminals,
                "mounts": [(str(m.source), m.target) for m in spec.mounts],
                "tmpfs": dict(spec.tmpfs),
                "hostname": spec.hostname,
                "workdir": spec.workdir,
                "open_files": wanted.open_files,
                "file_mib": wanted.file_mib,
                "processes": wanted.pids if self._rootless else None,
            }
            made, upper = _built(blank, request)
        except BaseException:
            self._destroy(blank)
            raise
        files = Files(
            upper=upper,
            lowers=folders,
            made=frozenset(made),
            root=os.geteuid() if self._rootless else 0,
        )
        return Body(blank, self._groups, files, lambda: self._release(blank))

    def _destroy_blanks(self) -> None:
        for blank in self._blanks.close():
            self._destroy(blank)

    def _destroy(self, blank: Blank) -> None:
        blank.kill()
        with suppress(OSError):
            self._groups.remove(blank.name)
        with suppress(OSError):
            remove_tree(blank.folder)
        self._release(blank)

    def _release(self, blank: Blank) -> None:
        if blank.owner:
            with self._lock:
                heapq.heappush(self._free, blank.owner)


def _built(blank: Blank, request: dict[str, Any]) -> tuple[list[str], int]:
    wire.send(blank.channel, request)
    _, fds = blank.hear()
    try:
        built, _ = blank.hear()
    except BaseException:
        os.close(fds[0])
        raise
    return built["made"], fds[0]


def _restore(body: Body, tar: Path) -> None:
    with tar.open("rb") as f, body.ask({"op": "restore"}, [f.fileno()]) as reply:
        message, _ = wire.receive(reply)
    if message != {"exit": 0}:
        raise RuntimeFault(f"cannot restore the snapshot {tar}: {message}", retry=False)


def _make_disk(path: Path, mib: int) -> None:
    """An empty ext4 in a file that takes no more room than is written to it."""
    with path.open("wb") as f:
        f.truncate(mib * _MIB)
    command = ["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-m", "0", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"mkfs.ext4: {done.stderr.strip()}")


def tag(store: Store) -> str:
    """What processes and control groups of a store's boxes are called: it tells no path."""
    found = hashlib.sha256(str(store.root.resolve()).encode()).hexdigest()
    return f"stillroom-{found[:12]}"
