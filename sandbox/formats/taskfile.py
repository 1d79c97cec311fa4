"""task.yaml and checks.yaml to a TaskSpec, with every rule that a spec must obey."""

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal

from sandbox.errors import SpecError
from sandbox.formats import yamlfile
from sandbox.formats.digest import digest_of
from sandbox.formats.shape import plain, schema_of
from sandbox.model.task import (
    STRICT,
    BundleSpec,
    CheckSpec,
    ClockSpec,
    Digest,
    ImagePin,
    Limits,
    Metadata,
    NetworkSpec,
    RandomSpec,
    RepoPin,
    SolutionSpec,
    SubmissionSpec,
    TaskId,
    TaskSpec,
    VerifierSpec,
)

TASK_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_SHORTEST_STEP, _LONGEST_STEP = 1e-9, 3600.0
_SEEDS = 1 << 63
_MOST_WEIGHT = 1e9
"""Sums of weights stay far from what a float cannot hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierFile:
    """The `verifier` part of task.yaml."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    bundle: BundleSpec
    """The hidden tests."""
    runner: Literal["pytest"]
    """What runs them in the box: verifiers/_runners/<runner>.py."""
    run: tuple[str, ...]
    """What the runner is asked to run; with pytest, files or folders."""
    options: dict[str, str] = field(default_factory=dict)
    """The runner's configuration; with pytest, ini options."""
    checks: str = "checks.yaml"
    """A file under verifiers/<task>/ that names the checks."""
    seconds: float = 600.0
    """Wall time for all checks together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFile:
    """task_specs/<id>/task.yaml."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1]
    id: str
    """The folder's name."""
    instruction: str
    """A file beside task.yaml: what the agent is told."""
    repo: RepoPin
    """What the agent finds in `workdir`."""
    image: ImagePin
    workdir: str
    """Absolute path in the box."""
    env: dict[str, str] = field(default_factory=dict)
    """Added to the environment of the agent's shell and of the checks."""
    submission: SubmissionSpec
    solution: SolutionSpec
    verifier: VerifierFile
    clock: ClockSpec
    network: NetworkSpec = field(default_factory=NetworkSpec)
    random: RandomSpec = field(default_factory=RandomSpec)
    limits: Limits = field(default_factory=Limits)
    metadata: Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    id: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """A test of the bundle that is no check, and why."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksFile:
    """verifiers/<task>/checks.yaml."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1]
    scored: tuple[str | Weighted, ...]
    """Each pass earns its weight (1 when not said). They fail before and pass after."""
    gates: tuple[str, ...] = ()
    """These must go on passing: if one does not, the reward is 0."""
    excluded: tuple[Excluded, ...] = ()


def load_task(home: Path, task: str) -> TaskSpec:
    """`home` holds task_specs/ and verifiers/. Raises SpecError with file and line."""
    path = home / "task_specs" / task / "task.yaml"
    doc = yamlfile.open_document(path)
    raw = doc.parse(TaskFile)
    for loc, message, hint in _task_rules(raw, task):
        raise SpecError(message, where=doc.where(loc), hint=hint)
    told = yamlfile.read_text(path.parent / raw.instruction)
    if not told.strip():
        raise SpecError("the instruction is empty", where=str(path.parent / raw.instruction))
    checks = load_checks(home / "verifiers" / task / raw.verifier.checks)
    spec = TaskSpec(
        id=TaskId(raw.id),
        digest=Digest(""),
        instruction=told,
        repo=raw.repo,
        image=raw.image,
        workdir=raw.workdir,
        env=raw.env,
        submission=raw.submission,
        solution=raw.solution,
        verifier=_verifier(raw.verifier, checks),
        clock=raw.clock,
        network=raw.network,
        random=raw.random,
        limits=raw.limits,
        metadata=raw.metadata,
        home=str(home),
    )
    return dataclasses.replace(spec, digest=task_digest(spec))


def checks_path(home: Path, task: str) -> Path:
    """The file that names a task's checks. Raises SpecError."""
    raw = yamlfile.load(home / "task_specs" / task / "task.yaml", TaskFile)
    return home / "verifiers" / task / raw.verifier.checks


def load_checks(path: Path) -> tuple[CheckSpec, ...]:
    """The named checks, scored ones first. Raises SpecError."""
    doc = yamlfile.open_document(path)
    raw = doc.parse(ChecksFile)
    for loc, message, hint in _check_rules(raw):
        raise SpecError(message, where=doc.where(loc), hint=hint)
    scored = (CheckSpec(id=_id(c), weight=_weight(c)) for c in raw.scored)
    gates = (CheckSpec(id=c, weight=0.0, gate=True) for c in raw.gates)
    return (*scored, *gates)


def check_lines(path: Path) -> dict[str, int]:
    """Every scored check and gate of a checks.yaml → the line on which it begins."""
    doc = yamlfile.open_document(path)
    raw = doc.parse(ChecksFile)
    groups = {"scored": [_id(c) for c in raw.scored], "gates": list(raw.gates)}
    return {
        name: int(doc.where((group, i)).rpartition(":")[2])
        for group, names in groups.items()
        for i, name in enumerate(names)
    }


def task_digest(spec: TaskSpec) -> Digest:
    """Of all that decides a verdict, and nothing that does not (metadata, where it lies)."""
    data = plain(spec)
    for key in ("digest", "home", "metadata"):
        del data[key]
    return digest_of(data)


def task_schema() -> dict[str, Any]:
    return schema_of(TaskFile, "Stillroom task")


def checks_schema() -> dict[str, Any]:
    return schema_of(ChecksFile, "Stillroom checks")


def _verifier(raw: VerifierFile, checks: tuple[CheckSpec, ...]) -> VerifierSpec:
    return VerifierSpec(
        bundle=raw.bundle,
        runner=raw.runner,
        arguments=raw.run,
        options=raw.options,
        checks=checks,
        seconds=raw.seconds,
    )


def _id(check: str | Weighted) -> str:
    return check if isinstance(check, str) else check.id


def _weight(check: str | Weighted) -> float:
    return 1.0 if isinstance(check, str) else check.weight


Broken = tuple[tuple[str | int, ...], str, str]
"""Where, what, hint."""


def _task_rules(raw: TaskFile, task: str) -> Iterator[Broken]:
    if raw.id != task:
        yield ("id",), f"the id `{raw.id}` is not the folder's name `{task}`", "rename one of them"
    if not TASK_ID.fullmatch(raw.id):
        yield ("id",), f"`{raw.id}` is not a task id", "lower case letters, digits, . _ -"
    if not _inside(raw.instruction):
        yield ("instruction",), "should be a file beside task.yaml", ""
    yield from _repo_rules(raw.repo, ("repo",))
    yield from _digest_rules(raw.image.digest, ("image", "digest"))
    path = PurePosixPath(raw.workdir)
    if (
        not path.is_absolute()
        or str(path) != raw.workdir
        or len(path.parts) < 2
        or ".." in path.parts
        or path.root != "/"
        or "\0" in raw.workdir
    ):
        yield ("workdir",), f"`{raw.workdir}` is not a plain absolute path", "e.g. /work/project"
    for name, value in raw.env.items():
        if not _ENV.fullmatch(name):
            yield ("env", name), f"`{name}` is not a variable name", ""
        if "\0" in value:
            yield ("env", name), f"`{name}` holds a NUL, which no variable can", ""
    if not raw.submission.paths:
        yield ("submission", "paths"), "nothing would be submitted", "name a file or folder"
    yield from _path_rules(raw.submission.paths, ("submission", "paths"))
    yield from _solution_rules(raw.solution)
    yield from _verifier_rules(raw.verifier)
    yield from _clock_rules(raw.clock)
    yield from _random_rules(raw.random)
    yield from _network_rules(raw.network)
    yield from _limit_rules(raw.limits)


def _solution_rules(raw: SolutionSpec) -> Iterator[Broken]:
    if (raw.patch is None) == (raw.repo is None):
        yield ("solution",), "needs either `patch` or `repo`", ""
    if raw.patch is not None and not _inside(raw.patch):
        yield ("solution", "patch"), "should be a file beside task.yaml", ""
    if raw.repo:
        yield from _repo_rules(raw.repo, ("solution", "repo"))
    yield from _path_rules(raw.paths, ("solution", "paths"))


def _verifier_rules(raw: VerifierFile) -> Iterator[Broken]:
    at = ("verifier", "bundle")
    yield from _digest_rules(raw.bundle.digest, (*at, "digest"))
    if (raw.bundle.folder is None) == (raw.bundle.repo is None):
        yield at, "needs either `folder` or `repo`", ""
    if raw.bundle.folder is not None and not _inside(raw.bundle.folder):
        yield (*at, "folder"), "should be a folder under verifiers/<task>/", ""
    if raw.bundle.repo:
        yield from _repo_rules(raw.bundle.repo, (*at, "repo"))
    if not raw.bundle.paths:
        yield at, "needs `paths`: what of the working directory the hidden tests replace", ""
    yield from _path_rules(raw.bundle.paths, (*at, "paths"))
    if not raw.run:
        yield ("verifier", "run"), "nothing would be run", "name a file or folder"
    yield from _path_rules(raw.run, ("verifier", "run"))
    if not _inside(raw.checks):
        yield ("verifier", "checks"), "should be a file under verifiers/<task>/", ""
    if not 0 < raw.seconds <= 86400:
        yield ("verifier", "seconds"), "should be between 0 and 86400", ""


def _clock_rules(raw: ClockSpec) -> Iterator[Broken]:
    if not _SHORTEST_STEP <= raw.step_seconds <= _LONGEST_STEP:
        yield ("clock", "step_seconds"), "should be between a nanosecond and an hour", "e.g. 0.001"
    elif raw.mode != "step" and raw.step_seconds != ClockSpec(at=raw.at).step_seconds:
        yield ("clock", "step_seconds"), f"means nothing with `mode: {raw.mode}`", "mode: step"
    hint = "write it in UTC, to the second: 2024-05-15T12:00:00Z"
    if not _INSTANT.fullmatch(raw.at):
        yield ("clock", "at"), f"`{raw.at}` is not an instant", hint
        return
    try:
        year = datetime.fromisoformat(raw.at).year
    except ValueError:
        yield ("clock", "at"), f"`{raw.at}` is no day of the calendar", hint
        return
    if not 2000 <= year <= 2037:
        yield ("clock", "at"), "should lie between 2000 and 2037", "files of a box are dated 2000"


def _random_rules(raw: RandomSpec) -> Iterator[Broken]:
    if raw.seed is not None and not 0 <= raw.seed < _SEEDS:
        yield ("random", "seed"), "should be between 0 and 2^63 - 1", "any of them is as good"


def _network_rules(raw: NetworkSpec) -> Iterator[Broken]:
    at = ("network",)
    if raw.mode == "replay":
        hint = "stillroom record TASK writes both"
        for key in ("cassette", "digest"):
            if getattr(raw, key) is None:
                yield at, f"`mode: replay` needs `{key}`", hint
    else:
        for key in ("cassette", "digest"):
            if getattr(raw, key) is not None:
                yield (*at, key), f"`{key}` is for `mode: replay`", "remove it, or change the mode"
    if raw.cassette is not None and not _inside(raw.cassette):
        yield (*at, "cassette"), "should be a folder beside task.yaml", ""
    if raw.digest is not None:
        yield from _digest_rules(raw.digest, (*at, "digest"))


def _limit_rules(raw: Limits) -> Iterator[Broken]:
    for f in dataclasses.fields(raw):
        value = getattr(raw, f.name)
        if not isinstance(value, str) and not 0 < value < float("inf"):
            yield ("limits", f.name), f"`{f.name}` should be more than 0", ""
    if raw.memory_mib < 16:
        yield ("limits", "memory_mib"), "a box needs at least 16 MiB", ""
    if raw.pids < 8:
        yield ("limits", "pids"), "a box needs at least 8 processes", ""


def _check_rules(raw: ChecksFile) -> Iterator[Broken]:
    if not raw.scored:
        yield ("scored",), "at least one check has to be scored", ""
    seen: dict[str, str] = {}
    groups: tuple[tuple[str, list[str]], ...] = (
        ("scored", [_id(c) for c in raw.scored]),
        ("gates", list(raw.gates)),
        ("excluded", [c.id for c in raw.excluded]),
    )
    for group, ids in groups:
        for i, name in enumerate(ids):
            if not name.strip():
                yield (group, i), "the id is empty", ""
            if name in seen:
                yield (group, i), f"`{name}` stands under `{seen[name]}` already", "remove one"
            seen[name] = group
    for i, check in enumerate(raw.scored):
        if not 0 < _weight(check) <= _MOST_WEIGHT:
            yield ("scored", i), f"a weight should be more than 0, {_MOST_WEIGHT:g} at most", ""


def _repo_rules(raw: RepoPin, loc: tuple[str, ...]) -> Iterator[Broken]:
    hint = "pin the full 40 hex digits: git rev-parse HEAD HEAD^{tree}"
    for key in ("commit", "tree"):
        value = getattr(raw, key)
        if not _COMMIT.fullmatch(value):
            yield (*loc, key), f"`{value}` is not a {key} id", hint


def _digest_rules(raw: str, loc: tuple[str, ...]) -> Iterator[Broken]:
    if not _DIGEST.fullmatch(raw):
        yield loc, f"`{raw}` is not a digest", "sha256: and 64 hex digits"


def _path_rules(paths: tuple[str, ...], loc: tuple[str, ...]) -> Iterator[Broken]:
    for i, path in enumerate(paths):
        if not _inside(path):
            yield (*loc, i), f"`{path}` does not stay within the working directory", ""


def _inside(path: str) -> bool:
    """A plain relative path: no `..`, not `.git`, not empty, no trailing slash, no NUL."""
    parts = PurePosixPath(path).parts
    plain_path = str(PurePosixPath(path)) == path and not path.startswith(("/", "-"))
    plain_path = plain_path and "\0" not in path
    return plain_path and path != "." and ".." not in parts and parts[0] != ".git"
