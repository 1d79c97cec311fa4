"""A layer's tar to a folder, strictly; and what such a folder looks like, to notice damage."""

import contextlib
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

from sandbox.errors import ImageFault

BLOCK = 1 << 20
OPAQUE = ("trusted.overlay.opaque", "user.overlay.opaque")
"""What tells an overlay that a folder hides those of the layers below, as root and without."""


def unpack(tar: Path, folder: Path) -> None:
    """Into `folder`, which must not exist. Keeps modes, times and links; owners when root.

    An entry's folder must have come before it as a folder of this same tar. So nothing can be
    written through a link or outside, whatever the names say.
    """
    folder.mkdir()
    try:
        with tarfile.open(tar, "r:", encoding="utf-8", errors="surrogateescape") as archive:
            _Unpacking(str(folder)).run(archive)
    except (tarfile.TarError, OSError, ValueError) as e:
        raise ImageFault(f"cannot unpack {tar}: {e}", retry=False) from e


class _Unpacking:
    def __init__(self, root: str) -> None:
        self._root = root
        self._folders: dict[str, tarfile.TarInfo | None] = {"": None}
        self._files: set[str] = set()
        self._owned = os.geteuid() == 0

    def run(self, archive: tarfile.TarFile) -> None:
        for member in archive:
            self._add(archive, member)
        # Deepest first, and last of all: adding a file changes its folder's time,
        # and an unwritable folder could not be filled.
        for name in sorted(self._folders, reverse=True):
            if info := self._folders[name]:
                self._dress(self._place(name), info)

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = member.name.removeprefix("./").rstrip("/")
        if name in (".", ""):
            return
        above, _, last = name.rpartition("/")
        if last in (".", "..") or name.startswith("/") or above not in self._folders:
            raise ValueError(f"{member.name!r} is not inside a folder of this layer")
        place = self._place(name)
        if member.isdir():
            os.mkdir(place, 0o700)  # noqa: PTH102
            self._folders[name] = member
        elif member.isreg():
            self._file(archive, member, place)
            self._files.add(name)
        elif member.issym():
            os.symlink(member.linkname, place)  # noqa: PTH211
            self._dress(place, member)
        elif member.islnk():
            self._hard_link(member, place)
        else:
            raise ValueError(f"{member.name!r} is neither file, folder nor link")

    def _file(self, archive: tarfile.TarFile, member: tarfile.TarInfo, place: str) -> None:
        source = archive.extractfile(member)
        with open(place, "xb", buffering=0) as out:  # noqa: PTH123
            left = member.size
            while source and left and (block := source.read(min(BLOCK, left))):
                out.write(block)
                left -= len(block)
        self._dress(place, member)

    def _hard_link(self, member: tarfile.TarInfo, place: str) -> None:
        target = member.linkname.removeprefix("./")
        if target not in self._files:
            raise ValueError(f"{member.name!r} shares {target!r}, which is no file before it")
        os.link(self._place(target), place, follow_symlinks=False)

    def _dress(self, place: str, member: tarfile.TarInfo) -> None:
        if self._owned:
            os.chown(place, member.uid, member.gid, follow_symlinks=False)
        if not member.issym():
            os.chmod(place, member.mode)  # noqa: PTH101
        moment = int(member.mtime) * 1_000_000_000
        os.utime(place, ns=(moment, moment), follow_symlinks=False)

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}"


def fingerprint(folder: Path) -> str:
    """sha256 over path, type, mode, size, time and link target of everything below, by lstat.

    Also over what only layers from elsewhere have: other owners than root, opaque folders.
    """
    seen = hashlib.sha256()
    for line in _lines(str(folder), ""):
        seen.update(os.fsencode(line) + b"\n")
    return seen.hexdigest()


def _lines(folder: str, below: str) -> Iterator[str]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda e: e.name)
    for entry in entries:
        path = below + entry.name
        status = entry.stat(follow_symlinks=False)
        is_folder = stat.S_ISDIR(status.st_mode)
        # A folder's size is its file system's business.
        size = 0 if is_folder else status.st_size
        target = os.readlink(entry.path) if stat.S_ISLNK(status.st_mode) else ""  # noqa: PTH115
        yield repr((path, status.st_mode, size, status.st_mtime_ns, target, *_owner(status)))
        if is_folder:
            yield from _opaque(entry.path, path)
            yield from _lines(entry.path, f"{path}/")


def _owner(status: os.stat_result) -> tuple[int, ...]:
    """Nothing for root and for us: layers of our own have no other owners."""
    owner = (status.st_uid, status.st_gid)
    return () if owner in ((0, 0), (os.geteuid(), os.getegid())) else owner


def _opaque(folder: str, path: str) -> Iterator[str]:
    with contextlib.suppress(OSError):  # a file system that has no such marks
        if any(mark in OPAQUE for mark in os.listxattr(folder, follow_symlinks=False)):
            yield f"opaque {path!r}"
