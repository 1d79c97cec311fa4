"""A layer as it is transferred → its tar, within bounds."""

import contextlib
import gzip
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from sandbox.runtime.image.skopeo import UnavailableError

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
BLOCK = 1 << 20
BROKEN = (EOFError, gzip.BadGzipFile, zlib.error)


def uncompress(blob: Path, tar: Path, limit: int) -> None:
    """By what it is, not by what the manifest calls it: media types are often wrong."""
    with blob.open("rb") as f:
        magic = f.read(4)
    with tar.open("wb") as target:
        if magic.startswith(GZIP):
            # What breaks off is kept as far as it goes, and refused for its hash.
            with gzip.open(blob) as source, contextlib.suppress(*BROKEN):
                _pour(source.read, target, limit)
        elif magic == ZSTD:
            with _zstd(blob) as process:
                assert process.stdout  # noqa: S101 - for the type checker: PIPE was asked for
                _pour(process.stdout.read, target, limit)
        else:
            with blob.open("rb") as source:
                _pour(source.read, target, limit)


def _zstd(blob: Path) -> subprocess.Popen[bytes]:
    if shutil.which("zstd") is None:
        raise UnavailableError(
            "a layer is compressed with zstd, which is not installed",
            lasting=True,
            hint="apt-get install zstd",
        )
    command = ["zstd", "-dcq", str(blob)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _pour(read: Callable[[int], bytes], target: IO[bytes], limit: int) -> None:
    while block := read(BLOCK):
        limit -= len(block)
        if limit < 0:
            raise UnavailableError("a layer is too large", lasting=True)
        target.write(block)
