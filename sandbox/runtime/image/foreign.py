"""Images that were made elsewhere: what they are today (resolve), and to have them again (obtain).

From a registry or an OCI layout come a manifest, a config and blobs. All of them have digests in
the lock, and so has every layer without its compression: nothing is used that differs.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.errors import Fault, ImageFault
from sandbox.model.image import ImageLock, ImageSource
from sandbox.model.task import Digest
from sandbox.runtime.image import ocilayout, skopeo
from sandbox.runtime.image.blobs import uncompress
from sandbox.runtime.image.build import Progress
from sandbox.runtime.image.manifest import (
    CONFIG_BYTES,
    Descriptor,
    lock_of,
    read_config,
    read_manifest,
    refused,
)
from sandbox.runtime.image.skopeo import Bounds, MismatchError, UnavailableError
from sandbox.runtime.image.stored import hex_of, keep_layer, layer_tar
from sandbox.runtime.store import Store, sha256_file

ADDRESS = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9.-]*(:\d+)?(/[a-z0-9][\w.-]*)*)"
    r"(:(?P<tag>[\w][\w.-]{0,127}))?(@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
BOUNDS = Bounds()

EngineStep = Callable[[ImageLock, Path, Progress], None]
"""Asks a container engine: layers into the folder, as <hex of diff_id>.tar; or UnavailableError.

Whatever it leaves there is hashed before it is used.
"""
Blob = Callable[[Digest], Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a registry or a layout has: not believed yet."""

    name: str
    manifest: bytes
    blob: Blob
    """Where a blob is, if it is there."""


def resolve(
    store: Store, home: Path, name: str, source: ImageSource, recipe_sha256: str, progress: Progress
) -> ImageLock:
    """The lock of what a registry or a layout has today; its layers are in the store then.

    Raises ImageFault.
    """
    with store.scratch() as scratch:
        try:
            if source.registry:
                found = _pull(name, address(source.registry), scratch, progress)
            else:
                found = _lay_out(home, source, scratch)
            manifest = read_manifest(found.manifest, found.name)
            config = read_config(_small(found, manifest.config), found.name)
            lock = lock_of(name, config, source, recipe_sha256, manifest)
            if source.registry:
                lock = replace(lock, ref=f"{repository(source.registry)}@{manifest.digest}")
            _keep(store, lock, found, scratch, progress)
        except UnavailableError as e:
            raise _not_to_be_had(name, [e], source) from None
    return lock


def obtain(
    store: Store, home: Path, lock: ImageLock, progress: Progress, engine: EngineStep | None
) -> None:
    """Have the layers in the store. Raises ImageFault: refused, or not to be had, and why."""
    reasons: list[UnavailableError | Fault] = []
    if lock.ref and not _parts(lock.ref)["digest"]:
        raise refused(f"ref `{lock.ref}` of image {lock.name} is not host/name@sha256:…")
    with store.lock(f"pull-{hex_of(lock.config_digest)}"), store.scratch() as scratch:
        if lock.ref and lacks_layers(store, lock):
            try:
                found = _pull(lock.name, lock.ref, scratch, progress)
                _keep(store, lock, found, scratch, progress)
            except UnavailableError as e:
                reasons.append(e)
        if lock.source and lock.source.layout and lacks_layers(store, lock):
            try:
                _keep(store, lock, _lay_out(home, lock.source, scratch), scratch, progress)
            except UnavailableError as e:
                reasons.append(e)
        if engine and lacks_layers(store, lock):
            try:
                engine(lock, scratch, progress)
                keep_tars(store, lock, scratch, "the container engine")
            except (UnavailableError, Fault) as e:
                if isinstance(e, ImageFault):  # refused
                    raise
                reasons.append(e)
        if lacks_layers(store, lock):
            raise _not_to_be_had(lock.name, reasons, lock.source)


def lacks_layers(store: Store, lock: ImageLock) -> bool:
    return not all(layer_tar(store, p.diff_id).exists() for p in lock.layers)


def keep_tars(store: Store, lock: ImageLock, folder: Path, origin: str) -> None:
    """Move the layers that the store lacks from <hex of diff_id>.tar into it, each hashed."""
    for pin in lock.layers:
        tar = folder / f"{hex_of(pin.diff_id)}.tar"
        if not tar.exists() or layer_tar(store, pin.diff_id).exists():
            continue
        if (found := sha256_file(tar)) != hex_of(pin.diff_id):
            raise refused(
                f"a layer of {lock.name} from {origin} is not what was pinned: "
                f"expected {pin.diff_id}, found sha256:{found}"
            )
        keep_layer(store, tar, pin.diff_id)


def address(named: str) -> str:
    """host/name:tag, or host/name@sha256:… where both are given: with the registry's name."""
    found = _parts(named)
    tag = f"@{found['digest']}" if found["digest"] else f":{found['tag'] or 'latest'}"
    return repository(named) + tag


def repository(named: str) -> str:
    """host/name. Docker's own registry may be left out of a name."""
    name = str(_parts(named)["name"])
    first, slash, _ = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return name
    return f"docker.io/{name}" if slash else f"docker.io/library/{name}"


def _parts(named: str) -> re.Match[str]:
    if found := ADDRESS.fullmatch(named):
        return found
    raise ImageFault(
        f"`{named}` is not an image of a registry",
        hint="write host/name:tag or host/name@sha256:…",
        retry=False,
    )


def _pull(name: str, ref: str, scratch: Path, progress: Progress) -> Found:
    progress(f"pulling {name} from {ref}", 0, 1)
    folder = scratch / "image"
    try:
        skopeo.copy(address(ref), folder, BOUNDS)
        manifest = _read(folder / "manifest.json")
    except MismatchError as e:
        raise refused(f"what the registry sent is not {ref}: {e}") from None
    return Found(name=ref, manifest=manifest, blob=lambda digest: folder / hex_of(digest))


def _lay_out(home: Path, source: ImageSource, scratch: Path) -> Found:
    name = f"layout {source.layout}"
    folder = ocilayout.opened(home / str(source.layout), scratch, BOUNDS.bytes)
    return Found(
        name=name,
        manifest=ocilayout.find_manifest(folder, source.tag, name),
        blob=lambda digest: ocilayout.blob_path(folder, digest),
    )


def _keep(store: Store, lock: ImageLock, found: Found, scratch: Path, progress: Progress) -> None:
    """Every layer that the store lacks, if all is what the lock says. Raises UnavailableError."""
    manifest = read_manifest(found.manifest, found.name)
    if lock.manifest not in (None, manifest.digest):
        raise refused(
            f"{found.name} has the manifest {manifest.digest}, but image {lock.name} is pinned "
            f"with {lock.manifest}"
        )
    if manifest.config.digest != lock.config_digest:
        raise refused(
            f"{found.name} is image {manifest.config.digest}, but image {lock.name} is pinned "
            f"as {lock.config_digest}"
        )
    if len(manifest.layers) != len(lock.layers):
        raise refused(
            f"{found.name} has {len(manifest.layers)} layers, its config {len(lock.layers)}"
        )
    total = len(lock.layers)
    for done, (pin, blob) in enumerate(zip(lock.layers, manifest.layers, strict=True), start=1):
        if not layer_tar(store, pin.diff_id).exists():
            _check(found, blob)
            uncompress(
                found.blob(blob.digest), scratch / f"{hex_of(pin.diff_id)}.tar", BOUNDS.bytes
            )
            keep_tars(store, lock, scratch, found.name)
        progress(f"unpacking {lock.name}", done, total)


def _check(found: Found, blob: Descriptor) -> None:
    place = found.blob(blob.digest)
    if not place.is_file():
        raise UnavailableError(f"{found.name} lacks the blob {blob.digest}")
    if place.stat().st_size != blob.size or sha256_file(place) != hex_of(blob.digest):
        raise refused(f"{found.name} has something else under {blob.digest}")


def _small(found: Found, blob: Descriptor) -> bytes:
    if blob.size > CONFIG_BYTES:
        raise refused(f"{found.name} has a config of {blob.size} bytes")
    _check(found, blob)
    return _read(found.blob(blob.digest))


def _read(path: Path) -> bytes:
    with path.open("rb") as f:
        return f.read(CONFIG_BYTES + 1)


def _not_to_be_had(
    name: str, reasons: Sequence[UnavailableError | Fault], source: ImageSource | None
) -> ImageFault:
    why = "; ".join(dict.fromkeys(map(str, reasons))) or "no way to it is known"
    if source and source.dockerfile:
        return ImageFault(
            f"image {name} has to be built from its Dockerfile: {why}",
            hint=f"stillroom lock image {name}, where its recipe is. What comes out is another "
            "image (builds are not repeatable): tasks are pinned to it anew, and are other tasks. "
            "To have this one everywhere, push it to a registry and record `ref`",
            retry=False,
        )
    return ImageFault(
        f"image {name} is not to be had: {why}",
        hint="; ".join(dict.fromkeys(e.hint for e in reasons if e.hint)),
        retry=any(not e.lasting if isinstance(e, UnavailableError) else e.retry for e in reasons),
    )
