"""A converted task's files in our own format: where each lies, and what is in it."""

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from sandbox.adapters.harbor.foreign import Foreign
from sandbox.adapters.harbor.tools import FOLDER, GRADE
from sandbox.adapters.taskhome import write_entries
from sandbox.formats import jsonfile, yamlfile
from sandbox.formats.digest import Entry, folder_entries, tree_digest
from sandbox.formats.repofile import FolderSource, RepoSource
from sandbox.formats.skeleton import repo_entry
from sandbox.model.image import ImageLock, ImageRecipe, LayerPin
from sandbox.model.task import RepoPin
from sandbox.runtime.image.build import keep_file
from sandbox.runtime.image.entry import Entry as LayerEntry
from sandbox.runtime.image.entry import folder, symlink, with_parents
from sandbox.runtime.image.layer import write_layer
from sandbox.runtime.image.resolve import locked
from sandbox.runtime.locks import image_lock_path
from sandbox.runtime.repo.pins import Repos
from sandbox.runtime.store import Store

_BUNDLE = "bundle"
_LICENCE = "NOASSERTION"
_SUBMISSION_MIB = 64
_PIDS, _MEMORY_MIB = 1024, 4096
"""Where theirs say nothing, they have no limit."""
_OPEN = 0o777


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """What is settled before a task is solved."""

    image: ImageLock
    repo: RepoPin


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """How work is judged."""

    checks: Sequence[str]
    submission: tuple[str, ...]
    writable: tuple[str, ...]
    floor: float = 0.0


def write_image(
    store: Store,
    home: Path,
    name: str,
    recipe: ImageRecipe,
    below: ImageLock,
    base: ImageLock,
    tar: Path,
) -> ImageLock:
    """The recipe and its lock, with a layer of files on top of those of `below`."""
    images = home / "repos" / "images"
    images.mkdir(parents=True, exist_ok=True)
    whole = replace(recipe, files=f"{name}.files.tar")
    shutil.move(tar, images / f"{name}.files.tar")
    said = {k: v for k, v in asdict(whole).items() if v not in (None, ())}
    listed = {k: list(v) if isinstance(v, tuple) else v for k, v in said.items()}
    jsonfile.write(images / f"{name}.yaml", yamlfile.dumps(listed))
    diff_id = keep_file(store, images / f"{name}.files.tar")
    top = LayerPin(kind="files", diff_id=diff_id, file=f"{name}.files.tar")
    found = locked(name, whole, base, [*below.layers, top], below.snapshot)
    jsonfile.write(image_lock_path(home, name), jsonfile.dumps(found))
    return found


def layer_of(rest: Iterable[LayerEntry], workdir: str, tar: Path, epoch: int) -> None:
    """What the box has outside of its working directory, and what a test script expects there."""
    found = [
        folder("logs", _OPEN),
        *(folder(f"logs/{name}", _OPEN) for name in ("verifier", "agent", "artifacts")),
        folder(workdir.strip("/")),
        *rest,
        symlink("tests", f"{workdir}/{FOLDER}/tests"),
    ]
    write_layer(with_parents(found).values(), tar, epoch)


def write_repo(store: Store, home: Path, name: str, tree: Sequence[Entry]) -> RepoPin:
    """repos/<name>/ and its entry in repos/lock.yaml."""
    place = home / "repos" / name
    write_entries(place, tree)
    source = RepoSource(commit="0" * 40, tree="0" * 40, folder=FolderSource(path=name))
    pin = Repos(store, home / "repos", {name: source}).pin_of(name)
    path = home / "repos" / "lock.yaml"
    before = path.read_text(encoding="utf-8") if path.exists() else "schema: 1\nrepos:\n"
    before = re.sub(r"(?m)^repos: *\{\} *$", "repos:", before)
    old = re.compile(rf"(?m)^  {re.escape(name)}:\n(?:(?:    .*)?\n)+")
    before = old.sub("", before.rstrip("\n") + "\n")
    entry = repo_entry(name, pin).replace("CC0-1.0", _LICENCE)
    jsonfile.write(path, before.rstrip("\n") + "\n" + entry)
    return pin


def write_bundle(home: Path, task: Foreign, graders: Sequence[Entry]) -> None:
    """verifiers/<id>/bundle/: what grades, and the tests as they are."""
    found = {e.path: e for e in graders}
    for place, inner in task.tests:
        if place.is_dir():
            listed = list(folder_entries(place))
        else:
            kind: Literal["exec", "file"] = "exec" if place.stat().st_mode & 0o100 else "file"
            listed = [Entry("", kind, place.read_bytes())]
        for e in listed:
            path = str(PurePosixPath("tests", inner, e.path))
            found[path] = Entry(path, e.kind, e.data)
    write_entries(home / "verifiers" / task.id / _BUNDLE / FOLDER, found.values())


def write_solution(home: Path, task: Foreign, patch: bytes) -> None:
    place = home / "task_specs" / task.id / "solution" / "solution.patch"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(patch)


def write_task(home: Path, task: Foreign, pinned: Pinned, judging: Judging) -> Path:
    """task.yaml, instruction.md and checks.yaml; the bundle is there already."""
    spec = home / "task_specs" / task.id
    spec.mkdir(parents=True, exist_ok=True)
    (spec / "instruction.md").write_text(task.instruction, encoding="utf-8")
    checks = {"schema": 1, "scored": list(judging.checks)}
    jsonfile.write(home / "verifiers" / task.id / "checks.yaml", yamlfile.dumps(checks))
    bundle = tree_digest(folder_entries(home / "verifiers" / task.id / _BUNDLE))
    data: dict[str, Any] = {
        "schema": 1,
        "id": task.id,
        "instruction": "instruction.md",
        "repo": asdict(pinned.repo),
        "image": {"name": pinned.image.name, "digest": pinned.image.config_digest},
        "workdir": task.workdir,
        "env": task.env,
        "submission": _submission(task, judging),
        "solution": {"patch": "solution/solution.patch"},
        "verifier": {
            "bundle": {"folder": _BUNDLE, "paths": [FOLDER], "digest": bundle},
            "runner": "shell",
            "run": [GRADE],
            "seconds": task.verifier_seconds,
            "writable": list(judging.writable),
        },
        "clock": {"at": "2025-06-18T12:00:00Z"},
        "limits": _limits(task),
        "metadata": _metadata(task, judging.floor),
    }
    path = spec / "task.yaml"
    head = f"# Converted from {task.told.source}; import.json says what became of each field.\n"
    jsonfile.write(path, head + yamlfile.dumps(data))
    return path


def _submission(task: Foreign, judging: Judging) -> Mapping[str, Any]:
    exclude = ["**/__pycache__/**", "*.pyc", *task.exclude]
    return {"paths": list(judging.submission), "exclude": exclude}


def _limits(task: Foreign) -> Mapping[str, Any]:
    said = {
        "wall_seconds": task.limits.wall_seconds,
        "cpus": task.limits.cpus,
        "memory_mib": task.limits.memory_mib,
        "disk_mib": task.limits.disk_mib,
    }
    ours = {"memory_mib": _MEMORY_MIB, "submission_mib": _SUBMISSION_MIB, "pids": _PIDS}
    return ours | {k: v for k, v in said.items() if v is not None}


def _metadata(task: Foreign, floor: float) -> Mapping[str, Any]:
    told = task.told
    tags = [*told.tags, *([f"floor:{floor:.2f}"] if floor else [])]
    found: dict[str, Any] = {
        "category": told.category,
        "difficulty": told.difficulty,
        "licence": _LICENCE,
        "source": told.source,
        "tags": tags,
    }
    if told.expert_minutes is not None:
        found["expert_minutes"] = told.expert_minutes
    return found
