"""Writing a task into a home, file by file: task.yaml comes last, and only with it there is a task."""

import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.errors import UserError
from sandbox.formats import jsonfile, yamlfile
from sandbox.formats.digest import Entry, tree_digest
from sandbox.formats.home import bundled_home
from sandbox.formats.repofile import load_repo_lock
from sandbox.model.task import RepoPin

ORIGIN = "origin.json"
"""Beside task.yaml: what it was made of. It says nothing of how the task is judged."""
SOLUTION = "solution/solution.patch"
_PIN = re.compile(r"(?m)^( *(?:commit|tree): )([0-9a-f]{40})$")
_HEAD = "# Made by `stillroom import`. What each key means: stillroom schema task\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A task, but for what is only known once its files are written."""

    id: str
    spec: Mapping[str, Any]
    """task.yaml, in order; the digest of the hidden tests is put into it."""
    instruction: str
    checks: Mapping[str, Any]
    """checks.yaml."""
    bundle: tuple[Entry, ...]
    """The hidden tests."""
    origin: Mapping[str, Any]
    solution: bytes = b""
    """solution/solution.patch, unless it is empty."""
    pin: RepoPin
    source: Mapping[str, Any]
    """How the repository is obtained: an entry of repos/lock.yaml without its pin."""


def origin_of(home: Path, task: str) -> dict[str, Any]:
    """What an imported task was made of; empty for all others. Raises SpecError."""
    path = home / "task_specs" / task / ORIGIN
    if not path.exists():
        return {}
    found = jsonfile.decode(yamlfile.read_text(path), str(path))
    return found if isinstance(found, dict) else {}


def is_there(home: Path, task: str) -> bool:
    return (home / "task_specs" / task / "task.yaml").exists()


def require_free(home: Path, task: str) -> None:
    """Raises UserError where one of our own tasks has that id."""
    bundled = bundled_home()
    if home.resolve() != bundled.resolve() and is_there(bundled, task):
        raise UserError(f"`{task}` is a task that comes with Stillroom")


def write_task(home: Path, draft: Draft) -> None:
    told, hidden = home / "task_specs" / draft.id, home / "verifiers" / draft.id
    bundle = hidden / "bundle"
    write_entries(bundle, draft.bundle)
    write_checks(home, draft.id, draft.checks)
    jsonfile.write(told / "instruction.md", draft.instruction)
    if draft.solution:
        (told / SOLUTION).parent.mkdir(parents=True, exist_ok=True)
        (told / SOLUTION).write_bytes(draft.solution)
    add_repo(home, draft.pin, draft.source)
    jsonfile.write(told / ORIGIN, jsonfile.dumps(dict(draft.origin)))
    spec = dict(draft.spec)
    verifier = spec["verifier"] = dict(spec["verifier"])
    verifier["bundle"] = {**verifier["bundle"], "digest": tree_digest(draft.bundle)}
    jsonfile.write(told / "task.yaml", _HEAD + _yaml(spec))


def write_checks(home: Path, task: str, checks: Mapping[str, Any]) -> None:
    jsonfile.write(home / "verifiers" / task / "checks.yaml", yamlfile.dumps(dict(checks)))


def remove_task(home: Path, task: str) -> None:
    """Of one that was just written; task.yaml goes first."""
    (home / "task_specs" / task / "task.yaml").unlink(missing_ok=True)
    for folder in ("task_specs", "verifiers"):
        shutil.rmtree(home / folder / task, ignore_errors=True)


def _yaml(data: dict[str, Any]) -> str:
    """Pins in quotes, as `stillroom lock` writes them: then it finds nothing to change."""
    return _PIN.sub(r'\1"\2"', yamlfile.dumps(data))


def write_entries(folder: Path, entries: Iterable[Entry]) -> None:
    """The folder with these files in it, and no others."""
    if folder.is_dir():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for e in entries:
        path = folder / e.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if e.kind == "link":
            path.symlink_to(e.data.decode("utf-8", "surrogateescape"))
        else:
            path.write_bytes(e.data)
            path.chmod(0o755 if e.kind == "exec" else 0o644)


def add_repo(home: Path, pin: RepoPin, source: Mapping[str, Any]) -> None:
    """A further entry of repos/lock.yaml, unless it is there."""
    path = home / "repos" / "lock.yaml"
    before = yamlfile.read_text(path) if path.exists() else "schema: 1\nrepos:\n"
    if path.exists() and (found := load_repo_lock(home).repos.get(pin.name)):
        if (found.commit, found.tree) == (pin.commit, pin.tree):
            return
        raise UserError(f"{path} has another `{pin.name}`: commit {found.commit}")
    before = before.replace("repos: {}", "repos:")
    entry = {pin.name: {**source, "commit": pin.commit, "tree": pin.tree}}
    lines = _yaml(entry).splitlines()
    jsonfile.write(path, "\n".join([before.rstrip("\n"), *(f"  {line}" for line in lines)]) + "\n")
