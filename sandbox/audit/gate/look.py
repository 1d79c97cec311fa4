"""The agent's box of a task, looked through for what it must not hold; once for each state of it."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from sandbox.audit.gate.finding import Finding, finding
from sandbox.audit.leaks.box import leaks
from sandbox.audit.leaks.needles import Needles, needles
from sandbox.audit.source.trees import Source
from sandbox.errors import Fault, SpecError
from sandbox.formats import jsonfile
from sandbox.model.task import STRICT, TaskSpec
from sandbox.rollout.run import World, agent_box, standing
from sandbox.runtime.repo.pins import read_files
from sandbox.runtime.supplies import Supplies

_RULES = {"solution": "semantic.no_solution_leakage", "history": "SR-HISTORY", "dist": "SR-DIST"}
_MOST = 20
_VERSION = re.compile(r"-v?\d.*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """OUT/leaks/<task>.json."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1] = 1
    about: str
    """Digest of the task, and of its reference solution."""
    found: tuple[tuple[str, str], ...]
    """Kind and evidence."""


def of_leaks(task: TaskSpec, source: Source, world: World, folder: Path) -> list[Finding]:
    """Raises nothing: what could not be looked through is void."""
    path = folder / "leaks" / f"{task.id}.json"
    solved = hashlib.sha256(b"".join(source.solved[p].data for p in sorted(source.solved)))
    about = f"{task.digest} {world.runtime.name} {solved.hexdigest()}"
    looked = _kept(path)
    if looked is None or looked.about != about:
        try:
            looked = _look(task, source, world, about)
        except Fault as e:
            return [finding("SR-VOID", f"leaks: {e.code}: {e}", e.hint)]
        path.parent.mkdir(parents=True, exist_ok=True)
        jsonfile.write(path, jsonfile.dumps(looked))
    return [finding(_RULES[kind], said) for kind, said in looked.found[:_MOST]]


def wanted(source: Source, supplies: Supplies) -> Needles:
    """What the agent's box of this task must not hold."""
    repository = read_files(supplies.repo)
    others = {b"/verify/supervise.py": "where the verifier's files are"}
    return needles(source, repository, supplies.tests, others)


def project(task: TaskSpec) -> str:
    """What the repository is called, without its version."""
    return _VERSION.sub("", task.repo.name)


def _look(task: TaskSpec, source: Source, world: World, about: str) -> Looked:
    supplies = world.depot.supply(task)
    secrets = wanted(source, supplies)
    spec = agent_box(task, supplies)
    with standing(world, task, supplies, spec) as box:
        found = [(leak.what, leak.said) for leak in leaks(box, secrets, project(task))]
    return Looked(about=about, found=tuple(found))


def _kept(path: Path) -> Looked | None:
    try:
        return jsonfile.load(path, Looked) if path.exists() else None
    except SpecError:
        return None
