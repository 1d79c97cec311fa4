"""Terminal-Bench's tasks: task.yaml, docker-compose.yaml, and the folder around them.

Terminal-Bench passes over keys that it does not know; here they are errors, with file and line.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from sandbox.errors import SpecError
from sandbox.formats import yamlfile
from sandbox.formats.shape import Loc
from sandbox.formats.yamlfile import Document
from sandbox.model.task import STRICT

FILE = "task.yaml"
COMPOSE = "docker-compose.yaml"
CLIENT = "client"
Parser = Literal["pytest", "swebench", "swelancer", "mlebench", "sweperf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalBenchFile:
    """task.yaml."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    instruction: str
    author_name: str | None = "unknown"
    author_email: str | None = "unknown"
    difficulty: Literal["easy", "medium", "hard", "unknown"]
    category: str = "software_engineering"
    tags: tuple[str, ...] = ()
    parser_name: Parser = "pytest"
    max_agent_timeout_sec: float = 360.0
    max_test_timeout_sec: float = 60.0
    run_tests_in_same_shell: bool = False
    disable_asciinema: bool = False
    estimated_duration_sec: float | None = None
    expert_time_estimate_min: float | None = None
    junior_time_estimate_min: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One of solution.yaml."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    command: str
    min_timeout_sec: float = 0.0
    max_timeout_sec: float = 180.0
    block: bool = False
    append_enter: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalBenchTask:
    folder: Path
    file: TerminalBenchFile
    given: Document
    compose: Document | None
    """docker-compose.yaml as it is."""
    commands: tuple[Command, ...] = field(default=())
    """Of solution.yaml."""

    @property
    def name(self) -> str:
        return self.folder.name

    def where(self, *loc: str | int) -> str:
        return self.given.where(loc)

    def has(self, *loc: str | int) -> bool:
        """Is it said, rather than meant?"""
        return bool(loc) and loc[0] in self.given.data


def is_terminal_bench(folder: Path) -> bool:
    return (folder / FILE).is_file() and not (folder / "task.toml").is_file()


def load_terminal_bench(folder: Path) -> TerminalBenchTask:
    """Raises SpecError with file and line."""
    given = yamlfile.open_document(folder / FILE)
    file = given.parse(TerminalBenchFile)
    for loc, message, hint in _rules(file):
        raise SpecError(message, where=given.where(loc), hint=hint)
    if not (folder / "run-tests.sh").is_file():
        raise SpecError("there is no run-tests.sh", where=str(folder))
    compose = folder / COMPOSE
    commands: tuple[Command, ...] = ()
    if not (folder / "solution.sh").exists() and (folder / "solution.yaml").exists():
        commands = yamlfile.load(folder / "solution.yaml", tuple[Command, ...])
    return TerminalBenchTask(
        folder=folder,
        file=file,
        given=given,
        compose=yamlfile.open_document(compose) if compose.is_file() else None,
        commands=commands,
    )


def _rules(file: TerminalBenchFile) -> Iterator[tuple[Loc, str, str]]:
    if not file.instruction.strip():
        yield ("instruction",), "the instruction is empty", ""
    for key in ("max_agent_timeout_sec", "max_test_timeout_sec"):
        if getattr(file, key) <= 0:
            yield (key,), f"`{key}` should be more than 0", ""
