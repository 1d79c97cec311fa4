"""A container with a clock of its own: what its first process is, and what is mounted for it.

The first process is a static program of ours, which is also what every program comes through that
the engine starts beside it. Both are told the time axis, which begins here, not in the container.
"""

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import docker.errors
from docker.types import Mount

from sandbox.errors import RuntimeFault
from sandbox.runtime.docker.engine import Engine, faults
from sandbox.runtime.freeze import build, machine
from sandbox.runtime.freeze.axis import Axis, file_time_ns, start_ns
from sandbox.runtime.lease import SUFFIX
from sandbox.runtime.processors import Processors
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.store import Store, remove_tree

PROGRAM = "/.stillroom/still"
TARGETS = (PROGRAM, *machine.PATHS)
"""What is mounted. The engine makes these files in the container, the last when one is written to."""
CAPABILITIES = ("SETPCAP", "SYS_PTRACE")
"""For the supervisor, which takes the second from all that it starts, for ever, with the first: it
has to reach programs that have changed their user, as daemons do."""
TASKS = 5
"""What it takes of the processes: itself, its door, who answers for what the server starts, and two
who wait for others to come in."""
_UNSEEN = (
    "the container engine does not see the store's files: it is on another machine, or kept apart"
)
_NO_IMAGE = "stillroom-no-such-image"
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What holds one container's clock."""

    spec: BoxSpec
    axis: Axis
    program: Path
    folder: Path
    """Its files, which go with it."""
    texts: tuple[str, ...]
    """Paths in the box that say what these files say."""
    processors: tuple[int, ...]
    """Those it may use, by number; none: those of the engine."""
    kept: contextlib.ExitStack
    """What is to be given back."""

    def first(self, argv: Sequence[str]) -> list[str]:
        """The first process, which starts this one."""
        still, axis = self.spec.still, self.axis
        assert still is not None  # noqa: S101 - for the type checker: it would not be held
        words = [PROGRAM, "init", "--at", str(axis.at_ns), "--mode", still.mode]
        if still.mode == "step":
            words += ["--step", str(still.step_ns)]
        # What the kernel's clock said then, it finds itself: ours may be another, to us.
        words += ["--mono0", str(axis.mono0_ns)]
        if still.seed is not None:
            words += ["--seed", str(still.seed)]
        if not still.aslr:
            words += ["--no-aslr"]
        return [*words, "--guard", "--", *argv]

    def mounts(self) -> list[Mount]:
        files = {f"{self.folder}/{_name(path)}": path for path in self.texts}
        sources = {str(self.program): PROGRAM, **files}
        return [
            Mount(target, source, type="bind", read_only=True) for source, target in sources.items()
        ]

    @property
    def cpuset(self) -> str | None:
        return ",".join(map(str, self.processors)) or None

    def remove(self) -> None:
        """Harmless the second time."""
        self.kept.close()


class Holder:
    """Holds the clocks of one runtime's containers."""

    def __init__(self, engine: Engine, store: Store, owner: Callable[[], str]) -> None:
        """`owner`: the name of this run's lease."""
        self._engine = engine
        self._store = store
        self._owner = owner
        self._lock = threading.Lock()
        self._program: Path | None = None
        self._seen = False
        self._processors = Processors()

    def lacks(self) -> str:
        """Why no clock can be held; empty when it can be. Raises RuntimeFault without an engine."""
        return build.lacks() or self._apart()

    def hold(self, spec: BoxSpec) -> Held | None:
        """What is needed for one more container; None for a spec without a clock.

        Raises RuntimeFault where it cannot be held.
        """
        if spec.still is None:
            return None
        if why := self.lacks():
            raise RuntimeFault(
                f"the docker runtime cannot hold this box's clock: {why}",
                hint="a spec without `still` has the machine's clock",
                retry=False,
            )
        program = self._built()
        folder = folder_of(self._store, self._owner()) / secrets.token_hex(8)
        with contextlib.ExitStack() as stack:
            processors = self._processors.take(spec.limits.cpus) if self._known() else []
            stack.callback(self._processors.give_back, processors)
            axis = _begin(spec)
            stack.callback(remove_tree, folder)
            folder.mkdir(mode=0o700, parents=True)
            count = len(processors) or self._engine.processors
            texts = machine.told(machine.texts(count, _booted_ns(axis)))
            for path, text in texts.items():
                (folder / _name(path)).write_text(text)
            return Held(
                spec=spec,
                axis=axis,
                program=program,
                folder=folder,
                texts=tuple(texts),
                processors=tuple(processors),
                kept=stack.pop_all(),
            )

    def _built(self) -> Path:
        with self._lock:
            if self._program is None:
                self._program = build.programs(self._store).still
            return self._program

    def _known(self) -> bool:
        """Has the engine the processors that we have? Else nobody knows their numbers."""
        return self._engine.processors == len(os.sched_getaffinity(0))

    def _apart(self) -> str:
        """A box is only made if its mounts are found, but what it lacked would not be said so well."""
        self._seen = self._seen or self._sees()
        return "" if self._seen else _UNSEEN

    def _sees(self) -> bool:
        """Ask the engine to mount a file that has just got its name.

        It looks at mounts before it looks for the image, which is not there: nothing is made.
        """
        name = f"{_NO_IMAGE}:{secrets.token_hex(8)}"
        with faults("ask the engine about the store"), self._probe() as file:
            mount = Mount("/probe", str(file), type="bind", read_only=True)
            config = self._engine.api.create_host_config(mounts=[mount])
            try:
                self._engine.api.create_container(name, host_config=config)
            except docker.errors.APIError as e:
                return e.status_code == _NOT_FOUND
        return True

    @contextlib.contextmanager
    def _probe(self) -> Iterator[Path]:
        with self._store.scratch() as folder:
            file = folder / secrets.token_hex(8)
            file.touch()
            yield file


def folder_of(store: Store, owner: str) -> Path:
    """For the files of all containers of one owner."""
    name = owner.removesuffix(SUFFIX)
    if not name.isalnum():
        raise RuntimeFault(f"{owner!r} is no owner of a box", retry=False)
    return store.root / "docker" / name


def _begin(spec: BoxSpec) -> Axis:
    """The axis of a box that is made now."""
    still = spec.still
    assert still is not None  # noqa: S101 - for the type checker
    mono, real = time.monotonic_ns(), file_time_ns()
    return Axis(
        at_ns=start_ns(still, spec.snapshot),
        real0_ns=real,
        since_ns=real - _TICK_NS,
        mono0_ns=mono,
        ticking=still.mode == "ticking",
    )


def _booted_ns(axis: Axis) -> int:
    up_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - (time.monotonic_ns() - axis.mono0_ns)
    return axis.at_ns - up_ns


_TICK_NS = 50_000_000
"""The kernel dates files by its last tick, which was some milliseconds ago."""


def _name(path: str) -> str:
    return path.strip("/").replace("/", "-")
