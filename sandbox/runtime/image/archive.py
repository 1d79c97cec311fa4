"""An image as the archive that `docker load` reads; the engine reports our digest as its ID."""

import io
import json
import tarfile
from pathlib import Path

from sandbox.errors import ImageFault
from sandbox.runtime.base import Image
from sandbox.runtime.image.stored import hex_of
from sandbox.runtime.store import check_blob


def docker_archive(image: Image, out: Path, tag: str) -> None:
    """Stream it to `out`. The layers' hashes are checked on the way in by us, and by the engine."""
    name = f"{hex_of(image.digest)}.json"
    layers = [(f"{hex_of(layer.diff_id)}/layer.tar", layer) for layer in image.layers]
    manifest = [{"Config": name, "RepoTags": [tag], "Layers": [path for path, _ in layers]}]
    with tarfile.open(out, "w", format=tarfile.GNU_FORMAT) as archive:
        _add_bytes(archive, name, image.config.read_bytes())
        for path, layer in layers:
            check_blob(layer.tar, hex_of(layer.diff_id), f"layer {layer.diff_id}", ImageFault)
            info = tarfile.TarInfo(path)
            info.size = layer.tar.stat().st_size
            with layer.tar.open("rb") as f:
                archive.addfile(info, f)
        _add_bytes(archive, "manifest.json", json.dumps(manifest).encode())


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))
