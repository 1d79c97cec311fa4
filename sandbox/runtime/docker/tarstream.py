"""Tar streams on their way into and out of a box: rewritten, never unpacked on the host."""

import io
import posixpath
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import IO, cast

from sandbox.runtime.tarball import TooLarge

BLOCK = 1 << 17
RECORD = 512
END = bytes(2 * RECORD)
_MOST_LINKED = 100_000
SPARSE_BYTES = 16 << 20
"""Of one archive, what its sparse members may claim: they are unpacked with their holes filled."""


class _Blocks:
    """An iterator of bytes as the file that tarfile's stream mode reads: it takes any length."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)

    def read(self, size: int = -1) -> bytes:
        del size
        return next((block for block in self._blocks if block), b"")


def root_owned(
    archive: bytes, folder: str, linked: Callable[[str], bool | None]
) -> Iterator[bytes]:
    """An archive for `folder` as one for the root, everything in it root's.

    The engine refuses links that lead out of the folder it unpacks in, and a repository may well
    have some; from the root nothing leads out. All of it is checked before any of it is given
    away. `linked` asks the box whether there is a link, None: nothing at all; one on the way to a
    member gives way to a folder. Raises tarfile.TarError for an archive that is broken, or that nobody should unpack.
    """
    tar = tarfile.open(  # noqa: SIM115 - it is memory, and is read on after this function
        fileobj=io.BytesIO(archive), mode="r:", encoding="utf-8", errors="surrogateescape"
    )
    way = _Way(_below(folder, "."), linked)
    # Asked now: while the engine unpacks, it answers nothing about the box.
    return _rewritten(tar, [(way.to(info), info) for info in _checked(tar, folder)])


def _checked(tar: tarfile.TarFile, folder: str) -> list[tarfile.TarInfo]:
    """The members, with the names and owners that they get."""
    found: list[tarfile.TarInfo] = []
    links: set[str] = set()
    holes = 0
    for info in _members(tar):
        name = info.name
        if not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
            raise tarfile.TarError(f"{name!r} is no file, folder or link")
        info.name = _below(folder, name)
        if info.islnk():
            info.linkname = _below(folder, info.linkname)
        if posixpath.normpath(name) == ".":
            continue  # the folder itself, which stays as it is
        if any(str(above) in links for above in PurePosixPath(info.name).parents):
            raise tarfile.TarError(f"{name!r} lies below a link of the same archive")
        if info.issym():
            links.add(info.name)
        else:
            links.discard(info.name)
        holes += info.size if info.issparse() else 0
        if holes > SPARSE_BYTES:
            raise tarfile.TarError(f"{name!r} claims more than it has: {info.size} bytes")
        info.uid = info.gid = 0
        found.append(info)
    return found


def _rewritten(
    tar: tarfile.TarFile, members: list[tuple[list[str], tarfile.TarInfo]]
) -> Iterator[bytes]:
    for links, info in members:
        for link in links:
            yield header(_folder(link))
        yield from _entry(tar, info)
    yield END


class _Way:
    """Folders that an archive does not name, but takes for granted."""

    def __init__(self, base: str, linked: Callable[[str], bool | None]) -> None:
        self._base = base
        self._linked = linked
        self._known: set[str] = set()
        self._new: set[str] = set()
        """Of these, the ones that are made on the way: there is nothing in them."""

    def to(self, info: tarfile.TarInfo) -> list[str]:
        """Links on the way, below the base, that are to be replaced by folders."""
        links: list[str] = []
        for above in reversed(PurePosixPath(info.name).parents):
            path = str(above)
            if path in self._known or len(path) <= len(self._base):
                continue
            self._known.add(path)
            found = None if str(above.parent) in self._new else self._linked(f"/{path}")
            if found:
                links.append(path)
            if found is not False:
                self._new.add(path)
        if info.isdir():
            self._known.add(info.name)
        return links


def _folder(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    return info


def _below(folder: str, name: str) -> str:
    """`folder/name` without the leading slash. A name never leads out of its folder."""
    if name.startswith("/") or ".." in name.split("/"):
        raise tarfile.TarError(f"{name!r} leads out of {folder}")
    return posixpath.normpath(f"{folder}/{name}").lstrip("/") or "."


def plain(
    blocks: Iterable[bytes],
    top: str,
    first: Callable[[str], Iterable[bytes]],
    deep: Callable[[str], Iterable[bytes] | None],
    dated: Callable[[float], int] = int,
) -> Iterator[bytes]:
    """Only regular files, folders and symbolic links of a tar stream.

    `top`: what its first component is called, unless it is empty; the engine garbles names that
    are not UTF-8, but only there. A second name of a file comes as a link to the first; `first`
    fetches that name as an archive of its own, so that the reader gets a regular file: when this
    stream has ended, for the engine gives one archive of a container at a time. `deep` gives the members of a folder that the stream may not have all of; None: it has. `dated`: a
    member's time as it is to be told.

    Raises TooLarge where there are too many second names to be remembered.
    """
    blocks, linked = iter(blocks), list[tarfile.TarInfo]()
    with _stream(blocks) as tar:
        given = ""
        for info in _members(tar):
            if top:
                info.name = "".join((top, *info.name.partition("/")[1:]))
            if given and info.name.startswith(given):
                continue
            if info.isdir() and (whole := deep(info.name)) is not None:
                given = f"{info.name}/"
                yield from whole
            elif info.isreg() or info.isdir() or info.issym():
                yield from _entry(tar, info, dated)
            elif info.islnk():
                linked.append(info)
                if len(linked) > _MOST_LINKED:
                    raise TooLarge
    for _ in blocks:
        pass  # to its very end
    for info in linked:
        yield from _as_file(info, first(info.name), dated)
    yield END


def file_entry(name: str, size: int) -> bytes:
    """The header of a file whose content follows, padded."""
    info = tarfile.TarInfo(name)
    info.size = size
    return header(info)


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


def _as_file(
    link: tarfile.TarInfo, blocks: Iterable[bytes], dated: Callable[[float], int]
) -> Iterator[bytes]:
    with _stream(blocks) as tar:
        info = tar.next()
        if info is not None and info.isreg():
            info.name = link.name
            yield from _entry(tar, info, dated)


def _entry(
    tar: tarfile.TarFile, info: tarfile.TarInfo, dated: Callable[[float], int] = int
) -> Iterator[bytes]:
    info.mtime = dated(info.mtime)
    if info.isreg():
        info.type = tarfile.REGTYPE  # sparse files too: they are read whole
    yield header(info)
    if info.isreg() and (content := tar.extractfile(info)) is not None:
        while block := content.read(BLOCK):
            yield block
        yield padding(info.size)


def header(info: tarfile.TarInfo) -> bytes:
    info.uname = info.gname = ""
    info.mtime = int(info.mtime)
    info.pax_headers = {}  # the long names come back by themselves; the rest is not ours to pass on
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
