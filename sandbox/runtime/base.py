"""What a runtime is: a few verbs on boxes. Every engine is an adapter behind these protocols."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from sandbox.model.task import Digest, Limits

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT: Mapping[str, str] = {
    "PATH": PATH,
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "USER": "root",
}
"""What every process in a box starts with, before the image's and the task's own."""
HOSTNAME = "box"
STATUS_BYTES = 1 << 20
"""What `exec` keeps of each stream unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLayer:
    diff_id: Digest
    tar: Path
    folder: Path
    """The same, unpacked: what the embedded runtime mounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image at hand: every layer is in the store, and is what the lock says."""

    name: str
    digest: Digest
    config: Path
    layers: tuple[ImageLayer, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """Files a box starts with beside its image: the repository. Paths are from the root."""

    tar: Path
    folder: Path
    """The same, unpacked; like an image layer it is never written to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSpec:
    image: Image
    seeds: tuple[Seed, ...] = ()
    limits: Limits = field(default_factory=Limits)
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment: ours, then the image's, then the task's."""
        return {**ENVIRONMENT, **self.image.env, **self.env}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecResult:
    exit_code: int | None
    """None when its time was up. 128 + n when signal n ended it, as in a shell."""
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    """One of the streams was longer than was kept; its beginning is what was kept."""

    @property
    def timed_out(self) -> bool:
        return self.exit_code is None


class Pty(Protocol):
    """The host's end of a terminal in a box."""

    def fileno(self) -> int:
        """Read what the program prints, write what is typed: os.read and os.write work."""
        ...

    def resize(self, rows: int, cols: int) -> None: ...

    def wait(self, seconds: float) -> int | None:
        """The exit code of the program, or None if it still runs after `seconds`."""
        ...

    def close(self) -> None:
        """Hang up: the program gets SIGHUP. Harmless the second time."""
        ...


class Box(Protocol):
    """A running container. All of it goes when it is destroyed; use it in a `with`."""

    @property
    def id(self) -> str: ...

    def open_pty(
        self, argv: Sequence[str], *, rows: int = 40, cols: int = 160, cwd: str | None = None
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
        output_bytes: int = STATUS_BYTES,
    ) -> ExecResult:
        """Run a program to its end. Ends when the program does, whoever still holds its pipes.

        `env` is added to the box's. When `seconds` are over, everything in the box is killed.
        Raises RuntimeFault when the box is gone or the program cannot be started.
        """
        ...

    def put(self, archive: bytes, folder: str) -> None:
        """Unpack a tar archive in `folder`, owned by root."""
        ...

    def get(self, path: str) -> Iterator[bytes]:
        """A tar stream of a file or folder; names start with its last component.

        Works after `stop`. Holds regular files, folders and symbolic links (never followed).
        Raises FileNotFoundError when there is no such path.
        """
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

    def create(self, spec: BoxSpec) -> Box:
        """A new box, without a network but its own loopback. Raises RuntimeFault."""
        ...

    def reap(self) -> list[str]:
        """Remove what dead runs left behind, and say what; live runs' boxes stay."""
        ...

    def close(self) -> None:
        """Destroy the boxes that are left, and let go of the engine."""
        ...
