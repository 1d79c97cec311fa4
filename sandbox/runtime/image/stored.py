"""Layers in the store: the tar by diff_id, and once per diff_id the same unpacked.

layers/<hex>.tar, layers/<hex>/ and layers/<hex>.manifest, the folder's fingerprint.
"""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

from sandbox.errors import ImageFault
from sandbox.model.task import Digest
from sandbox.runtime.image.unpack import fingerprint, unpack
from sandbox.runtime.store import Store, check_blob

Unpack = Callable[[Path, Path], None]
"""A tar, into a folder that is not there yet."""


def hex_of(digest: Digest) -> str:
    return digest.removeprefix("sha256:")


def layer_tar(store: Store, diff_id: Digest) -> Path:
    return store.root / "layers" / f"{hex_of(diff_id)}.tar"


def layer_folder(store: Store, diff_id: Digest) -> Path:
    return store.root / "layers" / hex_of(diff_id)


def keep_layer(store: Store, tar: Path, diff_id: Digest) -> None:
    """Move a finished tar into the store. The caller has just computed its hash."""
    place = layer_tar(store, diff_id)
    place.parent.mkdir(parents=True, exist_ok=True)
    os.replace(tar, place)  # noqa: PTH105


def unpacked(store: Store, diff_id: Digest, *, how: Unpack = unpack) -> Path:
    """The layer as a folder, whole: made from its tar when absent or damaged.

    `how`: `unpack`, which is strict, for what we made; `unpack_foreign` for what others did.
    """
    folder = layer_folder(store, diff_id)
    if not _is_whole(folder):
        with store.lock(f"layer-{hex_of(diff_id)}"):
            if not _is_whole(folder):
                _unpack_anew(store, diff_id, how)
    return folder


def _unpack_anew(store: Store, diff_id: Digest, how: Unpack) -> None:
    tar, folder = layer_tar(store, diff_id), layer_folder(store, diff_id)
    check_blob(tar, hex_of(diff_id), f"layer {diff_id}", ImageFault)
    # Layers from elsewhere hold programs that run as root, whoever starts them: only their owner
    # may get at them.
    os.chmod(folder.parent, 0o700)  # noqa: PTH101
    with store.scratch() as scratch:
        how(tar, scratch / "layer")
        (scratch / "manifest").write_text(fingerprint(scratch / "layer") + "\n")
        if folder.exists():  # damaged: moved aside as a whole, removed with the scratch folder
            folder.rename(scratch / "damaged")
        # A crash between these two leaves a folder and a manifest that disagree: unpacked again.
        (scratch / "layer").rename(folder)
        (scratch / "manifest").rename(_manifest(folder))


def _is_whole(folder: Path) -> bool:
    try:
        recorded = _manifest(folder).read_text().strip()
        _check_once(folder, recorded)
    except (OSError, ValueError):
        return False
    return True


@cache
def _check_once(folder: Path, recorded: str) -> None:
    """Success is remembered for the life of this process, a failure never (it raises)."""
    if fingerprint(folder) != recorded:
        raise ValueError(f"{folder} was changed")


def _manifest(folder: Path) -> Path:
    return folder.with_name(folder.name + ".manifest")
