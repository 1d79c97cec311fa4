"""Tar streams on their way into and out of a box: rewritten, never unpacked on the host."""

import io
import posixpath
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import IO, cast

BLOCK = 1 << 17
RECORD = 512
END = bytes(2 * RECORD)


class _Blocks:
    """An iterator of bytes as the file that tarfile's stream mode reads: it takes any length."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)

    def read(self, size: int = -1) -> bytes:
        del size
        return next((block for block in self._blocks if block), b"")


def root_owned(archive: bytes, folder: str) -> Iterator[bytes]:
    """An archive for `folder` as one for the root, everything in it root's.

    The engine refuses links that lead out of the folder it unpacks in, and a repository may well
    have some; from the root nothing leads out. Raises tarfile.TarError for a broken archive.
    """
    with tarfile.open(
        fileobj=io.BytesIO(archive), mode="r:", encoding="utf-8", errors="surrogateescape"
    ) as tar:
        links: set[str] = set()
        for info in _members(tar):
            if posixpath.normpath(info.name) in {".", "/"}:
                continue  # the folder itself, which stays as it is
            info.uid = info.gid = 0
            info.name = _below(folder, info.name)
            if any(str(above) in links for above in PurePosixPath(info.name).parents):
                raise tarfile.TarError(f"{info.name!r} lies below a link of the same archive")
            links.discard(info.name)
            if info.issym():
                links.add(info.name)
            if info.islnk():
                info.linkname = _below(folder, info.linkname)
            yield from _entry(tar, info)
    yield END


def _below(folder: str, name: str) -> str:
    """`folder/name` without the leading slash. A name never leads out of its folder."""
    inside = posixpath.normpath(name.lstrip("/"))
    if inside == ".." or inside.startswith("../"):
        raise tarfile.TarError(f"{name!r} leads out of {folder}")
    return posixpath.normpath(f"{folder}/{inside}").lstrip("/") or "."


def plain(blocks: Iterable[bytes], first: Callable[[str], Iterable[bytes]]) -> Iterator[bytes]:
    """Only regular files, folders and symbolic links of a tar stream.

    A second name of a file comes as a link to the first; `first` fetches that name as an
    archive of its own, so that the reader gets a regular file.
    """
    with _stream(blocks) as tar:
        for info in _members(tar):
            if info.isreg() or info.isdir() or info.issym():
                yield from _entry(tar, info)
            elif info.islnk():
                yield from _as_file(info, first(info.name))
    yield END


def file_entry(name: str, size: int) -> bytes:
    """The header of a file whose content follows, padded."""
    info = tarfile.TarInfo(name)
    info.size = size
    return _header(info)


def padding(size: int) -> bytes:
    return bytes(-size % RECORD)


def _stream(blocks: Iterable[bytes]) -> tarfile.TarFile:
    """Names are bytes: those that are not UTF-8 come and go as they are."""
    source = cast("IO[bytes]", _Blocks(blocks))  # it reads; that is all that is asked of it
    return tarfile.open(fileobj=source, mode="r|", encoding="utf-8", errors="surrogateescape")


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    while (info := tar.next()) is not None:
        tar.members = []  # type: ignore[attr-defined]  # it would remember them all: a box may hold millions of files
        yield info


def _as_file(link: tarfile.TarInfo, blocks: Iterable[bytes]) -> Iterator[bytes]:
    with _stream(blocks) as tar:
        info = tar.next()
        if info is not None and info.isreg():
            info.name = link.name
            yield from _entry(tar, info)


def _entry(tar: tarfile.TarFile, info: tarfile.TarInfo) -> Iterator[bytes]:
    if info.isreg():
        info.type = tarfile.REGTYPE  # sparse files too: they are read whole
    yield _header(info)
    if info.isreg() and (content := tar.extractfile(info)) is not None:
        while block := content.read(BLOCK):
            yield block
        yield padding(info.size)


def _header(info: tarfile.TarInfo) -> bytes:
    info.uname = info.gname = ""
    info.mtime = int(info.mtime)
    info.pax_headers = {}  # the long names come back by themselves; the rest is not ours to pass on
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
