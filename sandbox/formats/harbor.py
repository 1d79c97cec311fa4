"""Harbor's tasks: task.toml of schema 1.0 to 1.4, field by field, and the folder around it.

Harbor passes over keys that it does not know; here they are errors, with file and line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal

from sandbox.errors import SpecError
from sandbox.formats import tomlfile
from sandbox.formats.shape import Loc
from sandbox.formats.yamlfile import Document, read_text
from sandbox.model.task import STRICT

FILE = "task.toml"
VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
NetworkMode = Literal["public", "no-network", "allowlist"]
_STEP = re.compile(r"(?![.]{1,2}$)[^/\\\x00-\x1f]*[^/\\\x00-\x1f. ]")
"""A folder's name."""
_CANARY = re.compile(r"\s*(<!--|#|//).*canary.*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    email: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """[task]: what its registry knows it by."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    """org/name"""
    version: str | None = None
    description: str = ""
    authors: tuple[Author, ...] = ()
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """What of the agent's box is kept, and given to a verifier of its own."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    source: str
    destination: str | None = None
    exclude: tuple[str, ...] = ()
    service: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Healthcheck:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    command: str
    interval_sec: float = 5.0
    timeout_sec: float = 30.0
    start_period_sec: float = 0.0
    start_interval_sec: float = 5.0
    retries: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """A command that is run in the agent's box before its work is collected."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    command: str
    service: str = "main"
    timeout_sec: float = 60.0
    user: str | int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tpu:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    type: str
    topology: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    transport: Literal["sse", "stdio", "streamable-http"] = "sse"
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """[environment] and [verifier.environment]."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    build_timeout_sec: float = 600.0
    docker_image: str | None = None
    os: Literal["linux", "windows"] = "linux"
    cpus: float | None = None
    memory_mb: float | None = None
    storage_mb: float | None = None
    gpus: int | None = None
    gpu_types: tuple[str, ...] | None = None
    tpu: Tpu | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    skills_dir: str | None = None
    workdir: str | None = None
    healthcheck: Healthcheck | None = None
    network_mode: NetworkMode | None = None
    """Unless given, `public`."""
    allowed_hosts: tuple[str, ...] | None = None
    allow_internet: bool | None = None
    """Of older schemas, as `memory` and `storage`."""
    memory: str | None = None
    storage: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    timeout_sec: float | None = None
    user: str | int | None = None
    network_mode: NetworkMode | None = None
    allowed_hosts: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    timeout_sec: float = 600.0
    env: dict[str, str] = field(default_factory=dict)
    user: str | int | None = None
    network_mode: NetworkMode | None = None
    allowed_hosts: tuple[str, ...] | None = None
    environment_mode: Literal["shared", "separate"] | None = None
    environment: Environment | None = None
    collect: tuple[Collect, ...] = ()

    @property
    def separate(self) -> bool:
        """In a container of its own? Unless said, where it has an environment of its own."""
        if self.environment_mode is None:
            return self.environment is not None
        return self.environment_mode == "separate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    agent: Agent = field(default_factory=Agent)
    verifier: Verifier = field(default_factory=Verifier)
    min_reward: float | dict[str, float] | None = None
    healthcheck: Healthcheck | None = None
    artifacts: tuple[str | Artifact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HarborFile:
    """task.toml."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema_version: str | None = None
    version: str | None = None
    """The older name of `schema_version`."""
    source: str | None = None
    artifacts: tuple[str | Artifact, ...] = ()
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    task: Package | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    agent: Agent = field(default_factory=Agent)
    verifier: Verifier = field(default_factory=Verifier)
    environment: Environment = field(default_factory=Environment)
    solution: Solution = field(default_factory=Solution)
    steps: tuple[Step, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HarborTask:
    """A task's folder: what its files say, and where they are."""

    folder: Path
    file: HarborFile
    given: Document
    """task.toml as it is: what it says, and on which line."""
    instruction: str
    """Without its first lines that hold a canary. Of a task of several steps, empty."""
    canaries: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.file.task.name.rpartition("/")[2] if self.file.task else self.folder.name

    def where(self, *loc: str | int) -> str:
        return self.given.where(loc)

    def has(self, *loc: str | int) -> bool:
        """Is it said, rather than meant?"""
        at = self.given.data
        for part in loc:
            try:
                at = at[part]
            except (KeyError, IndexError, TypeError):
                return False
        return True


def is_harbor(folder: Path) -> bool:
    return (folder / FILE).is_file()


def load_harbor(folder: Path) -> HarborTask:
    """Raises SpecError with file and line."""
    given = tomlfile.open_document(folder / FILE)
    file = given.parse(HarborFile)
    for loc, message, hint in _rules(file):
        raise SpecError(message, where=given.where(loc), hint=hint)
    told, canaries = ("", ()) if file.steps else read_instruction(folder / "instruction.md")
    task = HarborTask(folder=folder, file=file, given=given, instruction=told, canaries=canaries)
    for message, where, hint in _layout(task):
        raise SpecError(message, where=where, hint=hint)
    return task


def read_instruction(path: Path) -> tuple[str, tuple[str, ...]]:
    """The text, and the lines at its beginning that are there to be found in training data."""
    lines = read_text(path).splitlines(keepends=True)
    n = 0
    while n < len(lines) and (_CANARY.match(lines[n]) or (n and not lines[n].strip())):
        n += 1
    told = "".join(lines[n:])
    if not told.strip():
        raise SpecError("the instruction is empty", where=str(path))
    return told, tuple(line.strip() for line in lines[:n] if line.strip())


Broken = tuple[Loc, str, str]


def _rules(file: HarborFile) -> Iterator[Broken]:
    if file.schema_version and file.version:
        yield ("version",), "`version` is the older name of `schema_version`", "remove one of them"
    version = file.schema_version or VERSIONS[0]
    if version not in VERSIONS:
        hint = f"known: {', '.join(VERSIONS)}"
        yield ("schema_version",), f"schema {version} is not known here", hint
    if file.task and file.task.name.count("/") != 1:
        yield ("task", "name"), f"`{file.task.name}` is no name of a task", "org/name"
    if file.multi_step_reward_strategy and not file.steps:
        yield ("multi_step_reward_strategy",), "is for tasks with `steps`", ""
    if file.steps is not None and not file.steps:
        yield ("steps",), "there are no steps", "leave the key out"
    for at, env in _environments(file):
        yield from (((*at, *loc), message, hint) for loc, message, hint in _env_rules(env))
    for at, phase in _phases(file):
        yield from (((*at, *loc), message, hint) for loc, message, hint in _phase_rules(phase))
    yield from _step_rules(file)


def _environments(file: HarborFile) -> Iterator[tuple[Loc, Environment]]:
    yield ("environment",), file.environment
    if file.verifier.environment:
        yield ("verifier", "environment"), file.verifier.environment
    for i, step in enumerate(file.steps or ()):
        if step.verifier.environment:
            yield ("steps", i, "verifier", "environment"), step.verifier.environment


def _phases(file: HarborFile) -> Iterator[tuple[Loc, Agent | Verifier | Environment]]:
    yield ("agent",), file.agent
    yield ("verifier",), file.verifier
    yield ("environment",), file.environment
    for i, step in enumerate(file.steps or ()):
        yield ("steps", i, "agent"), step.agent
        yield ("steps", i, "verifier"), step.verifier


def _env_rules(env: Environment) -> Iterator[Broken]:
    for new, old in (("memory_mb", "memory"), ("storage_mb", "storage")):
        text = getattr(env, old)
        if text is not None and mib_of(text) is None:
            yield (old,), f"`{text}` is no size", "e.g. 2G or 512M"
        if text is not None and getattr(env, new) is not None:
            yield (old,), f"`{old}` is the older name of `{new}`", "remove one of them"
    for key in ("cpus", "memory_mb", "storage_mb", "build_timeout_sec"):
        value = getattr(env, key)
        if value is not None and value <= 0:
            yield (key,), f"`{key}` should be more than 0", ""
    if env.gpus is not None and env.gpus < 0:
        yield ("gpus",), "`gpus` should not be below 0", ""
    if env.workdir is not None and not env.workdir.startswith("/"):
        yield ("workdir",), f"`{env.workdir}` is not an absolute path", ""


def _phase_rules(phase: Agent | Verifier | Environment) -> Iterator[Broken]:
    if phase.allowed_hosts is not None and phase.network_mode != "allowlist":
        yield ("allowed_hosts",), 'is for `network_mode = "allowlist"`', ""
    if phase.network_mode == "allowlist" and phase.allowed_hosts is None:
        yield ("network_mode",), "`allowlist` needs `allowed_hosts`", ""
    for host in phase.allowed_hosts or ():
        if "://" in host or ("/" in host and not re.fullmatch(r"[0-9a-fA-F.:]+/\d+", host)):
            yield ("allowed_hosts",), f"`{host}` is no host", "without a scheme, port or path"
    seconds = getattr(phase, "timeout_sec", None)
    if seconds is not None and seconds <= 0:
        yield ("timeout_sec",), "`timeout_sec` should be more than 0", ""


def _step_rules(file: HarborFile) -> Iterator[Broken]:
    seen: set[str] = set()
    for i, step in enumerate(file.steps or ()):
        if not _STEP.fullmatch(step.name):
            yield ("steps", i, "name"), f"`{step.name}` is no name of a step", ""
        if step.name in seen:
            yield ("steps", i, "name"), f"there is another step `{step.name}`", "rename one"
        seen.add(step.name)
    for at, artifacts in (
        ((), file.artifacts),
        *((("steps", i), step.artifacts) for i, step in enumerate(file.steps or ())),
    ):
        for n, item in enumerate(artifacts):
            source = item if isinstance(item, str) else item.source
            if not source.strip("/") or ".." in PurePosixPath(source).parts:
                hint = "absolute, or within the working directory"
                yield (*at, "artifacts", n), f"`{source}` is not a plain path", hint


def mib_of(text: str) -> int | None:
    """2G, 512M, 1Gi or a number of bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if not found:
        return None
    scale = {"": 1 / (1 << 20), "K": 1 / 1024, "M": 1, "G": 1024, "T": 1 << 20}
    return max(1, int(float(found[1]) * scale[found[2].upper()]))


def _layout(task: HarborTask) -> Iterator[tuple[str, str, str]]:
    folder, file = task.folder, task.file
    for step in file.steps or ():
        if not (folder / "steps" / step.name / "instruction.md").is_file():
            where = str(folder / "steps" / step.name)
            yield f"step `{step.name}` has no instruction.md", where, ""
    if not file.environment.docker_image and not (folder / "environment").is_dir():
        yield "there is no environment/, and no `docker_image`", str(folder), ""
