"""Tar archives in memory: made from entries, and read from streams nobody vouches for."""

import io
import tarfile
from collections.abc import Iterable, Iterator

from sandbox.formats.digest import Entry

_TIME = 946684800


class TooLarge(Exception):
    """The stream holds more than was allowed."""


def pack(entries: Iterable[Entry], *, seconds: int = _TIME) -> bytes:
    """The entries as a tar, owned by root: the same bytes for the same entries.

    seconds: their time, since the epoch; 2000 unless told otherwise.
    """
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for e in sorted(entries):
            member = tarfile.TarInfo(e.path)
            member.mtime, member.mode = seconds, 0o755 if e.kind == "exec" else 0o644
            if e.kind == "link":
                member.type, member.linkname = (
                    tarfile.SYMTYPE,
                    e.data.decode("utf-8", "surrogateescape"),
                )
                tar.addfile(member)
            else:
                member.size = len(e.data)
                tar.addfile(member, io.BytesIO(e.data))
    return out.getvalue()


def read(stream: Iterator[bytes], *, max_bytes: int, max_files: int) -> Iterator[Entry]:
    """Regular files and links of a tar stream, never written anywhere.

    Raises TooLarge, or tarfile.TarError: a name that leads elsewhere (`..`, `/x`, `a//b`) is one,
    or one that comes twice.
    """
    seen: dict[str, Entry] = {}
    total = 0
    with tarfile.open(fileobj=_File(stream, max_bytes), mode="r|") as tar:
        for member in tar:
            # Before its content is read: a sparse file's size is only what it claims.
            if member.isreg() and total + member.size > max_bytes:
                raise TooLarge
            entry = _entry(tar, member, seen)
            if entry is None:
                continue
            if entry.path in seen:
                raise tarfile.ReadError(f"the name {entry.path!r} comes twice")
            total += len(entry.data)
            if total > max_bytes or len(seen) >= max_files:
                raise TooLarge
            seen[entry.path] = entry
            yield entry


def begins_with_link(stream: Iterator[bytes]) -> bool:
    """Is the whole of it one? Of a tar stream, of which no more is read. Raises tarfile.TarError."""
    with tarfile.open(fileobj=_File(stream, 0), mode="r|") as tar:
        first = tar.next()
        return first is not None and first.issym() and "/" not in first.name


def _entry(tar: tarfile.TarFile, member: tarfile.TarInfo, seen: dict[str, Entry]) -> Entry | None:
    if not (member.issym() or member.islnk() or member.isreg()):
        return None
    if {"", ".", ".."} & set(member.name.split("/")):
        raise tarfile.ReadError(f"the name {member.name!r} leads elsewhere")
    if member.issym():
        return Entry(member.name, "link", member.linkname.encode("utf-8", "surrogateescape"))
    if member.islnk():
        first = seen.get(member.linkname)
        return Entry(member.name, first.kind, first.data) if first else None
    content = tar.extractfile(member)
    kind = "exec" if member.mode & 0o100 else "file"
    data = content.read() if content else b""
    return Entry(member.name, "exec" if kind == "exec" else "file", data)


class _File(io.RawIOBase):
    """An iterator of blocks as a file; reading past `limit` raises TooLarge."""

    def __init__(self, stream: Iterator[bytes], limit: int) -> None:
        super().__init__()
        self._stream = stream
        self._block, self._at = b"", 0
        # Headers and padding come on top of what the files hold.
        self._budget = 2 * limit + (64 << 20)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts = []
        while size != 0:
            if self._at == len(self._block) and not self._next():
                break
            end = len(self._block) if size < 0 else self._at + size
            parts.append(self._block[self._at : end])
            self._at += len(parts[-1])
            size -= len(parts[-1]) if size > 0 else 0
        return b"".join(parts)

    def _next(self) -> bool:
        self._block, self._at = next(self._stream, b""), 0
        self._budget -= len(self._block)
        if self._budget < 0:
            raise TooLarge
        return bool(self._block)
