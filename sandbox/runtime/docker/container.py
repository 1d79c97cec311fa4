"""One container: the engine's verbs on it, and the connection to its first process."""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import docker.errors
import docker.utils

from sandbox.errors import RuntimeFault
from sandbox.runtime import upper
from sandbox.runtime.docker import leaving
from sandbox.runtime.docker.channel import Channel
from sandbox.runtime.docker.engine import Engine, faults, late
from sandbox.runtime.docker.readings import Readings
from sandbox.runtime.docker.still import PROGRAM, TASKS, Held
from sandbox.runtime.freeze.axis import file_time_ns

GONE_CALLS = 4
"""How often in a row the engine may let us wait for the end of a container."""
USUAL_UMASK = 0o022
"""That of what an engine starts."""
MARKED = "still: "
"""What says why a program was not started begins with this, and the mark that it was given."""
CONFLICT = 409
SOCKET, LINK = 1 << 24, 1 << 27
"""Bits of a mode as the engine tells it: those of Go's library."""
_NOT_STOPPED = "could not be stopped"
"""Podman, of a container that ended by itself while it was about to be killed."""


class Container:
    """`channel` is None when the image has nothing that our server could run with."""

    def __init__(
        self,
        engine: Engine,
        container: str,
        *,
        held: Held | None = None,
        umask: int = USUAL_UMASK,
    ) -> None:
        self.engine = engine
        self.id = container
        self.held = held
        """What holds its clock, if it has one of its own."""
        self._umask = umask
        self.channel: Channel | None = None
        self._connection: Channel | None = None
        self._upper = ""
        self.readings = Readings()

    def connect(self, connection: Channel, *, serves: bool) -> None:
        """The container lives as long as its connection; commands go over it if it `serves`."""
        self._connection = connection
        self.channel = connection if serves else None

    def inside(self, argv: Sequence[str], mark: str = "") -> list[str]:
        """A program as the engine has to start it, to have what every program in the box has.

        Then the engine does not see that it cannot be started: the `mark` says so, after MARKED.
        """
        words = list(argv)
        if self._umask != USUAL_UMASK:
            # Its own name is what a shell begins its complaints with.
            script = f'umask {self._umask:04o} && exec "$@"'
            words = ["sh", "-c", script, MARKED + mark, *words]
        return [PROGRAM, "join", "--mark", mark, "--", *words] if self.held else words

    def dated(self, seconds: float) -> int:
        """A file's time as programs see it, in whole seconds, of what the disk or an archive says."""
        if self.held is None:
            return int(seconds)
        axis, second = self.held.axis, 1_000_000_000
        time_ns = int(seconds) * second
        if time_ns < axis.since_ns < time_ns + second:  # an archive has whole seconds only
            time_ns = axis.since_ns
        return axis.shown_ns(time_ns, file_time_ns()) // second

    @property
    def tasks(self) -> int:
        """How many of its processes hold its clock."""
        return TASKS if self.held else 0

    @property
    def parent(self) -> int:
        """Of the process that serves: the supervisor, or nobody of the box."""
        return 1 if self.held else 0

    def state(self) -> dict[str, Any]:
        """Empty when the engine does not know the container."""
        try:
            with faults("ask about the box"):
                return dict(self.engine.brief.inspect_container(self.id)["State"])
        except RuntimeFault as e:
            if isinstance(e.__cause__, docker.errors.NotFound):
                return {}
            raise

    def running(self) -> bool:
        return bool(self.state().get("Running"))

    def kill(self) -> None:
        try:
            self._kill()
        except RuntimeFault as e:
            if late(e) and self.readings.cut():
                self._kill()
            elif self.running():
                raise
        if self._connection is not None:
            self._connection.close()

    def pause(self) -> None:
        with faults("freeze the box"):
            self.engine.brief.pause(self.id)

    def unpause(self) -> None:
        with faults("thaw the box"):
            self.engine.brief.unpause(self.id)

    def remove(self) -> None:
        """Until the engine does not know it any more."""
        deadline = time.monotonic() + GONE_CALLS * self.engine.brief_seconds
        pause = 0.05
        self.readings.cut()
        try:
            if self.engine.local is not False:
                with contextlib.suppress(RuntimeFault):  # said below, if it is still so
                    leaving.end(self.id, int(self.state().get("Pid") or 0))
            while not self._removed():
                if time.monotonic() > deadline:
                    raise RuntimeFault(
                        f"the engine does not remove container {self.id}",
                        hint="`stillroom doctor --reap` removes it when the engine can",
                    )
                time.sleep(pause)
                pause = min(pause * 2, 1.0)
            if self.held is not None:
                self.held.remove()
        finally:
            if self._connection is not None:
                self._connection.close()

    def disk_bytes(self) -> int:
        if self.upper_readable():
            with self.open_upper() as folder:
                return upper.disk_bytes(folder)
        api: Any = self.engine.brief  # it has no method that asks for sizes
        with faults("measure the box's files"):
            url = api._url("/containers/{0}/json", self.id)  # noqa: SLF001
            found = api._get(url, params={"size": 1}).json()  # noqa: SLF001
        return int(found.get("SizeRw") or 0)

    def linked(self, path: str) -> bool | None:
        """Is there a link at this place in the box? None: there is nothing."""
        api: Any = self.engine.brief  # it has no method that asks for this
        with faults(f"look at {path}"):
            answer = api.head(
                api._url("/containers/{0}/archive", self.id),  # noqa: SLF001
                params={"path": os.fsencode(path)},
                timeout=self.engine.brief_seconds,
            )
            if not answer.ok:
                return None
            told = answer.headers.get("x-docker-container-path-stat")
            found = docker.utils.decode_json_header(told) if told else {}
        return bool(int(found.get("mode", 0)) & LINK)

    @contextlib.contextmanager
    def open_upper(self) -> Iterator[int]:
        """A descriptor of the folder with the container's changes. Raises RuntimeFault."""
        if not self.upper_readable():
            raise RuntimeFault(
                "the changes of a box can be read only by root, on the engine's machine, "
                "with its overlay2 storage",
                hint="the embedded runtime has no such need",
                retry=False,
            )
        try:
            folder = os.open(self._upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as e:
            raise RuntimeFault(f"cannot read the box's changes: {e}") from e
        try:
            yield folder
        finally:
            os.close(folder)

    def upper_readable(self) -> bool:
        """Is the engine on this machine, and its storage open to us?"""
        if not self._upper:
            with faults("ask about the box"):
                seen = self.engine.brief.inspect_container(self.id)
            if self.engine.local is None:
                self.engine.local = is_here(self.id, int(seen["State"]["Pid"]))
            if self.engine.local:
                data = (seen.get("GraphDriver") or {}).get("Data") or {}
                self._upper = str(data.get("UpperDir") or "")
        return bool(self._upper) and os.access(self._upper, os.R_OK | os.X_OK)

    def _removed(self) -> bool:
        """Ask for the removal once; True when the engine no longer knows the container."""
        try:
            with faults("destroy the box"):
                self._ask_for_removal()
            return not self.state()
        except RuntimeFault as e:
            if isinstance(e.__cause__, docker.errors.NotFound):
                return True
            if late(e):
                return False
            raise

    def _ask_for_removal(self) -> None:
        try:
            self.engine.brief.remove_container(self.id, force=True, v=True)
        except docker.errors.APIError as e:
            # Being removed by somebody else, or ending just now: wait for it.
            if e.status_code != CONFLICT and _NOT_STOPPED not in str(e.explanation):
                raise

    def _kill(self) -> None:
        with faults("stop the box"):
            self.engine.brief.kill(self.id, "SIGKILL")


def is_here(container: str, pid: int) -> bool | None:
    """Does a process of this machine run in the container? None: it cannot be told now.

    An address does not say: a socket may lead to another machine, which has the same paths.
    """
    if not pid:
        return None
    try:
        told = Path(f"/proc/{pid}/cgroup").read_text() + Path(f"/proc/{pid}/mountinfo").read_text()
    except OSError:
        return False
    return container in told
