"""A box: one container at a time, and what can be done with it."""

import contextlib
import itertools
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from sandbox.errors import RuntimeFault
from sandbox.runtime import changeset, limits, upper
from sandbox.runtime.base import (
    STATUS_BYTES,
    Change,
    ExecResult,
    Foreground,
    Scope,
    Stats,
)
from sandbox.runtime.docker import facts, programs, server
from sandbox.runtime.docker.channel import Command
from sandbox.runtime.docker.config import ROOT, made_paths, user_of
from sandbox.runtime.docker.container import Container
from sandbox.runtime.docker.engine import faults
from sandbox.runtime.docker.programs import Ended, WentDown
from sandbox.runtime.docker.reading import Reading
from sandbox.runtime.docker.tarstream import root_owned
from sandbox.runtime.docker.terminal import HANG_UP, KILLED, LAUNCH, LAUNCH_WIRED, DockerPty
from sandbox.runtime.docker.wires import HOLD
from sandbox.runtime.spec import BoxSpec, Snapshot

HANG_UP_SECONDS = 10.0
ANSWER_SECONDS = 30.0
LOOK_SECONDS = 0.3
"""A look is for now, and whoever asks has a clock of its own."""
COUNT_SECONDS = 1.0
"""How long a program's result may wait for what it ran into."""
DEATH_SECONDS = 5.0
"""How long the engine may take to notice that a container has ended."""


class Home(Protocol):
    """The runtime, as its boxes see it."""

    def container(self, spec: BoxSpec) -> Container:
        """A fresh one, ready or made."""
        ...

    def fork(self, box: "DockerBox") -> "DockerBox": ...

    def forget(self, box: "DockerBox") -> None:
        """It has been destroyed."""
        ...


class DockerBox:
    def __init__(self, home: Home, spec: BoxSpec, container: Container) -> None:
        self.spec = spec
        self._home = home
        self._id = container.id
        self._container = container
        self._lock = threading.Lock()
        self._gone = False
        self._kept = contextlib.ExitStack()
        self._begin()

    def _begin(self) -> None:
        self._stopped = False
        self._stopped_ns: int | None = None
        self._frozen = False
        self._told = self._last = facts.NOTHING
        self._fatal = ""
        """The limit that ended the box, in words; and whether `reached` has said so."""
        self._fatal_told = False

    @property
    def id(self) -> str:
        return self._id

    def keep(self, resources: contextlib.ExitStack) -> None:
        """What has to be there as long as the box."""
        self._kept = resources

    def open_pty(
        self,
        argv: Sequence[str],
        *,
        rows: int = 40,
        cols: int = 160,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        wires: bool = False,
    ) -> DockerPty:
        container = self._container
        who = user or self.spec.user
        size = (str(rows), str(cols))
        launch = ["bash", "-p", "-c", LAUNCH_WIRED] if wires else ["sh", "-c", LAUNCH]
        exec_id = programs.prepare(
            container, [*launch, "sh", *size, *argv], tty=True, env=env or {}, cwd=cwd, user=who
        )
        holder = None
        if wires:
            hold = ["sh", "-c", HOLD]
            holder = programs.prepare(container, hold, tty=False, env={}, cwd="/", user=who)
        pty = DockerPty(container, _Inside(self, container), exec_id, holder)
        pty.start()
        return pty

    def exec(
        self,
        argv: Sequence[str],
        *,
        seconds: float,
        input: bytes = b"",  # noqa: A002
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        trusted: bool = False,
        output_bytes: int = STATUS_BYTES,
    ) -> ExecResult:
        container = self._container
        channel = None if trusted else container.channel
        given = dict(env or {})
        command = Command(
            argv=argv,
            env=given if channel is None else {**self.spec.environment, **given},
            cwd=cwd or self.spec.workdir,
            user=user_of(user or self.spec.user),
            input=input,
            output_bytes=output_bytes,
        )
        if self._stopped:
            raise RuntimeFault(f"cannot run {argv[0]}: the box was stopped")
        before = self._last
        try:
            if channel is None:
                ended = programs.run_from_outside(container, command, seconds)
            else:
                ended = programs.run(channel, command, seconds)
        except WentDown as e:
            return self._went_down(container, e)
        ended = _counted(container, ended, before)
        if ended.exit_code is None:
            self.stop()
        return self._result(ended)

    def put(self, archive: bytes, folder: str) -> None:
        container = self._container
        if self._stopped:
            raise RuntimeFault(f"cannot put files into {folder}: the box was stopped")
        try:
            with faults(f"put files into {folder}"):
                blocks = root_owned(archive, folder, container.linked)
                container.engine.api.put_archive(container.id, "/", blocks)
        except (tarfile.TarError, OverflowError, ValueError) as e:
            raise RuntimeFault(f"cannot put files into {folder}: {e}", retry=False) from e

    def get(self, path: str) -> Iterator[bytes]:
        blocks = Reading(self._container, self._lowers()).get(path)
        # Begin now: a path that is not there is told here, not at the first use.
        return itertools.chain([next(blocks)], blocks)

    def changes(self) -> list[Change]:
        made = made_paths(self.spec)
        with self._container.open_upper() as folder:
            found = upper.changes(folder, self._lowers())
        return [c for c in found if c.kind != "added" or c.path not in made]

    def snapshot(self, tar: Path) -> Snapshot:
        with self._standing_still(), self._container.open_upper() as folder:
            made = made_paths(self.spec)
            clock = self._clock_ns()
            held = self._container.held
            axis = held.axis if held else None
            taken = changeset.write(
                folder, self._lowers(), self.spec, tar, leave_out=made, axis=axis
            )
            return replace(taken, clock_ns=clock)

    def fork(self) -> "DockerBox":
        return self._home.fork(self)

    def reset(self) -> None:
        self._check_there()
        fresh = self._home.container(self.spec)
        with self._lock:
            old = fresh  # destroyed meanwhile
            if not self._gone:
                old, self._container = self._container, fresh
                self._begin()
        old.remove()
        self._check_there()

    def freeze(self) -> None:
        with self._lock:
            if not self._frozen:
                self._container.pause()
                self._frozen = True

    def thaw(self) -> None:
        with self._lock:
            if self._frozen:
                self._container.unpause()
                self._frozen = False

    def kill_all(self) -> None:
        channel = self._container.channel
        if channel is not None:
            programs.ask(channel, server.KILL, ANSWER_SECONDS, b"%d" % self._container.parent)
        else:
            kill = ["sh", "-c", "kill -KILL -1"]
            self.exec(kill, seconds=ANSWER_SECONDS, user=ROOT, cwd="/", trusted=True)

    def signal(
        self, shell: int, number: int, *, scope: Scope = "foreground", more: Sequence[int] = ()
    ) -> list[int]:
        return programs.signal(self._container, shell, int(number), scope, more)

    def stats(self) -> Stats:
        now = replace(self._last, memory_bytes=0, processes=0, terminals=0)
        if not self._stopped:
            now = self._measure()
            self._last = now
        processes = max(0, now.processes - self._container.tasks)
        return replace(now, processes=processes, disk_bytes=self._container.disk_bytes())

    def reached(self) -> str:
        fatal = "" if self._fatal_told else self._fatal
        self._fatal_told = bool(self._fatal)
        if not self._stopped:
            with contextlib.suppress(RuntimeFault):  # it is gone; what was seen last still counts
                self._last = self._measure()
        before, self._told = self._told, self._last
        return limits.join([limits.reached(before, self._told, self.spec.limits), fatal])

    def stop(self) -> None:
        if not self._stopped:
            self._stopped_ns = time.monotonic_ns()
        self._stopped = True
        self._container.kill()

    def lost(self) -> bool:
        if self._gone:  # though the engine may know it still: it is just being removed
            return True
        state = self._container.state()
        if not state or self._stopped:
            return not state
        return not state["Running"] and not state.get("OOMKilled")

    def destroy(self) -> None:
        with self._lock:
            self._gone = self._stopped = True
        self._container.remove()
        self._home.forget(self)
        self._kept.close()

    def disk_bytes(self) -> int:
        """For the watch."""
        return self._container.disk_bytes()

    def over_disk(self, used: int) -> None:
        del used
        self._fatal = limits.disk(self.spec.limits)
        self.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.destroy()

    def _check_there(self) -> None:
        if self._gone:
            raise RuntimeFault("the box is gone")

    def _result(self, ended: Ended) -> ExecResult:
        limit = self._fatal
        if ended.before is not None and ended.after is not None:
            limit = limits.reached(ended.before, ended.after, self.spec.limits)
            self._last = ended.after
        return ExecResult(
            exit_code=ended.exit_code,
            stdout=ended.stdout,
            stderr=ended.stderr,
            truncated=ended.truncated,
            limit=limit,
        )

    def _went_down(self, container: Container, down: WentDown) -> ExecResult:
        """A limit ended the box, which is the program's own affair; or it is a fault."""
        if not self._stopped and _ended_for_memory(container):
            self._fatal = limits.memory_of_box(self.spec.limits)
            self._stopped = True
        if not self._fatal or container is not self._container:
            raise RuntimeFault("the box was stopped while the program ran") from down
        return ExecResult(
            exit_code=KILLED, stdout=down.stdout, stderr=down.stderr, limit=self._fatal
        )

    def _measure(self) -> Stats:
        channel = self._container.channel
        if channel is not None:
            return facts.parse(programs.ask(channel, server.FACTS, ANSWER_SECONDS))
        said = self.exec(facts.ASK, seconds=ANSWER_SECONDS, user=ROOT, cwd="/", trusted=True)
        return facts.parse(said.stdout)

    def _clock_ns(self) -> int | None:
        """What its own clock says, which stands when it was stopped."""
        held = self._container.held
        if held is None:
            return None
        return held.axis.now_ns(self._stopped_ns or time.monotonic_ns())

    def _lowers(self) -> list[str]:
        return [str(folder) for folder in self.spec.lowers]

    @contextlib.contextmanager
    def _standing_still(self) -> Iterator[None]:
        if self._frozen or self._stopped:
            yield
            return
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def is_on(self, container: Container) -> bool:
        """In a box that was reset, numbers of processes are others'."""
        return container is self._container


class _Inside:
    """The box, as its terminals see it."""

    def __init__(self, box: DockerBox, container: Container) -> None:
        self._box = box
        self._container = container

    def hang_up(self, pid: int, holder: int) -> None:
        """As a terminal that goes away does. A stopped program gets it when it continues."""
        if self._box.is_on(self._container):
            argv = ["sh", "-c", HANG_UP, "sh", str(pid), str(holder)]
            self._box.exec(argv, seconds=HANG_UP_SECONDS, user=ROOT, cwd="/")

    def tie(self, pid: int, holder: int) -> None:
        """Without a server the end of the wires is seen when the terminal is closed, not before."""
        if self._container.channel is not None:
            content = b"%d\0%d" % (pid, holder)
            programs.ask(self._container.channel, server.TIE, ANSWER_SECONDS, content)

    def look(self, pid: int, control: str) -> Foreground | None:
        """Only the server can: a program started for this would cost more than it tells."""
        channel = self._container.channel
        return None if channel is None else programs.look(channel, pid, control, LOOK_SECONDS)


def _counted(container: Container, ended: Ended, before: Stats) -> Ended:
    """With what the box has run into meanwhile, where the server does not tell by itself."""
    if ended.after is not None or container.channel is None:
        return ended
    try:
        after = facts.parse(programs.ask(container.channel, server.FACTS, COUNT_SECONDS))
    except RuntimeFault:  # the box is frozen, or gone
        return ended
    return replace(ended, before=before, after=after)


def _ended_for_memory(container: Container) -> bool:
    deadline = time.monotonic() + DEATH_SECONDS
    while state := container.state():
        if not state["Running"]:
            return bool(state.get("OOMKilled"))
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return False
