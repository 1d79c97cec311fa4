"""Small archives for checks and tests, made and read in memory."""

import io
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing in an archive: a file, unless it has a target or is a folder."""

    name: str
    content: bytes = b""
    mode: int = 0o644
    target: str | None = None
    folder: bool = False
    owner: int = 0


def make_tar(entries: Iterable[Entry]) -> bytes:
    return raw_tar(*((_info(entry), entry.content) for entry in entries))


def raw_tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """An archive of whatever members, also of such as nobody should unpack."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", encoding="utf-8", errors="surrogateescape") as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def _info(entry: Entry) -> tarfile.TarInfo:
    info = tarfile.TarInfo(entry.name)
    info.mode, info.uid, info.gid = entry.mode, entry.owner, entry.owner
    info.size = len(entry.content)
    if entry.target is not None:
        info.type, info.linkname = tarfile.SYMTYPE, entry.target
    elif entry.folder:
        info.type = tarfile.DIRTYPE
    return info


def read_tar(blocks: Iterable[bytes]) -> dict[str, Entry]:
    return {entry.name: entry for entry in entries_of(b"".join(blocks))}


def entries_of(archive: bytes) -> Iterator[Entry]:
    source = io.BytesIO(archive)
    with tarfile.open(fileobj=source, encoding="utf-8", errors="surrogateescape") as tar:
        for info in tar:
            if not (info.isreg() or info.isdir() or info.issym()):
                raise AssertionError(f"no file, folder or link: {info}")
            content = tar.extractfile(info) if info.isreg() else None
            yield Entry(
                name=info.name,
                content=content.read() if content else b"",
                mode=0o777 if info.issym() else info.mode,
                target=info.linkname if info.issym() else None,
                folder=info.isdir(),
                owner=info.uid,
            )


def unpacked(archive: bytes, folder: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="fully_trusted")  # noqa: S202 - it is ours
    return folder
