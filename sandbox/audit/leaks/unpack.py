"""Archives, looked into without writing a file. Pure."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator

_DEPTH = 3
_MOST_BYTES = 256 << 20
"""Of one file that is unpacked: a bomb is no leak."""
_BROKEN = (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError,
           zipfile.BadZipFile, tarfile.TarError)  # fmt: skip
_PRESSED: dict[bytes, Callable[[io.BytesIO], io.BufferedIOBase]] = {
    b"\x1f\x8b": lambda data: gzip.GzipFile(fileobj=data),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
_TAR_MAGIC, _TAR_PLACE = b"ustar", 257


def unpacked(path: str, data: bytes, depth: int = _DEPTH) -> Iterator[tuple[str, bytes]]:
    """The file itself, and what it holds, as deep as archives are nested in practice."""
    yield path, data
    if depth == 0:
        return
    try:
        for name, content in _inner(data):
            yield from unpacked(f"{path}!{name}", content, depth - 1)
    except _BROKEN:
        return  # no archive after all, or one that nobody can read


def _inner(data: bytes) -> Iterator[tuple[str, bytes]]:
    if data.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if not info.is_dir() and info.file_size <= _MOST_BYTES:
                    yield info.filename, archive.read(info)
        return
    if data[_TAR_PLACE : _TAR_PLACE + len(_TAR_MAGIC)] == _TAR_MAGIC:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                if (
                    member.isfile()
                    and member.size <= _MOST_BYTES
                    and (f := tar.extractfile(member))
                ):
                    yield member.name, f.read()
        return
    for magic, opened in _PRESSED.items():
        if data.startswith(magic):
            with opened(io.BytesIO(data)) as stream:
                yield "content", stream.read(_MOST_BYTES)
