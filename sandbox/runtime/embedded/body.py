"""What a box is made of: its first process, its control groups, its folder. A reset gives it another."""

import contextlib
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sandbox.errors import RuntimeFault
from sandbox.runtime import changeset, upper
from sandbox.runtime.base import Change
from sandbox.runtime.embedded import clock, filesystem, wire
from sandbox.runtime.embedded.cgroup import Cgroups, Usage
from sandbox.runtime.embedded.client import Blank
from sandbox.runtime.embedded.unnamed import unnamed_bytes
from sandbox.runtime.ready import readable
from sandbox.runtime.spec import BoxSpec, Snapshot
from sandbox.runtime.store import remove_tree

_DYING_SECONDS = 1.0
"""Its channel may be closed a moment before it is dead."""
_DEAD_SECONDS = 30.0
_BEGIN_SECONDS = 30.0
_TAKEN_IN = struct.pack("ll", 30, 0)
"""How long a request waits for room in the channel: seconds, and microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The parts of its file system, for reading what has changed."""

    upper: int
    """Descriptor of the folder that holds the changes, wherever that is mounted."""
    lowers: tuple[str, ...]
    """The folders below it, the topmost first."""
    made: frozenset[str]
    """Folders that had to be made for it to be a box: they are no changes."""
    root: int
    """The owner on the disk who is root in the box."""


class Body:
    def __init__(
        self,
        blank: Blank,
        groups: Cgroups,
        files: Files,
        processors: list[int],
        begun: clock.Clock | None,
        release: Callable[[], None],
    ) -> None:
        """`processors`: those it runs on, if it may not run on all. `begun`: its clock, if it runs.

        `release`: its owner's number, and they, are free again.
        """
        self.name = blank.name
        self.owner = blank.owner
        self.pidfd = blank.pidfd
        self.mounts = blank.mounts
        self._blank = blank
        self._groups = groups
        self._files = files
        self._release = release
        self._lock = threading.RLock()
        self._talk = threading.Lock()
        """Not the same: who talks to a box that stands still must not keep it from being thawed."""
        blank.channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TAKEN_IN)
        self.processors = processors
        self._clock = begun
        self._started: clock.Started | None = None
        self._hearing = threading.Lock()
        self._stopped_ns: int | None = None
        self._frozen = False
        self.stopped = self.gone = False

    @property
    def group_paths(self) -> list[str]:
        return self._groups.paths(self.name)

    def host_ids(self, user: str) -> tuple[int, int]:
        """Who `uid:gid` of the box is on this machine."""
        uid, _, gid = user.partition(":")
        return self._files.root + int(uid), self._files.root + int(gid)

    def ask(self, message: dict[str, Any], fds: list[int]) -> socket.socket:
        """Send a request to its first process; the answers come on what is returned."""
        ours, theirs = wire.pair()
        try:
            with self._talk, theirs:
                if self.gone:
                    raise RuntimeFault("the box is gone")
                wire.send(self._blank.channel, message, [theirs.fileno(), *fds])
        except (OSError, ValueError) as e:
            ours.close()
            raise RuntimeFault(f"the box is gone: {e}" if isinstance(e, OSError) else str(e)) from e
        except BaseException:
            ours.close()
            raise
        return ours

    def begin(self, spec: BoxSpec) -> None:
        """Start its clock, if it is to have one that does not run yet. Raises RuntimeFault."""
        if spec.still is None or self._clock:
            return
        born = self._blank.born
        request = {"op": "begin", "clock": clock.request(spec, born, begin=True)}
        self._started = clock.Started(spec, born.real_ns, self.ask(request, []))

    @property
    def clock(self) -> clock.Clock | None:
        """Its own, as soon as that runs. Raises RuntimeFault when it does not."""
        with self._hearing:
            if self._started:
                started, self._started = self._started, None
                try:
                    self._clock = started.heard()
                except RuntimeFault:
                    if not self.stopped:  # before it could start, and so before anything ran
                        raise
            return self._clock

    def stop(self) -> None:
        """Kill everything in it."""
        with self._lock:
            if self.gone:
                return
            if self._stopped_ns is None:
                self._stopped_ns = time.monotonic_ns()
            self.stopped = True
            if self._frozen:
                self.thaw()  # what is frozen does not die
            # The kernel ends a process namespace with its first process, and tells us of that
            # one only when all others are dead.
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
            if not readable([self.pidfd], _DEAD_SECONDS):
                raise RuntimeFault(f"box {self.name} does not die (process {self._blank.pid})")

    def lost(self) -> bool:
        with self._lock:
            if self.gone or self.stopped:
                return self.gone
            ended = readable([self.pidfd], _DYING_SECONDS if self._closed() else 0)
            return bool(ended) and not self.ran_out()

    def destroy(self) -> None:
        """Nothing of it is left when this returns. Harmless the second time."""
        with self._lock:
            if self.gone:
                return
            self.stop()
            self.gone = True
            self._blank.close()
            os.close(self._files.upper)
            if self._started:
                self._started.close()
        try:
            if not filesystem.discard(str(self._blank.folder)):
                remove_tree(self._blank.folder)
        finally:  # after its files: the kernel would wait until they are on the disk
            self._groups.remove(self.name)
        self._release()

    def freeze(self) -> None:
        with self._lock:
            self._require_alive()
            self.clock  # noqa: B018 - nobody could start it in a box that stands still
            try:
                self._groups.freeze(self.name)
            except OSError:
                self._groups.thaw(self.name)  # half frozen, it could not even be killed
                raise
            self._frozen = True

    def thaw(self) -> None:
        with self._lock:
            if self._frozen:
                self._groups.thaw(self.name)
                self._frozen = False

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Nothing in it runs meanwhile, where the machine can do that."""
        with self._lock:
            idle = self._frozen or self.stopped or not self._groups.can_freeze
            if not idle:
                self.freeze()
            try:
                yield
            finally:
                if not idle:
                    self.thaw()

    def changes(self) -> list[Change]:
        with self.still():
            found = upper.changes(self._upper(), self._files.lowers)
        made = self._files.made
        return [c for c in found if not (c.kind == "added" and c.path in made)]

    def snapshot(self, spec: BoxSpec, tar: Path) -> Snapshot:
        own, read = self.clock, self._read_clock()
        with self.still():
            taken = changeset.write(
                self._upper(),
                self._files.lowers,
                spec,
                tar,
                leave_out=self._files.made,
                root=self._files.root,
                axis=own.axis if own else None,
            )
            if own is None:
                return taken
            now = clock.now_ns(own, self._stopped_ns) if read is None else read
            return replace(taken, clock_ns=now)

    def disk_bytes(self) -> int:
        """Files that were deleted and are open still take their place, and count."""
        with self._lock:
            folder = os.dup(self._upper())
        try:
            return self._named_bytes(folder) + unnamed_bytes(
                self._groups.processes(self.name), folder
            )
        finally:
            os.close(folder)

    def _named_bytes(self, folder: int) -> int:
        try:
            return upper.disk_bytes(folder)
        except RuntimeFault:
            # Folders that are moved all the time are not seen in one piece, unless it stands still.
            with self.still():
                return upper.disk_bytes(folder)

    def usage(self) -> Usage:
        return self._groups.usage(self.name)

    def events(self) -> tuple[int, int]:
        """How many were killed for memory, how many forks refused."""
        return self._groups.events(self.name)

    def terminals(self) -> int:
        """How many are open in it now."""
        with contextlib.suppress(OSError):
            folder = f"/proc/{self._blank.pid}/root/dev/pts"
            return sum(name.isdigit() for name in os.listdir(folder))
        return 0

    def ran_out(self) -> bool:
        """Was anything in it killed for the memory it used?"""
        return self._groups.ran_out_of_memory(self.name)

    def _read_clock(self) -> int | None:
        """What one that moves with its reads says; None: it is not such a one, or it is over."""
        if (
            self._clock is None
            or not self._clock.steps
            or self._frozen
            or self.stopped
            or self.gone
        ):
            return None
        with self.ask({"op": "clock"}, []) as reply:
            told = wire.receive(reply)[0] if readable([reply], _BEGIN_SECONDS) else None
        return int(told["now_ns"]) if told and "now_ns" in told else None

    def _closed(self) -> bool:
        """Has its first process let go of the channel? Then it is dead, or about to be."""
        return bool(readable([self._blank.channel], 0))

    def _upper(self) -> int:
        if self.gone:
            raise RuntimeFault("the box is gone")
        return self._files.upper

    def _require_alive(self) -> None:
        if self.gone or self.stopped:
            raise RuntimeFault("the box is stopped")
