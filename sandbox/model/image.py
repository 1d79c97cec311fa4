"""An image: how it is made (recipe) and exactly what it is (lock)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sandbox.model.task import STRICT, Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerfileSource:
    """A Dockerfile, built by a container engine when the image is locked."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    folder: str
    """The build context, relative to the folder that holds repos/. It may have a .dockerignore."""
    file: str = "Dockerfile"
    """Within that folder."""
    target: str | None = None
    """The stage to build; the last one, unless given."""
    args: dict[str, str] | None = None
    """Build arguments."""
    network: Literal["none", "default"] = "none"
    """What the build may reach: nothing, or what the engine's own builds may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSource:
    """Where an image comes from that was made elsewhere: exactly one of the three."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    registry: str | None = None
    """host/name:tag or host/name@sha256:…"""
    layout: str | None = None
    """An OCI layout: a folder, or a tar of one. Relative to the folder that holds repos/."""
    dockerfile: DockerfileSource | None = None
    tag: str | None = None
    """Which image of a layout that has several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseTable:
    """repos/images/bases.yaml: what FROM stands for, where there is no registry to ask."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1]
    bases: dict[str, str]
    """As a Dockerfile has it, ubuntu:24.04 → an image of repos/images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecipe:
    """repos/images/<name>.yaml: what a person asks for."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1]
    source: ImageSource | None = None
    """It was made elsewhere, and is taken as it is. Then there are no other keys."""
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
    files: str | None = None
    """A tar beside the recipe: a layer of its own, on top of the others."""
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
    kind: Literal["debs", "wheels", "pyc", "files", "oci"]
    """`oci`: made elsewhere. The others we make ourselves; `files` is there already, as a tar."""
    diff_id: Digest
    """sha256 of the layer's uncompressed tar."""
    debs: tuple[DebPin, ...] = ()
    wheels: tuple[WheelPin, ...] = ()
    links: dict[str, str] | None = None
    file: str | None = None
    """With `files`: the tar's name in repos/images/. Its sha256 is `diff_id`."""
    blob: Digest | None = None
    """sha256 of the layer as it is transferred, usually compressed."""
    media_type: str | None = None
    size: int | None = None
    """Of the blob, in bytes."""


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
    source: ImageSource | None = None
    """The recipe's, if the image was made elsewhere."""
    manifest: Digest | None = None
    """sha256 of the manifest that lists the blobs, of an image that was made elsewhere."""
    config: str | None = None
    """The config of an image that was made elsewhere, to the byte; its sha256 is `config_digest`."""
