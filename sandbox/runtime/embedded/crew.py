"""A zygote and all that it makes for one run: blanks, and the bodies they become."""

import fcntl
import heapq
import os
import socket
import struct
import subprocess
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from sandbox.model.task import Digest
from sandbox.runtime.embedded import clock, wire
from sandbox.runtime.embedded.body import Body, Files
from sandbox.runtime.embedded.client import Blank, Blanks, Zygote
from sandbox.runtime.embedded.filesystem import DISK_IMAGE
from sandbox.runtime.embedded.machine import find_groups
from sandbox.runtime.freeze.build import Programs
from sandbox.runtime.lease import Lease
from sandbox.runtime.processors import Processors
from sandbox.runtime.spec import BoxSpec, Image, ImageLayer, Snapshot
from sandbox.runtime.store import remove_tree

_FIRST_OWNER, _OWNER_STEP = 200_000, 65536
_MIB = 1 << 20
_GET_FLAGS, _SET_FLAGS, _TOP_OF_A_TREE = 0x8008_6601, 0x4008_6602, 0x0002_0000
"""FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_TOPDIR_FL; linux/fs.h."""
_MAPPING = ("mount_setattr", "open_tree", "mount overlay")
"""In what the zygote says when a kernel cannot map owners of overlay layers."""


class Crew:
    """One zygote, what it has made, and the lease that says they have an owner."""

    def __init__(self, folder: Path, name: str) -> None:
        self._groups = find_groups(name)
        self._lease = Lease.fresh(folder)
        self._run = folder / self._lease.name
        self._rootless = os.geteuid() != 0
        self._lock = threading.Lock()
        self.mapped = True
        """Is root in a box somebody else on this machine?"""
        self._proved = self._rootless
        self._count = 0
        self._owners = 0
        self._free: list[int] = []
        """Owners that boxes had which are gone."""
        self._programs: Programs | None = None
        """Of the clock, once the zygote has them."""
        self._processors = Processors()
        with ExitStack() as undo:
            undo.callback(self._lease.release)
            self._run.mkdir(mode=0o700)
            undo.callback(remove_tree, self._run)
            _spread(self._run)
            self._groups.make_parent()
            self.zygote = Zygote(name, self._run, self._groups.parents)
            undo.pop_all()
        self._blanks = Blanks(self._order, self._hurry, self._destroy)

    def build(self, spec: BoxSpec, programs: Programs | None = None, *, begin: bool = True) -> Body:
        """`programs`: of its clock, if it is to have one; `begin`: which starts now. Raises OSError."""
        if programs is not None:
            self._load(programs)
        blank = self._take(spec)
        try:
            body = self._become(blank, spec, begin=begin)
        except OSError:
            # What is wrong with one box may not cost the others their own users.
            if self._can_map():
                raise
            self._destroy_blanks()
            body = self._become(self._take(spec), spec, begin=begin)
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

    def _load(self, programs: Programs) -> None:
        """Once: what is forked from then on has it."""
        with self._lock:
            if self._programs is not None:
                return
            with self.zygote.ask({"op": "load", "path": str(programs.library)}, []) as reply:
                told, _ = wire.receive(reply)
            if told is None or "error" in told:
                raise OSError((told or {}).get("error", "the process that makes boxes has died"))
            self._programs = programs

    def _take(self, spec: BoxSpec) -> Blank:
        """One that can become what is asked for."""
        while True:
            blank = self._blanks.take()
            if spec.still is None or blank.can_be_still:
                return blank
            self._destroy(blank)  # it was ordered before there was any clock

    def _can_map(self) -> bool:
        """Kernels before 5.19 cannot map overlay layers, nor can some file systems.

        Root in a box is then the host's root, without its capabilities. A box of nothing tells.
        """
        if self._proved or not self.mapped:
            return True  # it was not the mapping
        try:
            self._become(self._blanks.take(), self._of_nothing()).destroy()
        except OSError as e:
            self.mapped = not any(word in str(e) for word in _MAPPING)
            return self.mapped
        self._proved = True
        return True

    def _of_nothing(self) -> BoxSpec:
        folder = self._run / "nothing"
        folder.mkdir(exist_ok=True)
        layer = ImageLayer(diff_id=Digest(""), tar=folder, folder=folder)
        image = Image(name="nothing", digest=Digest(""), config=folder, layers=(layer,), env={})
        return BoxSpec(image=image)

    def _hurry(self) -> None:
        self.zygote.ask({"op": "hurry"}, []).close()

    def _order(self, later: bool) -> tuple[Blank, socket.socket]:  # noqa: FBT001 - see Blanks
        with self._lock:
            self._count += 1
            name = f"{self._run.name}.{self._count}"
            owner = self._owner() if self.mapped and not self._rootless else 0
            loaded = self._programs is not None
        ours, theirs = wire.pair()
        blank = Blank(
            name=name,
            folder=self._run / name,
            owner=owner,
            channel=ours,
            born=clock.Birth.now(),
            can_be_still=loaded,
        )
        request = {
            "op": "blank",
            "later": later,
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

    def _become(self, blank: Blank, spec: BoxSpec, *, begin: bool = True) -> Body:
        wanted = spec.limits
        processors = self._processors.take(wanted.cpus) if spec.still else []
        mounts = [(str(m.source), m.target) for m in spec.mounts]
        if spec.still and self._programs:
            mounts.append((str(self._programs.still), clock.PROGRAM))
        try:
            if wanted.disk == "loop":
                _make_disk(blank.folder / DISK_IMAGE, wanted.disk_mib)
            self._groups.limit(
                blank.name,
                memory_bytes=wanted.memory_mib * _MIB,
                pids=wanted.pids + (clock.THREADS if spec.still else 0),
                cpus=wanted.cpus,
            )
            folders = tuple(str(folder) for folder in spec.lowers)
            request = {
                "op": "build",
                "lowers": folders,
                "disk": wanted.disk,
                "disk_mib": wanted.disk_mib,
                "terminals": wanted.terminals,
                "mounts": mounts,
                "tmpfs": dict(spec.tmpfs),
                "hostname": spec.hostname,
                "workdir": spec.workdir,
                "open_files": wanted.open_files,
                "file_mib": wanted.file_mib,
                "processes": wanted.pids if self._rootless else None,
                "guise": clock.seen(spec, len(processors)),
                "clock": clock.request(spec, blank.born, begin=begin),
            }
            made, upper, ready = _built(blank, request, spec.snapshot)
            if processors:
                os.sched_setaffinity(blank.pid, processors)
        except BaseException:
            self._processors.give_back(processors)
            self._destroy(blank)
            raise
        files = Files(
            upper=upper,
            lowers=folders,
            made=frozenset(made),
            root=os.geteuid() if self._rootless else 0,
        )
        return Body(
            blank,
            self._groups,
            files,
            processors,
            clock.Clock.begun(spec, blank.born.real_ns, ready),
            lambda: self._release(blank, processors),
        )

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

    def _release(self, blank: Blank, processors: list[int] | None = None) -> None:
        self._processors.give_back(processors or [])
        if blank.owner:
            with self._lock:
                heapq.heappush(self._free, blank.owner)


def _built(
    blank: Blank, request: dict[str, Any], snapshot: Snapshot | None
) -> tuple[list[str], int, dict[str, Any]]:
    with ExitStack() as opened:
        tars = [opened.enter_context(snapshot.tar.open("rb"))] if snapshot else []
        wire.send(blank.channel, request, [tar.fileno() for tar in tars])
    _, fds = blank.hear()
    try:
        built, _ = blank.hear()
        ready, _ = blank.hear()  # whoever built it is gone
    except BaseException:
        os.close(fds[0])
        raise
    return built["made"], fds[0], ready


def _spread(folder: Path) -> None:
    """Ask ext4 to put what is in it far apart.

    It does not use a deleted file's place again for some seconds, but looks at it each time: boxes
    that come and go side by side would make each other slow. Other file systems do not know this.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flags = struct.unpack("l", fcntl.ioctl(fd, _GET_FLAGS, bytes(8)))[0]
        fcntl.ioctl(fd, _SET_FLAGS, struct.pack("l", flags | _TOP_OF_A_TREE))
    except OSError:
        pass
    finally:
        os.close(fd)


def _make_disk(path: Path, mib: int) -> None:
    """An empty ext4 in a file that takes no more room than is written to it."""
    with path.open("wb") as f:
        f.truncate(mib * _MIB)
    command = ["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-m", "0", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"mkfs.ext4: {done.stderr.strip()}")
