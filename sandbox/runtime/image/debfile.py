"""Reads a .deb in memory: an ar archive of two compressed tars. Nothing is run or extracted."""

import gzip
import io
import lzma
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import ImageFault
from sandbox.runtime.image.entry import Entry
from sandbox.runtime.image.layout import inside

FILE_BYTES = 512 << 20
"""Debian has no larger package that an image would want."""
TAR_BYTES = 2 * FILE_BYTES
"""What one of its tars may unpack to, so that a small file cannot fill the memory."""
AR_MAGIC = b"!<arch>\n"
AR_HEADER = 60
BROKEN = (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class Deb:
    control: str
    """The package's stanza, as dpkg would record it."""
    entries: tuple[Entry, ...]


def read_deb(path: Path, name: str) -> Deb:
    """Raises ImageFault, by name, when it is no .deb or larger than any of Debian's."""
    try:
        with path.open("rb") as f:
            parts = dict(ar_members(f.read(FILE_BYTES + 1)))
        return Deb(_control(parts), tuple(_entries(parts)))
    except BROKEN as e:
        raise ImageFault(f"{name} is not a readable .deb: {e}", retry=False) from e
    except ImageFault as e:
        raise ImageFault(f"{name}: {e}", hint=e.hint, retry=False) from e


def read_setup(path: Path, name: str) -> bytes:
    """What Debian's own installer would run once the package is unpacked; empty where there is nothing.

    Raises ImageFault.
    """
    try:
        with path.open("rb") as f:
            parts = dict(ar_members(f.read(FILE_BYTES + 1)))
        with _open_tar(parts, "control.tar") as tar:
            found = [m for m in tar if inside(m.name) == "postinst" and m.isreg()]
            return _content(tar, found[0]) if found else b""
    except BROKEN as e:
        raise ImageFault(f"{name} is not a readable .deb: {e}", retry=False) from e


def ar_members(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of each member. Raises ValueError."""
    if len(raw) > FILE_BYTES:
        raise ValueError(f"larger than {FILE_BYTES >> 20} MiB")
    if not raw.startswith(AR_MAGIC):
        raise ValueError("no ar archive")
    at = len(AR_MAGIC)
    while at < len(raw):
        header = raw[at : at + AR_HEADER]
        if len(header) < AR_HEADER or header[58:] != b"`\n":
            raise ValueError(f"broken ar header at byte {at}")
        size = int(header[48:58])
        start = at + AR_HEADER
        if size < 0 or start + size > len(raw):
            raise ValueError(f"truncated ar member at byte {at}")
        yield header[:16].decode("ascii").strip().rstrip("/"), raw[start : start + size]
        at = start + size + size % 2


def _control(parts: dict[str, bytes]) -> str:
    with _open_tar(parts, "control.tar") as tar:
        for member in tar:
            if inside(member.name) == "control":
                return _content(tar, member).decode("utf-8")
    raise ValueError("no control file")


def _entries(parts: dict[str, bytes]) -> Iterator[Entry]:
    with _open_tar(parts, "data.tar") as tar:
        for member in tar:
            if path := inside(member.name):
                yield _entry(tar, member, path)


def _entry(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> Entry:
    # setuid and setgid go: a box never raises privileges, and a store would else hold
    # old setuid-root programs that anyone on the host could start.
    mode, mtime = member.mode & 0o1777, int(member.mtime)
    if member.isreg():
        return Entry(path, "file", mode, mtime, data=_content(tar, member))
    if member.isdir():
        return Entry(path, "folder", mode, mtime)
    if member.issym():
        return Entry(path, "symlink", 0o777, mtime, target=member.linkname)
    if member.islnk():
        return Entry(path, "hardlink", mode, mtime, target=inside(member.linkname))
    raise ValueError(f"{member.name} is neither file, folder nor link")


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    found = tar.extractfile(member)
    return found.read() if found else b""


def _open_tar(parts: dict[str, bytes], stem: str) -> tarfile.TarFile:
    name = next((n for n in parts if n.startswith(stem)), None)
    if name is None:
        raise ValueError(f"no {stem}")
    data = _decompress(name.removeprefix(stem), parts[name])
    if len(data) > TAR_BYTES:
        raise ValueError(f"{name} unpacks to more than {TAR_BYTES >> 20} MiB")
    return tarfile.open(fileobj=io.BytesIO(data), mode="r:", encoding="utf-8")


def _decompress(suffix: str, raw: bytes) -> bytes:
    """At most one byte more than is allowed: a small file cannot fill the memory."""
    match suffix:
        case "":
            return raw
        case ".xz":
            return lzma.LZMAFile(io.BytesIO(raw)).read(TAR_BYTES + 1)
        case ".gz":
            return gzip.GzipFile(fileobj=io.BytesIO(raw)).read(TAR_BYTES + 1)
        case ".zst":
            return _zstd(raw)
        case _:
            raise ValueError(f"compressed as {suffix}, which is not supported")


def _zstd(raw: bytes) -> bytes:
    with tempfile.TemporaryFile() as packed:
        packed.write(raw)
        packed.seek(0)
        try:
            program = subprocess.Popen(
                ["zstd", "-dcq"], stdin=packed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except FileNotFoundError:
            raise ImageFault(
                "unpacking it needs zstd", hint="apt-get install zstd", retry=False
            ) from None
        with program:
            assert program.stdout is not None  # noqa: S101
            data = program.stdout.read(TAR_BYTES + 1)
            program.stdout.close()
    if program.returncode != 0 and len(data) <= TAR_BYTES:
        raise ValueError("its zstd data is broken")
    return data
