"""The registry step of image resolution: from `lock.ref` to layers, to be hashed by the caller.

A registry that is away, slow or without the image is no error: the lock can be rebuilt. One that
sends something else is, and so is a `ref` that means another image.
"""

import json
import re
from pathlib import Path

from sandbox.errors import ImageFault
from sandbox.model.image import ImageLock
from sandbox.model.task import Digest
from sandbox.runtime.image.blobs import uncompress
from sandbox.runtime.image.build import Progress
from sandbox.runtime.image.skopeo import Bounds, MismatchError, UnavailableError, copy
from sandbox.runtime.image.stored import hex_of
from sandbox.runtime.store import sha256_file

REF = re.compile(r"[\w.-]+(:\d+)?/[\w./-]+@sha256:[0-9a-f]{64}", re.ASCII)
BLOB = re.compile(r"sha256:([0-9a-f]{64})")
BOUNDS = Bounds()


def pull(lock: ImageLock, folder: Path, progress: Progress, *, bounds: Bounds = BOUNDS) -> None:
    """Leave layers of the image in `folder`, each as <hex of its diff_id>.tar.

    Leaves fewer than all, and says why, when they are not to be had. Raises ImageFault when the
    registry has something else. What a layer holds is for the caller to check.
    """
    ref, total = lock.ref or "", len(lock.layers)
    if not REF.fullmatch(ref):
        raise refusal(lock, f"ref `{ref}` of image {lock.name} is not host/name@sha256:…")
    progress(f"pulling {lock.name} from {ref}", 0, total)
    try:
        copy(ref, folder / "image", bounds)
        for done, (diff_id, blob) in enumerate(_layers(lock, folder / "image"), start=1):
            uncompress(blob, folder / "draft", bounds.bytes)
            (folder / "draft").rename(folder / f"{hex_of(diff_id)}.tar")
            progress(f"pulling {lock.name} from {ref}", done, total)
    except MismatchError as e:
        raise refusal(lock, f"what the registry sent is not {ref}: {e}") from None
    except UnavailableError as e:
        progress(f"{lock.name} is built from its lock, not pulled: {e}", 0, total)


def refusal(lock: ImageLock, why: str) -> ImageFault:
    hint = f"push image {lock.name} again, or remove `ref` from its lock: it can do without"
    return ImageFault(f"refused: {why}", hint=hint, retry=False)


def _layers(lock: ImageLock, image: Path) -> list[tuple[Digest, Path]]:
    """Each diff_id and the blob that should hold it, if the manifest is of this very image."""
    try:
        manifest = json.loads((image / "manifest.json").read_bytes())
        config = _blob(image, manifest["config"]["digest"])
        blobs = [_blob(image, layer["digest"]) for layer in manifest["layers"]]
        found = f"sha256:{sha256_file(config)}"
    except (ValueError, KeyError, TypeError, FileNotFoundError):
        raise refusal(lock, f"{lock.ref} is not the manifest of an image") from None
    if found != lock.config_digest:
        what = f"image {lock.name} is pinned as {lock.config_digest}"
        raise refusal(lock, f"{lock.ref} is image {found}, but {what}")
    if len(blobs) != len(lock.layers):
        raise refusal(lock, f"{lock.ref} has {len(blobs)} layers, its config {len(lock.layers)}")
    return [(pin.diff_id, blob) for pin, blob in zip(lock.layers, blobs, strict=True)]


def _blob(image: Path, digest: str) -> Path:
    """Never a path of the manifest's choice."""
    name = BLOB.fullmatch(digest)
    if name is None:
        raise ValueError(digest)
    return image / name[1]
