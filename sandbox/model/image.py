"""An image: how it is made (recipe) and exactly what it is (lock)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sandbox.model.task import STRICT, Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecipe:
    """repos/images/<name>.yaml: what a person asks for."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1]
    base: str | None = None
    """Another recipe: its layers come first."""
    epoch: int | None = None
    """Seconds since 1970: no file of the image is newer. The base's, if there is one."""
    debs: tuple[str, ...] = ()
    """Debian packages; what they depend on follows."""
    leave_out: tuple[str, ...] = ()
    """Debian packages that are not wanted, though something depends on them."""
    wheels: tuple[str, ...] = ()
    """PyPI requirements, `name==version`; what they depend on follows."""
    wheels_alone: tuple[str, ...] = ()
    """The same, without what they depend on."""
    links: dict[str, str] | None = None
    """Symbolic links to add: path → target."""
    env: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DebPin:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    version: str
    arch: str
    path: str
    """Within the archive: pool/main/…"""
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelPin:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    version: str
    file: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPin:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    kind: Literal["debs", "wheels", "pyc"]
    diff_id: Digest
    """sha256 of the layer's uncompressed tar."""
    debs: tuple[DebPin, ...] = ()
    wheels: tuple[WheelPin, ...] = ()
    links: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLock:
    """repos/images/<name>.lock.json: identity is `config_digest`, which covers the diff_ids."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1]
    name: str
    epoch: int
    arch: str
    recipe_sha256: str
    """Of the recipe (and its bases) this was locked from; the tests compare them, so that a stale
    lock does not go unnoticed."""
    env: dict[str, str]
    layers: tuple[LayerPin, ...]
    config_digest: Digest
    ref: str | None = None
    """Where a registry has it: host/name@sha256:…"""
    snapshot: str | None = None
    """The archive's date when it was locked, for snapshot.debian.org: 20260711T101637Z."""
