"""An image's config, whose hash is the image: what engines call the image ID."""

import hashlib
import time
from collections.abc import Mapping, Sequence

from sandbox.formats.digest import canonical
from sandbox.model.image import ImageLock, LayerPin
from sandbox.model.task import Digest


def config_of(lock: ImageLock) -> bytes:
    """A function of the lock alone, so a config needs no safekeeping."""
    return config_bytes(lock.layers, epoch=lock.epoch, arch=lock.arch, env=lock.env)


def config_bytes(
    layers: Sequence[LayerPin], *, epoch: int, arch: str, env: Mapping[str, str]
) -> bytes:
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    return canonical(
        {
            "architecture": arch,
            "os": "linux",
            "created": created,
            "config": {"Env": [f"{k}={v}" for k, v in sorted(env.items())], "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
            "history": [
                {"created": created, "created_by": f"stillroom {layer.kind}"} for layer in layers
            ],
        }
    )


def sha256_of(config: bytes) -> Digest:
    return Digest("sha256:" + hashlib.sha256(config).hexdigest())
