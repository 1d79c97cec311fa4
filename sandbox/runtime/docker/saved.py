"""Images: from the engine into a folder, layer by layer. What is in them is for others to check."""

import json
import posixpath
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sandbox.errors import RuntimeFault
from sandbox.runtime.docker.engine import Engine, faults

BLOCK = 1 << 20
MOST_BYTES = 64 << 30
"""Of one image: what engines say is not believed without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    config: bytes
    layers: tuple[Path, ...]
    """The lowest first; tars, of some engines compressed."""


def save(engine: Engine, image: str, folder: Path) -> Saved:
    """As `docker save` does. Raises RuntimeFault."""
    try:
        with faults(f"read image {image} from the container engine"):
            stream = engine.api.get_image(image)
            files = _files(stream, folder)
            for _ in stream:  # what comes after the end: the connection is used again
                pass
        described = json.loads(_member(files, "manifest.json").read_bytes())[0]
        return Saved(
            config=_member(files, described["Config"]).read_bytes(),
            layers=tuple(_member(files, name) for name in described["Layers"]),
        )
    except (tarfile.TarError, ValueError, LookupError, TypeError) as e:
        raise RuntimeFault(f"the container engine's copy of {image} cannot be read: {e}") from e


def pull(engine: Engine, ref: str) -> None:
    """Have the engine fetch host/name@sha256:… Raises RuntimeFault."""
    with faults(f"pull {ref}"):
        engine.api.pull(ref)


def _files(stream: Any, folder: Path) -> dict[str, Path]:
    """Members by name, in files that we name: links in the archive are followed here only."""
    files: dict[str, Path] = {}
    links: dict[str, str] = {}
    left = MOST_BYTES
    with tarfile.open(fileobj=cast("Any", _Stream(stream)), mode="r|") as archive:
        for member in archive:
            name = posixpath.normpath(member.name)
            if member.issym():
                links[name] = posixpath.normpath(
                    posixpath.join(posixpath.dirname(name), member.linkname)
                )
            elif member.isreg() and (source := archive.extractfile(member)):
                left -= member.size
                if left < 0:
                    raise ValueError("it is too large")
                files[name] = folder / f"saved-{len(files)}"
                with files[name].open("wb") as target:
                    while block := source.read(BLOCK):
                        target.write(block)
    return files | {name: files[target] for name, target in links.items() if target in files}


def _member(files: dict[str, Path], name: str) -> Path:
    return files[posixpath.normpath(name)]


class _Stream:
    """The engine's answer as the file that tarfile's stream mode reads."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks

    def read(self, size: int = -1) -> bytes:
        del size
        return next((block for block in self._blocks if block), b"")
