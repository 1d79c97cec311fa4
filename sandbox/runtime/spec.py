"""What a box is made of: values, which a runtime turns into a running container."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

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
    """The lowest first. One may come twice, as empty ones do in images that others made."""
    env: Mapping[str, str]

    @property
    def lowers(self) -> tuple[Path, ...]:
        """Folders for an overlay, the topmost first, each once: it refuses one given twice.

        Whatever a layer says is said by its topmost place, so the lower ones change nothing.
        """
        return tuple(dict.fromkeys(layer.folder for layer in reversed(self.layers)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """Files a box starts with beside its image: the repository. Paths are from the root."""

    tar: Path
    folder: Path
    """The same, unpacked; like an image layer it is never written to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a box had changed: portable between runtimes, like a layer on top of its image.

    The tar is an OCI layer: sorted names, owners and modes, `.wh.NAME` for what was removed.
    """

    image: Digest
    """Of the box's image; the changes mean nothing without it."""
    seeds: tuple[str, ...]
    """Names of the folders of its seeds, which come below the changes too."""
    tar: Path
    sha256: str
    """Of the tar. Restoring one that was altered is refused."""
    clock_ns: int | None = None
    """What the box's own clock said, if it had one: a box made from this goes on from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder or file of this machine that a box sees, never to write to."""

    source: Path
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stillness:
    """The wall clock of every program in a box, however it was started, and what else is held.

    Monotonic time is never touched: sleeping and waiting take as long as they say.
    """

    at_ns: int
    """Where the clock starts when the box is made: nanoseconds since the epoch. A box with a
    snapshot starts where that was taken, if this is later."""
    mode: Literal["ticking", "fixed", "step"] = "ticking"
    """`ticking`: runs with monotonic time; `fixed`: stands; `step`: moves with each time it is read."""
    step_ns: int = 1_000_000
    aslr: bool = True
    """Whether programs are laid out in memory at random."""
    seed: int | None = None
    """Of what the kernel gives as random numbers; None: real ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSpec:
    image: Image
    seeds: tuple[Seed, ...] = ()
    snapshot: Snapshot | None = None
    """Changes the box starts with, of one with the same image and seeds."""
    limits: Limits = field(default_factory=Limits)
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "0:0"
    """Who programs run as, unless told otherwise: `uid:gid`, numbers."""
    mounts: tuple[Mount, ...] = ()
    tmpfs: Mapping[str, int] = field(default_factory=dict)
    """Folders in memory: path → MiB. They count towards the memory limit."""
    hostname: str = HOSTNAME
    still: Stillness | None = None
    """None: the machine's clock. A runtime that cannot hold it (see `Capabilities.still`) refuses."""
    umask: int = 0o022
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def lowers(self) -> tuple[Path, ...]:
        """Folders below what the box changes: of the seeds and the image, the topmost first."""
        return (*(seed.folder for seed in reversed(self.seeds)), *self.image.lowers)

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment: ours, then the image's, then the task's."""
        return {**ENVIRONMENT, **self.image.env, **self.env}
