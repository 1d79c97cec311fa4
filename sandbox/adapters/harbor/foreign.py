"""A task of another format, understood: what its box is made of, and how its work is judged."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sandbox.formats.dockersteps import Step
from sandbox.formats.harbor import Healthcheck

Format = Literal["harbor", "terminal-bench"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """Files that are put into a box, and a script that is run there."""

    name: str
    where: str
    files: tuple[tuple[Path, str], ...] = ()
    """A file or folder, and the absolute path at which it, or its content, comes to lie."""
    script: str = ""
    env: dict[str, str] = field(default_factory=dict)
    seconds: float = 600.0
    needed: bool = True
    """Does it matter when it fails?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """What of a task's limits is said; the rest is ours."""

    wall_seconds: float | None = None
    cpus: float | None = None
    memory_mib: int | None = None
    disk_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is known of a task beside what it does."""

    difficulty: Literal["easy", "medium", "hard"]
    category: str
    source: str
    tags: tuple[str, ...] = ()
    expert_minutes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    id: str
    format: Format
    folder: Path
    instruction: str
    image: str
    """What the task's image starts from, as it is named there."""
    image_where: str
    steps: tuple[Step, ...]
    """Of its Dockerfile, without FROM."""
    context: Path
    """What its Dockerfile copies from."""
    workdir: str
    env: dict[str, str]
    build_seconds: float
    prelude: tuple[Chore, ...] = ()
    """What happened in the box before the agent is let in: of the steps before this one."""
    healthcheck: Healthcheck | None = None
    tests: tuple[tuple[Path, str], ...]
    """Files and folders, and where below /tests they come to lie."""
    script: str
    """Of the tests: absolute."""
    scripts: tuple[Path, ...]
    """What may install something while it is graded."""
    packages: tuple[Path, ...] = ()
    """Dockerfiles of a verifier's own image."""
    protocol: Format
    verifier_env: dict[str, str]
    verifier_seconds: float
    solution: Chore | None
    submission: tuple[str, ...] = (".",)
    exclude: tuple[str, ...] = ()
    limits: Limited
    told: Told
