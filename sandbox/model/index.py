"""A frozen package index: which files of PyPI, npm and Debian a box's network serves, and no others."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from sandbox.model.task import STRICT

LOCK_NAME = "index.lock.jsonl"
_DATE = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHead:
    """The lock's first line: of when the index is, and for what machine it was resolved."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    kind: Literal["index"] = "index"
    schema: Literal[1] = 1
    pin: str
    """The index's one date, 2024-05-15T12:00:00Z: nothing in it says that it is newer."""
    arch: str = "amd64"
    """Debian's name of the architecture."""
    python: str = "3.11"
    """The Python whose wheels were chosen."""
    snapshot: str | None = None
    """Debian's archive when it was asked, for snapshot.debian.org: 20260711T101637Z."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PypiPin:
    """A wheel or sdist."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    kind: Literal["pypi"] = "pypi"
    name: str
    """Normalised: lower case, single hyphens."""
    version: str
    filename: str
    url: str
    """https://files.pythonhosted.org/…, never a mirror's."""
    sha256: str
    size: int
    requires_python: str | None = None
    uploaded: str | None = None
    """When, in UTC; the index's pin if it was later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NpmPin:
    """A package's tarball, and what the registry says of it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    kind: Literal["npm"] = "npm"
    name: str
    """With its scope: @babel/core."""
    version: str
    filename: str
    url: str
    """https://registry.npmjs.org/…, never a mirror's."""
    sha256: str
    size: int
    integrity: str
    """`sha512-` and base64, as npm's own locks have it."""
    shasum: str
    """SHA-1, in hex: old clients ask for nothing else."""
    tags: tuple[str, ...] = ()
    """Its dist-tags. Without a `latest` the highest version is that."""
    manifest: dict[str, Any]
    """What the registry tells npm to install it: dependencies, bin, engines, os, cpu, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AptPin:
    """A .deb, and the archive's record of it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    kind: Literal["apt"] = "apt"
    name: str
    version: str
    filename: str
    """Within the archive: pool/main/…"""
    url: str
    """http://deb.debian.org/debian/…, never a mirror's."""
    sha256: str
    size: int
    arch: str
    suite: str = "bookworm"
    component: str = "main"
    stanza: str
    """Its paragraph of Packages, to the byte."""


Pin = PypiPin | NpmPin | AptPin


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLock:
    """index.lock.jsonl: one line each, the head first, then the pins, sorted."""

    head: IndexHead
    pins: tuple[Pin, ...] = ()


def moment(date: str) -> datetime:
    """A date as a lock has it. Raises ValueError."""
    return datetime.strptime(date, _DATE).replace(tzinfo=UTC)


def date_of(when: datetime) -> str:
    return when.astimezone(UTC).strftime(_DATE)
