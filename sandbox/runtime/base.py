"""What a runtime is: a few verbs on boxes. Every engine is an adapter behind these protocols."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

from sandbox.runtime.spec import BoxSpec, Image, Snapshot

STATUS_BYTES = 1 << 20
"""What `exec` keeps of each stream unless told otherwise."""

DiskKind = Literal["watch", "tmpfs", "loop"]
Held = Literal["memory", "pids", "cpus", "disk", "file", "open_files", "terminals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a runtime can do on this machine, as it is now."""

    limits: frozenset[Held]
    """Which limits hold. What is missing here is not held back by anything."""
    disk: tuple[DiskKind, ...]
    """How the disk limit can be held: `limits.disk` of a spec must be one of them."""
    cgroups: Literal["v1", "hybrid", "v2", "none", "engine"]
    user_namespace: bool
    """Is root in a box somebody without rights on this machine?"""
    rootless: bool
    freeze: bool
    """Can a box be paused?"""
    snapshot: bool
    still: str = "this runtime has no clock of its own"
    """Why a box cannot have a clock of its own (`BoxSpec.still`) here; empty when it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What a box uses now, and how often it ran into a limit since it was made."""

    memory_bytes: int
    processes: int
    cpu_seconds: float
    disk_bytes: int
    """Of what it has changed; every file counts 4 KiB at least."""
    terminals: int
    oom_kills: int
    """Processes killed for the memory that all of them used."""
    forks_refused: int
    """Processes that were one too many."""


@dataclass(frozen=True, slots=True, order=True)
class Change:
    path: str
    """Absolute. Names that are not UTF-8 have surrogates."""
    kind: Literal["added", "modified", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecResult:
    exit_code: int | None
    """None when its time was up. 128 + n when signal n ended it, as in a shell."""
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    """One of the streams was longer than was kept; its beginning is what was kept."""
    limit: str = ""
    """Which limit of the box was reached meanwhile, in words; empty when none was."""

    @property
    def timed_out(self) -> bool:
        return self.exit_code is None


CONTROL, STATUS, OUTPUT = 250, 251, 253
"""Descriptors of a program that was started with wires: it reads the first, and writes the others."""


class Wires(Protocol):
    """Three pipes between the host and a program on a terminal, beside the terminal."""

    @property
    def lossless(self) -> bool:
        """Whether all that a program wrote is received before its end is, however it ended."""
        ...

    def filenos(self) -> tuple[int, ...]:
        """To poll for reading: one of them is readable when there may be something to receive."""
        ...

    def send(self, data: bytes, seconds: float) -> bool:
        """To its CONTROL. False: not all of it was taken in time, or it is gone."""
        ...

    def receive(self) -> tuple[bytes, bytes]:
        """What has come by OUTPUT and by STATUS; never waits.

        Raises EOFError when neither will bring anything any more, or nobody reads CONTROL.
        """
        ...


Doing = Literal["input", "control", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreground:
    """What the processes that a terminal's keys go to were doing at one moment."""

    doing: Doing
    """`input`: all of them sleep, and one waits for somebody to type; `control`: the program that
    the terminal was opened for waits for its CONTROL."""
    command: str
    """Of the one that waits, or of the group's first: the kernel's short name."""
    trace: str
    """Not the same as long as any of them does something."""


class Pty(Protocol):
    """The host's end of a terminal in a box."""

    @property
    def wires(self) -> Wires | None:
        """There if they were asked for. Closed with the terminal."""
        ...

    def fileno(self) -> int:
        """Read what the program prints, write what is typed: os.read and os.write work."""
        ...

    def foreground(self) -> Foreground | None:
        """None: there is no such process, or this runtime cannot tell."""
        ...

    def resize(self, rows: int, cols: int) -> None: ...

    def wait(self, seconds: float) -> int | None:
        """The exit code of the program, or None if it still runs after `seconds`."""
        ...

    def close(self) -> None:
        """Hang up: the program gets SIGHUP. Harmless the second time."""
        ...


Scope = Literal["foreground", "session", "none"]


class Box(Protocol):
    """A running container. All of it goes when it is destroyed; use it in a `with`."""

    @property
    def id(self) -> str: ...

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
    ) -> Pty:
        """Start a program on a new terminal, as its session leader."""
        ...

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
        """Run a program to its end. Ends when the program does, whoever still holds its pipes.

        `env` is added to the box's. `user`: `uid:gid`, else that of the spec. `trusted`: start it
        from outside, so that nothing that ran in the box before can have a part in it; slower.
        What still runs in it is root there, too, and can trace any program: `kill_all` first.
        When `seconds` are over, everything in the box is killed, as `stop` does.
        Raises RuntimeFault when the box is gone or the program cannot be started.
        """
        ...

    def put(self, archive: bytes, folder: str) -> None:
        """Unpack a tar archive in `folder`, owned by root.

        Resolved inside the box. Members that lead out of the folder, and what is no file, folder
        or link, are refused with a RuntimeFault; links that are in the way are replaced.
        """
        ...

    def get(self, path: str) -> Iterator[bytes]:
        """A tar stream of a file or folder; names start with its last component.

        Works after `stop`. Holds regular files, folders and symbolic links (never followed).
        Raises FileNotFoundError when there is no such path.
        """
        ...

    def changes(self) -> list[Change]:
        """What differs from the image and the seeds, sorted; of a new folder, all that is in it.

        Works after `stop`. Mounts, /proc, /sys, /dev and folders in memory are no part of it.
        """
        ...

    def snapshot(self, tar: Path) -> Snapshot:
        """Write the changes to the file `tar`. The box stands still meanwhile. Works after `stop`."""
        ...

    def fork(self) -> "Box":
        """Another box with the same files. Processes and terminals are not copied."""
        ...

    def reset(self) -> None:
        """Back to how it was made, every process and change gone; the box keeps its id."""
        ...

    def freeze(self) -> None:
        """Let no process in it run until `thaw`. Harmless the second time, as is `thaw`."""
        ...

    def thaw(self) -> None: ...

    def kill_all(self) -> None:
        """Kill every program in it; the box goes on, and new ones can be started."""
        ...

    def signal(
        self, shell: int, number: int, *, scope: Scope = "foreground", more: Sequence[int] = ()
    ) -> list[int]:
        """Signal the programs of a terminal, by their numbers in the box, and all they have started.

        `shell`: who leads the terminal's session. `scope`: its foreground group, the session, or
        nobody of it; `more` are signalled, too. The leader only is if it is among these. With the
        number 0 nobody is signalled. Returns who was there.
        """
        ...

    def stats(self) -> Stats: ...

    def reached(self) -> str:
        """Which limits were reached since this was last asked, in words; empty when none was."""
        ...

    def stop(self) -> None:
        """Kill every process in the box; its files can still be read with `get`."""
        ...

    def lost(self) -> bool:
        """Is it gone, or has it died without having been stopped? Not what runs in it did that."""
        ...

    def destroy(self) -> None:
        """Remove the box and everything in it. Harmless the second time."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None: ...


class Runtime(Protocol):
    """Makes boxes. Safe to use from several threads."""

    @property
    def name(self) -> str: ...

    def capabilities(self) -> Capabilities:
        """Raises RuntimeFault when it cannot run here at all."""
        ...

    def ensure_image(self, image: Image) -> None:
        """Have the image ready, so that the first box of it is as quick as the next."""
        ...

    def create(self, spec: BoxSpec) -> Box:
        """A new box, without a network but its own loopback.

        Raises RuntimeFault, also for a spec that asks for what it cannot hold here.
        """
        ...

    def warm(self, spec: BoxSpec, boxes: int) -> None:
        """Keep so many boxes of this spec ready, made in the background, for create and reset."""
        ...

    def reap(self) -> list[str]:
        """Remove what dead runs left behind, and say what; live runs' boxes stay."""
        ...

    def close(self) -> None:
        """Destroy the boxes that are left, and let go of the engine."""
        ...
