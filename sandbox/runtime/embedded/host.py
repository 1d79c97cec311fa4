"""The embedded runtime, seen from the user's process."""

import hashlib
import itertools
import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import sandbox
from sandbox.errors import RuntimeFault
from sandbox.runtime.base import HOSTNAME, BoxSpec
from sandbox.runtime.embedded import cgroup, kernel, wire
from sandbox.runtime.embedded.box import EmbeddedBox, Handles
from sandbox.runtime.gate import Gate
from sandbox.runtime.lease import Lease, orphans
from sandbox.runtime.store import Store, remove_tree

_FIRST_OWNER, _OWNER_STEP, _OWNERS = 200_000, 65536, 1000
_MIB = 1 << 20
_MAPPING = ("mount_setattr", "open_tree", "mount overlay")
"""In what the zygote says when a kernel cannot map owners of overlay layers."""
_FEWEST_FILES = 1024
"""A box may not be able to have more than we: the shell in it uses number 252."""


class EmbeddedRuntime:
    """Boxes made by namespaces and overlayfs: no daemon. Needs root on Linux."""

    name = "embedded"

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = store.root / "boxes"
        self._tag = tag(store)
        self._lock = threading.Lock()
        self._gate = Gate()
        self._zygote: _Zygote | None = None
        self._boxes: dict[str, EmbeddedBox] = {}
        self._numbers = itertools.count()
        self._mapped = True

    def create(self, spec: BoxSpec) -> EmbeddedBox:
        with self._gate:
            return self._create(spec)

    def _create(self, spec: BoxSpec) -> EmbeddedBox:
        zygote, groups = self._ready()
        lease = Lease.fresh(self._folder)
        box_id = lease.name
        folder = self._folder / box_id
        undo: list[Callable[[], None]] = [lease.release]
        try:
            folder.mkdir(mode=0o700)
            undo.append(lambda: remove_tree(folder))
            limits = spec.limits
            undo.append(lambda: groups.remove(box_id))
            groups.make(
                box_id,
                memory_bytes=limits.memory_mib * _MIB,
                pids=limits.pids,
                cpus=limits.cpus,
            )
            box = EmbeddedBox(
                box_id,
                spec,
                self._start(zygote, groups, box_id, spec),
                zygote.ask,
                lambda: groups.ran_out_of_memory(box_id),
                undo,
            )
        except BaseException as e:
            for step in reversed(undo):
                with suppress(OSError):
                    step()
            if isinstance(e, OSError):
                raise RuntimeFault(f"cannot make a box: {e}", hint=HINT) from e
            raise
        with self._lock:
            self._boxes[box_id] = box
        box.on_destroy(lambda: self._forget(box_id))
        return box

    def reap(self) -> list[str]:
        """Boxes of dead runs: their processes are dead already; folders and groups are not."""
        self._require()
        gone = []
        groups = cgroup.detect(parent=self._tag)
        for lease in orphans(self._folder):
            folder = lease.path.with_suffix("")
            try:
                if groups:
                    groups.kill(folder.name)
                    groups.remove(folder.name)
                remove_tree(folder)
            except OSError:
                lease.let_go()  # what could not be removed now is still an orphan next time
                continue
            lease.release()
            gone.append(f"box {folder.name}")
        if groups:
            groups.tidy()
        return gone

    def close(self) -> None:
        self._gate.close()
        for box in list(self._boxes.values()):
            box.destroy()
        with self._lock:
            zygote, self._zygote = self._zygote, None
        if zygote:
            zygote.close()
        if groups := cgroup.detect(parent=self._tag):
            groups.tidy()

    def _forget(self, box_id: str) -> None:
        with self._lock:
            self._boxes.pop(box_id, None)

    def _require(self) -> None:
        if why := missing():
            raise RuntimeFault("; ".join(why), hint=HINT, retry=False)

    def _ready(self) -> tuple["_Zygote", cgroup.Cgroups]:
        self._require()
        groups = cgroup.detect(parent=self._tag)
        if groups is None:
            raise RuntimeFault("no memory and pids cgroups here", hint=HINT, retry=False)
        with self._lock:
            if self._zygote is None or not self._zygote.alive():
                self._folder.mkdir(parents=True, exist_ok=True)
                self._zygote = _Zygote(self._tag)
            return self._zygote, groups

    def _start(
        self, zygote: "_Zygote", groups: cgroup.Cgroups, box_id: str, spec: BoxSpec
    ) -> Handles:
        number = next(self._numbers) % _OWNERS
        layers = [layer.folder for layer in spec.image.layers] + [s.folder for s in spec.seeds]
        request = {
            "op": "create",
            "folder": str(self._folder / box_id),
            "lowers": [str(folder) for folder in reversed(layers)],
            "owner": _FIRST_OWNER + number * _OWNER_STEP if self._mapped else 0,
            "groups": groups.paths(box_id),
            "hostname": HOSTNAME,
            "workdir": spec.workdir,
        }
        try:
            return _request_box(zygote, request)
        except OSError as e:
            # Only a refused mapping may cost the mapping: any other trouble is told as it is.
            if not self._mapped or not any(word in str(e) for word in _MAPPING):
                raise
            # Kernels before 5.19 cannot map overlay layers: root in the box is then the host's
            # root, without its capabilities.
            request["owner"] = 0
            remove_tree(self._folder / box_id)
            (self._folder / box_id).mkdir(mode=0o700)
            handles = _request_box(zygote, request)
            self._mapped = False
            return handles


def _request_box(zygote: "_Zygote", request: dict[str, Any]) -> Handles:
    ours, theirs = wire.pair()
    try:
        with theirs, zygote.ask(request, [theirs.fileno()]) as reply:
            answer, fds = wire.receive(reply)
        if answer is None or "error" in answer:
            raise OSError((answer or {}).get("error", "the process that makes boxes has died"))
        pidfd, mounts = fds
        ready, _ = wire.receive(ours)
        if ready is None or "error" in ready:
            os.close(pidfd)
            os.close(mounts)
            raise OSError((ready or {}).get("error", "the box's first process died at once"))
    except BaseException:
        ours.close()
        raise
    return Handles(channel=ours, pid=answer["pid"], pidfd=pidfd, mounts=mounts)


class _Zygote:
    """The process that makes boxes. One per runtime, used from any thread."""

    def __init__(self, name: str) -> None:
        self._socket, theirs = wire.pair()
        self._lock = threading.Lock()
        # The program comes by standard input and the name is ours: the first process of a box
        # shows its command line to everyone in it. Without its own name, Python has to be told
        # where its library is.
        with theirs:
            self._process = subprocess.Popen(
                [name, "-P", "-s", "-S", "-B", "-"],
                executable=sys.executable,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env={"PYTHONHOME": f"{sys.base_prefix}:{sys.base_exec_prefix}"},
                cwd="/",
                close_fds=True,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            assert self._process.stdin  # noqa: S101 - for the type checker: PIPE was asked for
            self._process.stdin.write(_program(theirs.fileno()))
            self._process.stdin.close()

    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, message: dict[str, Any], fds: list[int]) -> socket.socket:
        """Send a request; the answer comes on what is returned."""
        ours, theirs = wire.pair()
        try:
            with theirs, self._lock:
                wire.send(self._socket, message, [theirs.fileno(), *fds])
        except BaseException:
            ours.close()
            raise
        return ours

    def close(self) -> None:
        self._socket.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def tag(store: Store) -> str:
    """What processes and control groups of a store's boxes are called: it tells no path."""
    found = hashlib.sha256(str(store.root.resolve()).encode()).hexdigest()
    return f"stillroom-{found[:12]}"


def _program(control: int) -> bytes:
    package = str(Path(sandbox.__file__).resolve().parent.parent)
    lines = [
        "import os, sys",
        "os.environ.clear()",
        f"sys.path.append({package!r})",
        f"os.dup2({control}, 3)",
        f"{control} == 3 or os.close({control})",
        "from sandbox.runtime.embedded import zygote",
        "zygote.main()",
    ]
    return "\n".join(lines).encode()


HINT = "run `stillroom doctor`, or use --runtime docker"


def missing() -> list[str]:
    """What this machine lacks for the embedded runtime, in words; empty when it can run."""
    lacks = []
    if sys.platform != "linux":
        lacks.append("the embedded runtime needs Linux")
    elif os.geteuid() != 0:
        lacks.append("the embedded runtime needs root")
    elif os.uname().machine not in kernel.MACHINES:
        lacks.append(f"the embedded runtime does not know {os.uname().machine}")
    elif (files := resource.getrlimit(resource.RLIMIT_NOFILE)[1]) < _FEWEST_FILES:
        lacks.append(
            f"the embedded runtime needs {_FEWEST_FILES} open files, not {files}: ulimit -n"
        )
    elif cgroup.detect() is None:
        lacks.append("the embedded runtime needs the memory and pids cgroups")
    return lacks
