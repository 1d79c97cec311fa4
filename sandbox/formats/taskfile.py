"""task.yaml to a TaskSpec, with every rule that a spec must obey."""

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal

from sandbox.errors import SpecError
from sandbox.formats import yamlfile
from sandbox.formats.checksfile import load_checks
from sandbox.formats.digest import digest_of
from sandbox.formats.placerules import submitted_rules
from sandbox.formats.runnerrules import Broken, inside, run_rules, service_rules
from sandbox.formats.shape import plain, schema_of
from sandbox.model.layers import Layer
from sandbox.model.task import (
    STRICT,
    WHOLE,
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
    Runner,
    ServiceSpec,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierFile:
    """The `verifier` part of task.yaml."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    bundle: BundleSpec
    """The hidden tests."""
    runner: Runner
    """What runs them in the box: verifiers/_runners/<runner>.py."""
    run: tuple[str, ...]
    """What the runner is asked to run: files or folders, for most."""
    options: dict[str, str] = field(default_factory=dict)
    """The runner's configuration: with pytest, ini options; see reference/runners-languages.md."""
    checks: str = "checks.yaml"
    """A file under verifiers/<task>/ that names the checks."""
    seconds: float = 600.0
    """Wall time for all checks together."""
    check_seconds: float | None = None
    """Wall time for one check: one that takes longer has failed, and the others go on."""
    writable: tuple[str, ...] = ()
    """Files and folders of `workdir` that the checks may change, or of the box, where a submission
    may be, too. All else is root's, and the checks are nobody's: outside of the bundle's folders
    they may make new files in `workdir`, and no more."""
    services: tuple[ServiceSpec, ...] = ()
    """What the checks ask, started one after the other once the submission is in place."""
    layers: tuple[Layer, ...] = ()
    """What a verdict rests on beside the tests."""
    canaries: Digest | None = None
    """Of canaries.json beside `checks`; `stillroom lock checks` writes both."""
    plain: Digest | None = None
    """Of plain.json beside `checks`; `stillroom lock checks` writes both."""


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


def task_digest(spec: TaskSpec) -> Digest:
    """Of all that decides a verdict, and nothing that does not (metadata, where it lies)."""
    data = plain(spec)
    for key in ("digest", "home", "metadata"):
        del data[key]
    return digest_of(data)


def task_parts(spec: TaskSpec) -> dict[str, Digest]:
    """Part → its digest, of all that decides what a verifier's boxes show.

    Not the checks: they say what that is worth.
    """
    data = plain(spec)
    for key in ("id", "digest", "home", "metadata"):
        del data[key]
    del data["verifier"]["checks"]
    return {key: digest_of(value) for key, value in data.items()}


def task_schema() -> dict[str, Any]:
    return schema_of(TaskFile, "Stillroom task")


def _verifier(raw: VerifierFile, checks: tuple[CheckSpec, ...]) -> VerifierSpec:
    return VerifierSpec(
        bundle=raw.bundle,
        runner=raw.runner,
        arguments=raw.run,
        options=raw.options,
        checks=checks,
        seconds=raw.seconds,
        check_seconds=raw.check_seconds,
        writable=raw.writable,
        services=raw.services,
        layers=raw.layers,
        canaries=raw.canaries,
        plain=raw.plain,
    )


def _task_rules(raw: TaskFile, task: str) -> Iterator[Broken]:
    if raw.id != task:
        yield ("id",), f"the id `{raw.id}` is not the folder's name `{task}`", "rename one of them"
    if not TASK_ID.fullmatch(raw.id):
        yield ("id",), f"`{raw.id}` is not a task id", "lower case letters, digits, . _ -"
    if not inside(raw.instruction):
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
    for loc, message, hint in submitted_rules(raw.submission.paths, raw.workdir, raw.env):
        yield ("submission", "paths", *loc), message, hint
    yield from _solution_rules(raw.solution, rooted=bool(raw.submission.rooted))
    yield from _writable_rules(raw)
    yield from _verifier_rules(raw.verifier)
    yield from _clock_rules(raw.clock)
    yield from _random_rules(raw.random)
    yield from _network_rules(raw.network)
    yield from _limit_rules(raw.limits)


def _solution_rules(raw: SolutionSpec, *, rooted: bool) -> Iterator[Broken]:
    if raw.repo and rooted:
        message = "a repository says nothing of files outside of the working directory"
        yield ("solution", "repo"), message, "the submission has such paths: use `patch`"
    if (raw.patch is None) == (raw.repo is None):
        yield ("solution",), "needs either `patch` or `repo`", ""
    if raw.patch is not None and not inside(raw.patch):
        yield ("solution", "patch"), "should be a file beside task.yaml", ""
    if raw.repo:
        yield from _repo_rules(raw.repo, ("solution", "repo"))
    yield from _path_rules(raw.paths, ("solution", "paths"))


def _writable_rules(raw: TaskFile) -> Iterator[Broken]:
    at, given = ("verifier", "writable"), raw.verifier.writable
    if WHOLE in given:
        yield at, f"`{WHOLE}` would be the hidden tests, too", "name its parts"
    for loc, message, hint in submitted_rules(given, raw.workdir, raw.env):
        yield (*at, *loc), message, hint


def _verifier_rules(raw: VerifierFile) -> Iterator[Broken]:
    at = ("verifier", "bundle")
    yield from _digest_rules(raw.bundle.digest, (*at, "digest"))
    if raw.bundle.folder is None and raw.bundle.repo is None:
        yield at, "needs `folder` or `repo`", ""
    if raw.bundle.folder is not None and not inside(raw.bundle.folder):
        yield (*at, "folder"), "should be a folder under verifiers/<task>/", ""
    if raw.bundle.repo:
        yield from _repo_rules(raw.bundle.repo, (*at, "repo"))
    if not raw.bundle.paths:
        yield at, "needs `paths`: what of the working directory the hidden tests replace", ""
    yield from _path_rules(raw.bundle.paths, (*at, "paths"))
    if not raw.run:
        yield ("verifier", "run"), "nothing would be run", "name a file or folder"
    if not inside(raw.checks):
        yield ("verifier", "checks"), "should be a file under verifiers/<task>/", ""
    for key in ("seconds", "check_seconds"):
        value = getattr(raw, key)
        if value is not None and not 0 < value <= 86400:
            yield ("verifier", key), "should be between 0 and 86400", ""
    yield from _layer_rules(raw)
    for rule in (run_rules(raw.runner, raw.run, raw.options), service_rules(raw.services)):
        yield from ((("verifier", *loc), message, hint) for loc, message, hint in rule)


def _layer_rules(raw: VerifierFile) -> Iterator[Broken]:
    hint = "stillroom lock checks TASK finds them, and writes the pin"
    for i, layer in enumerate(raw.layers):
        key = "canaries" if layer == "canary" else "plain"
        if getattr(raw, key) is None:
            yield ("verifier", "layers", i), f"`{layer}` needs the pin `{key}`", hint
        elif layer != "canary" and raw.runner != "pytest":
            message = f"`{layer}` is for tests of pytest, and not of {raw.runner}"
            yield ("verifier", "layers", i), message, "`canary` is for all"
    for key in ("canaries", "plain"):
        if (value := getattr(raw, key)) is not None:
            yield from _digest_rules(value, ("verifier", key))


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
    if raw.cassette is not None and not inside(raw.cassette):
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
        if not inside(path):
            yield (*loc, i), f"`{path}` does not stay within the working directory", ""
