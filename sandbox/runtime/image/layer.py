"""Entries to a layer: a tar whose bytes depend on the entries alone."""

import hashlib
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from sandbox.model.task import Digest
from sandbox.runtime.image.entry import Entry, Kind

TYPES: dict[Kind, bytes] = {
    "file": tarfile.REGTYPE,
    "folder": tarfile.DIRTYPE,
    "symlink": tarfile.SYMTYPE,
    "hardlink": tarfile.LNKTYPE,
}
BLOCK = tarfile.BLOCKSIZE


def write_layer(entries: Iterable[Entry], out: Path, epoch: int) -> Digest:
    """Writes the tar and returns its diff_id. No file in it is newer than `epoch`."""
    # Parents sort before what they hold; hard links come last, after what they share.
    ordered = sorted(entries, key=lambda e: (e.kind == "hardlink", e.path))
    with out.open("wb") as f:
        hashing = _Hashing(f)
        for entry in ordered:
            hashing.write(_header(entry, epoch))
            if entry.kind == "file":
                hashing.write(entry.data)
                hashing.write(bytes(-len(entry.data) % BLOCK))
        hashing.write(bytes(2 * BLOCK))
    return Digest("sha256:" + hashing.digest.hexdigest())


def _header(entry: Entry, epoch: int) -> bytes:
    info = tarfile.TarInfo(entry.path)
    info.type = TYPES[entry.kind]
    info.mode = entry.mode
    info.mtime = max(0, min(entry.mtime, epoch))
    info.size = len(entry.data) if entry.kind == "file" else 0
    info.linkname = entry.target
    # GNU's format spends a second header only on names over 100 bytes, and never a pax record.
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


class _Hashing:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self.digest.update(data)
        self._out.write(data)
