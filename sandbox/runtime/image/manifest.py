"""What a registry says of an image: index, manifest and config, strictly read."""

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sandbox.errors import ImageFault
from sandbox.model.image import ImageLock, ImageSource, LayerPin
from sandbox.model.task import Digest
from sandbox.runtime.image.layout import ARCH

DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
MOST_LAYERS = 125
"""Docker takes no more, and an image has to run everywhere."""
CONFIG_BYTES = 4 << 20
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_LAYER = re.compile(
    r"application/vnd\.(oci\.image\.layer\.(nondistributable\.)?v1\.tar(\+gzip|\+zstd)?"
    r"|docker\.image\.rootfs\.(foreign\.)?diff\.tar(\.gzip|\.zstd)?)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    digest: Digest
    media_type: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    digest: Digest
    config: Descriptor
    layers: tuple[Descriptor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Of an image's config, what we use. Everything else in it is only kept."""

    text: str
    digest: Digest
    env: dict[str, str]
    diff_ids: tuple[Digest, ...]
    epoch: int


def read_manifest(raw: bytes, name: str) -> Manifest:
    """Raises ImageFault, by name, when it is no manifest of layers as we know them."""
    try:
        found = json.loads(raw)
        manifest = Manifest(
            digest=digest_of(raw),
            config=read_descriptor(found["config"]),
            layers=tuple(read_descriptor(layer) for layer in found["layers"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise refused(f"{name} is not the manifest of an image") from None
    for layer in manifest.layers:
        if not _LAYER.fullmatch(layer.media_type):
            raise refused(f"{name} has a layer of kind {layer.media_type!r}, not a tar of files")
    return manifest


def read_descriptor(found: Any) -> Descriptor:
    """Raises ValueError, KeyError or TypeError."""
    digest, size, media_type = found["digest"], found["size"], found["mediaType"]
    if not DIGEST.fullmatch(digest) or not isinstance(media_type, str):
        raise ValueError(digest)
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ValueError(size)
    return Descriptor(digest=Digest(digest), media_type=media_type, size=size)


def read_config(raw: bytes, name: str) -> Config:
    """Raises ImageFault, by name, when it is not the config of an image that can run here."""
    try:
        found = json.loads(raw)
        runs_on = (found["os"], found["architecture"])
        diff_ids = [DIGEST.fullmatch(d)[0] for d in found["rootfs"]["diff_ids"]]  # type: ignore[index]
        env = dict(e.partition("=")[::2] for e in (found.get("config") or {}).get("Env") or [])
        config = Config(
            text=raw.decode("utf-8"),
            digest=digest_of(raw),
            env=env,
            diff_ids=tuple(Digest(d) for d in diff_ids),
            epoch=_seconds(found.get("created")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise refused(f"{name} has no config of an image") from None
    if runs_on != ("linux", ARCH):
        raise refused(f"{name} is for {'/'.join(map(str, runs_on))}, boxes are for linux/{ARCH}")
    if not 0 < len(config.diff_ids) <= MOST_LAYERS:
        raise refused(f"{name} has {len(config.diff_ids)} layers; 1 to {MOST_LAYERS} can be used")
    return config


def lock_of(
    name: str,
    config: Config,
    source: ImageSource,
    recipe_sha256: str,
    manifest: Manifest | None = None,
) -> ImageLock:
    """The lock of an image that was made elsewhere. `manifest`: of the blobs, if it has some."""
    blobs = manifest.layers if manifest else (None,) * len(config.diff_ids)
    if len(blobs) != len(config.diff_ids):
        raise refused(f"{name} has {len(blobs)} layers, its config {len(config.diff_ids)}")
    layers = tuple(
        LayerPin(
            kind="oci",
            diff_id=diff_id,
            blob=blob.digest if blob else None,
            media_type=blob.media_type if blob else None,
            size=blob.size if blob else None,
        )
        for diff_id, blob in zip(config.diff_ids, blobs, strict=True)
    )
    return ImageLock(
        schema=1,
        name=name,
        epoch=config.epoch,
        arch=ARCH,
        recipe_sha256=recipe_sha256,
        env=config.env,
        layers=layers,
        config_digest=config.digest,
        source=source,
        manifest=manifest.digest if manifest else None,
        config=config.text,
    )


def check_foreign(lock: ImageLock) -> None:
    """Raises ImageFault when the lock's config, digest, layers and environment do not agree."""
    config = read_config((lock.config or "").encode("utf-8", "surrogatepass"), lock.name)
    if config.digest != lock.config_digest:
        raise refused(
            f"image {lock.name} is pinned as {lock.config_digest}, "
            f"but the config in its lock is {config.digest}"
        )
    if config.diff_ids != tuple(pin.diff_id for pin in lock.layers) or config.env != lock.env:
        raise refused(f"the lock of image {lock.name} lists other layers, or env, than its config")
    if any(pin.kind != "oci" for pin in lock.layers):
        raise refused(f"the lock of image {lock.name} mixes layers from elsewhere with its own")


def digest_of(raw: bytes) -> Digest:
    return Digest("sha256:" + hashlib.sha256(raw).hexdigest())


def refused(why: str) -> ImageFault:
    return ImageFault(f"refused: {why}", retry=False)


def _seconds(created: Any) -> int:
    """Images that are made to be the same everywhere have none, or 1970."""
    if not isinstance(created, str):
        return 0
    try:
        return max(0, int(datetime.fromisoformat(created[:19] + "+00:00").timestamp()))
    except ValueError:
        return 0
