"""An image at hand: from the store, from a registry, or rebuilt from its lock; else refused."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from sandbox.model.image import ImageLock
from sandbox.runtime.image import registry
from sandbox.runtime.image.build import Progress, build, check_config
from sandbox.runtime.image.config import config_of
from sandbox.runtime.image.foreign import EngineStep, lacks_layers, obtain
from sandbox.runtime.image.foreignlayer import unpack_foreign
from sandbox.runtime.image.manifest import check_foreign
from sandbox.runtime.image.stored import Unpack, hex_of, keep_layer, layer_tar, unpacked
from sandbox.runtime.image.unpack import unpack
from sandbox.runtime.spec import Image, ImageLayer
from sandbox.runtime.store import Store, sha256_file

Pull = Callable[[ImageLock, Path, Progress], None]
"""What a registry has at `lock.ref`: into the folder, as <hex of diff_id>.tar files.

Whatever it leaves there is hashed before it is used. Layers are moved out of the folder; the rest
goes with it.
"""


def ensure(
    store: Store,
    lock: ImageLock,
    progress: Progress,
    *,
    pull: Pull = registry.pull,
    home: Path = Path(),
    engine: EngineStep | None = None,
) -> Image:
    """Raises ImageFault rather than return an image that is not the pinned one.

    `home` and `engine` are for images that were made elsewhere: the folder that their layouts are
    in, and a container engine to ask for what is nowhere else.
    """
    if lock.config is not None:
        check_foreign(lock)
        if lacks_layers(store, lock):
            obtain(store, home, lock, progress, engine)
        return _image(store, lock, unpack_foreign)
    check_config(lock)
    if lock.ref and lacks_layers(store, lock):
        _pull_layers(store, lock, progress, pull)
    if lacks_layers(store, lock):
        build(store, lock, progress, home)
    return _image(store, lock, unpack)


def _image(store: Store, lock: ImageLock, how: Unpack) -> Image:
    return Image(
        name=lock.name,
        digest=lock.config_digest,
        config=_config(store, lock),
        layers=tuple(
            ImageLayer(
                diff_id=p.diff_id,
                tar=layer_tar(store, p.diff_id),
                folder=unpacked(store, p.diff_id, how=how),
            )
            for p in lock.layers
        ),
        env=lock.env,
    )


def _pull_layers(store: Store, lock: ImageLock, progress: Progress, pull: Pull) -> None:
    with store.lock(f"pull-{hex_of(lock.config_digest)}"), store.scratch() as folder:
        if lacks_layers(store, lock):  # still, after waiting for another process
            pull(lock, folder, progress)
            _keep_pulled(store, lock, folder)


def _keep_pulled(store: Store, lock: ImageLock, folder: Path) -> None:
    for pin in lock.layers:
        tar = folder / f"{hex_of(pin.diff_id)}.tar"
        if not tar.exists() or layer_tar(store, pin.diff_id).exists():
            continue
        if (found := sha256_file(tar)) != hex_of(pin.diff_id):
            raise registry.refusal(
                lock,
                f"a layer of {lock.ref} is not what was pinned: "
                f"expected {pin.diff_id}, found sha256:{found}",
            )
        keep_layer(store, tar, pin.diff_id)


def _config(store: Store, lock: ImageLock) -> Path:
    """The stored config; a damaged one is written again, as the lock determines every byte."""
    path = store.root / "images" / f"{hex_of(lock.config_digest)}.json"
    if not path.exists() or _sha256(path) != hex_of(lock.config_digest):
        with store.scratch() as scratch:
            (scratch / "config").write_bytes(_config_bytes(lock))
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(scratch / "config", path)  # noqa: PTH105
    return path


def _config_bytes(lock: ImageLock) -> bytes:
    return config_of(lock) if lock.config is None else lock.config.encode()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
