"""repos/lock.yaml: how each pinned repository is obtained."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from sandbox.errors import SpecError
from sandbox.formats import yamlfile
from sandbox.model.task import STRICT

_HEX40 = re.compile(r"[0-9a-f]{40}")
_HEX64 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class PypiSource:
    """A source distribution, imported as one commit whose id is the same everywhere."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    project: str
    version: str
    file: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """A repository that can be cloned; relative paths are taken from the lock's folder."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSource:
    """A folder beside the lock, imported as one commit: for tasks that bring their own files."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoSource:
    """One entry: exactly one of `pypi`, `git` and `folder`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    commit: str
    tree: str
    licence: str = ""
    pypi: PypiSource | None = None
    git: GitSource | None = None
    folder: FolderSource | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoLock:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1]
    repos: dict[str, RepoSource] = field(default_factory=dict)


def load_repo_lock(home: Path) -> RepoLock:
    """`home`/repos/lock.yaml. Raises SpecError with file and line."""
    doc = yamlfile.open_document(home / "repos" / "lock.yaml")
    lock = doc.parse(RepoLock)
    for name, source in lock.repos.items():
        for key, message in _rules(name, source):
            raise SpecError(message, where=doc.where(("repos", name, *key)))
    return lock


def _rules(name: str, source: RepoSource) -> Iterator[tuple[tuple[str, ...], str]]:
    if not _NAME.fullmatch(name):
        yield (), f"`{name}` is not a name: letters, digits, . _ -"
    if sum(s is not None for s in (source.pypi, source.git, source.folder)) != 1:
        yield (), f"`{name}` needs exactly one of `pypi`, `git` and `folder`"
    for key in ("commit", "tree"):
        if not _HEX40.fullmatch(getattr(source, key)):
            yield (key,), f"`{getattr(source, key)}` is not a {key} id: 40 hex digits"
    if source.pypi and not _HEX64.fullmatch(source.pypi.sha256):
        yield ("pypi", "sha256"), f"`{source.pypi.sha256}` is not a sha256: 64 hex digits"
    if source.git and source.git.url.startswith(("-", "ext::", "fd::")):
        yield ("git", "url"), f"`{source.git.url}` is not an address we clone from"
