"""What a box has changed, read from the upper folder of its overlay.

The upper folder is the box's own: whatever ran there chose its names and links. It is read
through descriptors, one folder at a time, and no link in it is ever followed. What is hidden is
a character device 0/0 (a whiteout) or lies below a folder that is marked opaque: see the
kernel's Documentation/filesystems/overlayfs.rst.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Change

FILE_BYTES = 4096
"""What even an empty file costs: its inode, its name."""
_OPAQUE = ("trusted.overlay.opaque", "user.overlay.opaque")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in the upper folder, while its folder is open."""

    path: bytes
    """Relative to the root."""
    stat: os.stat_result
    below: os.stat_result | None
    """What the layers below have at this path, if anything."""
    lowers: tuple[bytes, ...]
    """If it is a folder: those that lie below it, the topmost first; hidden when `opaque`."""
    opaque: bool
    folder: int
    """Descriptor of the folder it is in."""

    @property
    def name(self) -> bytes:
        return self.path.rpartition(b"/")[2]

    @property
    def removed(self) -> bool:
        return _whiteout(self.stat)

    @property
    def same(self) -> bool:
        """Is it in the upper folder for what is in it, or because it was opened for writing?"""
        old, new = self.below, self.stat
        if old is None or stat.S_IFMT(old.st_mode) != stat.S_IFMT(new.st_mode) or self.opaque:
            return False
        if (old.st_mode, old.st_uid, old.st_gid) != (new.st_mode, new.st_uid, new.st_gid):
            return False
        if stat.S_ISDIR(new.st_mode):
            return True
        if new.st_nlink > 1:
            return False  # it has got a second name
        return (old.st_size, old.st_mtime_ns) == (new.st_size, new.st_mtime_ns)

    def open(self) -> int:
        """The content of a regular file; the descriptor is the caller's."""
        return os.open(self.name, _FILE, dir_fd=self.folder)

    def link(self) -> bytes:
        return os.readlink(self.name, dir_fd=self.folder)


def disk_bytes(upper: int) -> int:
    """What the upper folder takes. `upper`: a descriptor of it."""
    return sum(max(e.stat.st_blocks * 512, FILE_BYTES) for e in walk(upper, ()))


def changes(upper: int, lowers: Sequence[str]) -> list[Change]:
    """What differs from `lowers`, the folders below, the topmost first; sorted."""
    found = []
    for e in walk(upper, lowers):
        path = "/" + os.fsdecode(e.path)
        if e.removed:
            if e.below is not None:
                found.append(Change(path, "deleted"))
        elif not e.same:
            found.append(Change(path, "added" if e.below is None else "modified"))
        if e.opaque:
            found += _hidden(e)
    return sorted(found)


def walk(upper: int, layers: Sequence[str]) -> Iterator[Entry]:
    """Every name, folders before what is in them, sorted. Needs one descriptor at any depth.

    Raises RuntimeFault when folders are moved while they are read.
    """
    at = os.dup(upper)
    frames = [_Frame(b"", os.fstat(at), tuple(os.fsencode(p) for p in layers), _names(at))]
    try:
        while frames:
            frame = frames[-1]
            if not frame.left:
                frames.pop()
                if frames:
                    at = _up(at, frames[-1].stat)
                continue
            entry = _entry(at, frame, frame.left.pop())
            if entry is None:
                continue
            yield entry
            if stat.S_ISDIR(entry.stat.st_mode):
                at = _down(at, entry)
                names = _names(at)
                lowers = () if entry.opaque else entry.lowers
                frames.append(_Frame(entry.path, os.fstat(at), lowers, names))
    finally:
        os.close(at)


@dataclass(slots=True)
class _Frame:
    path: bytes
    stat: os.stat_result
    lowers: tuple[bytes, ...]
    left: list[bytes]
    """Names still to come, the next one last."""


def _names(folder: int | bytes) -> list[bytes]:
    """The last one first."""
    with os.scandir(folder) as found:
        return sorted((os.fsencode(e.name) for e in found), reverse=True)


def _entry(folder: int, frame: _Frame, name: bytes) -> Entry | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None  # removed since the folder was listed
    below, lowers = _below(frame.lowers, name)
    opaque = False
    if stat.S_ISDIR(found.st_mode):
        opaque = bool(lowers) and _is_opaque(folder, name)
    else:
        lowers = ()
    path = frame.path + b"/" + name if frame.path else name
    return Entry(path, found, below, lowers, opaque, folder)


def _below(
    lowers: tuple[bytes, ...], name: bytes
) -> tuple[os.stat_result | None, tuple[bytes, ...]]:
    """What the layers below show under this name, and the folders it merges if it is one."""
    first: os.stat_result | None = None
    merged: list[bytes] = []
    for lower in lowers:
        path = lower + b"/" + name
        try:
            found = os.lstat(path)
        except OSError:  # not there, or a path longer than any layer has
            continue
        if _whiteout(found) or (first and not stat.S_ISDIR(found.st_mode)):
            break
        first = first or found
        if not stat.S_ISDIR(found.st_mode):
            break
        merged.append(path)
        if _opaque_path(path):
            break
    return first, tuple(merged)


def _hidden(entry: Entry) -> Iterator[Change]:
    """What was in a folder that has been made anew, and is there no more."""
    have = set(_names(f"/proc/self/fd/{entry.folder}/".encode() + entry.name))
    for name in sorted({name for folder in entry.lowers for name in _names(folder)} - have):
        if _below(entry.lowers, name)[0] is not None:
            yield Change("/" + os.fsdecode(entry.path + b"/" + name), "deleted")


def _down(at: int, entry: Entry) -> int:
    """The folder below. `at` is closed then, and only then: whoever walks closes it otherwise."""
    try:
        below = os.open(entry.name, _FOLDER, dir_fd=at)
    except OSError as e:
        raise RuntimeFault(f"the box's files changed while they were read: {e}") from e
    os.close(at)
    return below


def _up(at: int, wanted: os.stat_result) -> int:
    """The folder above, if it is still the one we came from. `at` is closed then, as above."""
    above = os.open("..", _FOLDER, dir_fd=at)
    found = os.fstat(above)
    if (found.st_dev, found.st_ino) != (wanted.st_dev, wanted.st_ino):
        os.close(above)
        raise RuntimeFault("the box's folders were moved while they were read")
    os.close(at)
    return above


def _whiteout(found: os.stat_result) -> bool:
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def _is_opaque(folder: int, name: bytes) -> bool:
    return _opaque_path(f"/proc/self/fd/{folder}/".encode() + name)


def _opaque_path(path: bytes) -> bool:
    for attribute in _OPAQUE:
        try:
            if os.getxattr(path, attribute, follow_symlinks=False) == b"y":
                return True
        except OSError:  # no such attribute, or a file system without any
            continue
    return False
