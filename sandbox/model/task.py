"""A task: the pinned world an agent is put into, and how its work is judged."""

from collections.abc import Container
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, ClassVar, Literal, NewType

from sandbox.model.reserved import held_back
from sandbox.model.rooted import is_rooted

TaskId = NewType("TaskId", str)
Digest = NewType("Digest", str)
"""`sha256:` and 64 hex digits."""

WHOLE = "."
"""Of a submission's paths: the working directory."""
STRICT: dict[str, Any] = {"extra": "forbid", "use_attribute_docstrings": True}
"""For the parser in formats/: an unknown key is an error, docstrings describe fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoPin:
    """A commit, never a branch; `tree` lets us notice a checkout that lies."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    """A key of repos/lock.yaml."""
    commit: str
    """40 hex digits."""
    tree: str
    """40 hex digits: the tree of that commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePin:
    """An image by content: the sha256 of its config, which names its layers."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    """repos/images/<name>.lock.json."""
    digest: Digest
    """The config digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionSpec:
    """Which files are the agent's answer: what it leaves there. Nothing else is graded."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    paths: tuple[str, ...]
    """Files or folders, relative to the working directory, or `.` for all of it but its .git; or,
    with a `/` before them, of the box: see patches.md for what may be declared there."""
    exclude: tuple[str, ...] = ("**/__pycache__/**", "*.pyc")
    """Patterns within them that are never taken; as in .gitignore, without a slash for names."""

    def covers(self, path: str) -> bool:
        """Is this path part of a submission? Relative to the working directory, or rooted."""
        inside = any(path == top or path.startswith(f"{top}/") for top in self.paths)
        inside = inside or (self.whole and not is_rooted(path) and not _of_git(path))
        return inside and not any(_matches(path, pattern) for pattern in self.exclude)

    def takes(self, path: str, pinned: Container[str]) -> bool:
        """Is it part of a submission, and none of the files that are reserved?

        pinned: paths of the pinned tree.
        """
        return self.covers(path) and not held_back(path, pinned, self.paths)

    @property
    def whole(self) -> bool:
        """All of the working directory?"""
        return WHOLE in self.paths

    @property
    def inner(self) -> tuple[str, ...]:
        """Those of the working directory."""
        return tuple(path for path in self.paths if not is_rooted(path))

    @property
    def rooted(self) -> tuple[str, ...]:
        """Those of the box outside of it."""
        return tuple(path for path in self.paths if is_rooted(path))


def _of_git(path: str) -> bool:
    return path == ".git" or path.startswith(".git/")


def _matches(path: str, pattern: str) -> bool:
    if "/" not in pattern:
        return fnmatchcase(PurePosixPath(path).name, pattern)
    anywhere = pattern.removeprefix("**/")
    return fnmatchcase(path, pattern) or (anywhere != pattern and fnmatchcase(path, anywhere))


@dataclass(frozen=True, slots=True, kw_only=True)
class SolutionSpec:
    """Where the reference solution comes from: a patch file, or a fixed repository."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    patch: str | None = None
    """A file beside task.yaml."""
    repo: RepoPin | None = None
    """The fixed tree: the solution is the difference within `paths`."""
    paths: tuple[str, ...] = ()
    """Default: the submission's paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleSpec:
    """The hidden tests: a folder under verifiers/<task>/, paths of a pinned repository, or both."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    digest: Digest
    """Tree digest of what is put into the box."""
    folder: str | None = None
    """A folder under verifiers/<task>/; its content replaces `paths` in the working directory."""
    repo: RepoPin | None = None
    """Its `paths` do. With a folder, that is put over them: more tests than the project has."""
    paths: tuple[str, ...] = ()
    """Removed from the working directory first, then put there from the bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSpec:
    """One thing the verifier looks at. A gate that does not pass zeroes the reward."""

    id: str
    weight: float = 1.0
    gate: bool = False
    accept: tuple[str, ...] = ()
    """Outcomes that count as a pass beside `passed`: skipped, xfailed, xpassed."""


Runner = Literal["pytest", "unittest", "shell", "node", "go", "cargo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadySpec:
    """When a service is: exactly one of these."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    port: int | None = None
    """It accepts a connection on 127.0.0.1."""
    path: str | None = None
    """It is there; if it is a socket, it accepts a connection. Absolute."""
    seconds: float | None = None
    """It still runs so long after its start, or ended with 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSpec:
    """A program that the checks ask, started in the verifier's box before the hidden tests are put."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    run: str
    """A command line of /bin/sh, in the working directory, as a user without rights."""
    ready: ReadySpec
    seconds: float = 30.0
    """In which it has to be ready; otherwise every check has failed."""
    writable: tuple[str, ...] = ()
    """Files and folders of `workdir` that it may change, beside its own home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierSpec:
    bundle: BundleSpec
    runner: Runner
    arguments: tuple[str, ...]
    """What the runner is asked to run; with pytest, files or folders."""
    options: dict[str, str]
    """The runner's configuration; with pytest, ini options."""
    checks: tuple[CheckSpec, ...]
    seconds: float
    check_seconds: float | None = None
    """Wall time for one check; None: only all of them together have a limit."""
    writable: tuple[str, ...] = ()
    """What of the working directory the checks may change, beside making new files there."""
    services: tuple[ServiceSpec, ...] = ()
    """In the order in which they are started."""
    layers: tuple[Literal["canary", "withheld", "plain"], ...] = ()
    """What a verdict rests on beside the tests: see model.layers."""
    canaries: Digest | None = None
    """Of verifiers/<task>/canaries.json; needed for `canary`."""
    plain: Digest | None = None
    """Of verifiers/<task>/plain.json; needed for `withheld` and `plain`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSpec:
    """The wall clock of both boxes: the agent's, and the one in which the verdict is made."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    at: str
    """The instant at which it starts, e.g. 2024-05-15T12:00:00Z."""
    mode: Literal["ticking", "fixed", "step"] = "ticking"
    """In the verifier's box; the agent's always ticks."""
    step_seconds: float = 0.001
    """With `step`: how far each reading moves it."""
    strict: bool = False
    """Where the machine cannot hold the clock of every program: void, instead of as good as it goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSpec:
    """What chance may do in the verifier's box. Off by default: some programs need real randomness."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    aslr: bool = True
    """Whether programs are laid out in memory at random."""
    seed: int | None = None
    """Of what the kernel gives as random numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpec:
    """What the agent's box reaches. The verifier's reaches its own loopback, whatever this says."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    mode: Literal["none", "replay", "open"] = "none"
    """`replay`: what was recorded, and nothing else; `open`: the real one, for no certified suite."""
    cassette: str | None = None
    """With `replay`: a folder beside task.yaml."""
    digest: Digest | None = None
    """Of the cassette's index, which names every answer by its hash."""

    @property
    def certifiable(self) -> bool:
        """Is what the agent finds there the same next year? Of the real network nobody knows."""
        return self.mode != "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one rollout may use. The same limits hold in the agent's box and the verifier's."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    turns: int = 100
    wall_seconds: float = 1800.0
    """The agent's time, thinking included."""
    command_seconds: float = 120.0
    """One command, when the agent names no time of its own."""
    output_bytes: int = 65536
    """What one observation shows at most."""
    memory_mib: int = 2048
    pids: int = 256
    cpus: float = 2.0
    disk_mib: int = 4096
    """What a box may change on the disk; each file counts 4 KiB at least."""
    disk: Literal["watch", "tmpfs", "loop"] = "watch"
    """How it is held: `watch` measures every second and stops the box; `tmpfs` keeps the changes in
    memory, where they count as such; `loop` gives the box a file system of that size."""
    file_mib: int = 2048
    """The size of one file."""
    open_files: int = 65536
    """In one process."""
    terminals: int = 256
    """Open at one time."""
    submission_mib: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    category: str
    """bug-fix, feature, refactoring, …"""
    difficulty: Literal["easy", "medium", "hard"]
    """An estimate; measured pass rates belong to reports."""
    licence: str
    """SPDX identifier of the repository's licence."""
    source: str
    """Where the task comes from."""
    expert_minutes: int | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    id: TaskId
    digest: Digest
    """Of everything that decides a verdict: see formats.digest."""
    instruction: str
    repo: RepoPin
    image: ImagePin
    workdir: str
    env: dict[str, str]
    submission: SubmissionSpec
    solution: SolutionSpec
    verifier: VerifierSpec
    clock: ClockSpec
    network: NetworkSpec
    random: RandomSpec
    limits: Limits
    metadata: Metadata
    home: str = field(compare=False, default="")
    """The folder that holds task_specs/, verifiers/ and repos/ for this task."""


def without_layers(task: TaskSpec) -> TaskSpec:
    """Without what is to be found: it may not be there, or be of other tests."""
    return replace(task, verifier=replace(task.verifier, layers=(), canaries=None, plain=None))
