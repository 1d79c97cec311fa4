"""What a box has changed, read from the upper folder of its overlay.

The upper folder is the box's own: whatever ran there chose its names and links. It is read
through descriptors, one folder at a time, and no link in it is ever followed. What is hidden is
a character device 0/0 (a whiteout) or lies below a folder that is marked opaque: see the
kernel's Documentation/filesystems/overlayfs.rst. How something came to be does not matter here: a
folder that was made anew, and one whose files were removed, are told alike.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sandbox.errors import RuntimeFault
from sandbox.runtime import folders
from sandbox.runtime.base import Change

FILE_BYTES = 4096
"""What even an empty file costs: its inode, its name."""
_OPAQUE = "user.overlay.opaque" if os.geteuid() else "trusted.overlay.opaque"
"""Whichever the kernel goes by. A program in a box can set the other one, which hides nothing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in the upper folder, while its folder is open; or one that is hidden there."""

    path: bytes
    """Relative to the root."""
    stat: os.stat_result
    below: os.stat_result | None
    """What the layers below have at this path, if anything."""
    removed: bool
    """Nothing is there any more."""
    folder: int
    """Descriptor of the folder it is in."""

    @property
    def name(self) -> bytes:
        return self.path.rpartition(b"/")[2]

    @property
    def same(self) -> bool:
        """Is it in the upper folder for what is in it, or because it was opened for writing?"""
        old, new = self.below, self.stat
        if old is None or (old.st_mode, old.st_uid, old.st_gid) != (
            new.st_mode,
            new.st_uid,
            new.st_gid,
        ):
            return False
        if stat.S_ISDIR(new.st_mode):
            return True
        if new.st_nlink > 1:
            return False  # it has got a second name
        return (old.st_size, old.st_mtime_ns) == (new.st_size, new.st_mtime_ns)

    def open(self) -> int:
        """The content of a regular file; the descriptor is the caller's."""
        return os.open(self.name, folders.FILE, dir_fd=self.folder)

    def link(self) -> bytes:
        return os.readlink(self.name, dir_fd=self.folder)


def disk_bytes(upper: int) -> int:
    """What the upper folder takes. `upper`: a descriptor of it. Several names are one file."""
    total = 0
    seen: set[tuple[int, int]] = set()
    for entry in walk(upper, ()):
        found = entry.stat
        again = (found.st_dev, found.st_ino) in seen
        if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
            seen.add((found.st_dev, found.st_ino))
        total += FILE_BYTES if again else max(found.st_blocks * 512, FILE_BYTES)
    return total


def changes(upper: int, layers: Sequence[str]) -> list[Change]:
    """What differs from `layers`, the folders below, the topmost first; sorted."""
    found = []
    for e in walk(upper, layers):
        path = "/" + os.fsdecode(e.path)
        if e.removed:
            if e.below is not None:
                found.append(Change(path, "deleted"))
        elif not e.same:
            found.append(Change(path, "added" if e.below is None else "modified"))
    return sorted(found)


def walk(upper: int, layers: Sequence[str]) -> Iterator[Entry]:
    """Every name, folders before what is in them, sorted.

    Raises RuntimeFault when folders are moved while they are read.
    """
    at = os.dup(upper)
    try:
        lowers = tuple(os.fsencode(layer) for layer in layers)
        frames = [
            _Frame(path=b"", stat=os.fstat(at), lowers=lowers, opaque=False, left=folders.names(at))
        ]
        while frames:
            frame = frames[-1]
            if not frame.left:
                frames.pop()
                if frames:
                    with _told():
                        at = folders.up(at, frames[-1].stat)
                continue
            name = frame.left.pop()
            entry, lowers = _entry(at, frame, name)
            if entry is None:
                continue
            yield entry
            if not entry.removed and stat.S_ISDIR(entry.stat.st_mode):
                with _told():
                    at = folders.down(at, name)
                frames.append(_enter(at, entry, lowers, opaque=frame.opaque))
    finally:
        os.close(at)


@dataclass(slots=True, kw_only=True)
class _Frame:
    """A folder that is being gone through."""

    path: bytes
    stat: os.stat_result
    lowers: tuple[bytes, ...]
    """The same folder in the layers below, the topmost first."""
    opaque: bool
    """It hides those."""
    left: list[bytes]
    """Names still to come, the next one last."""


def _enter(at: int, entry: Entry, lowers: tuple[bytes, ...], *, opaque: bool) -> _Frame:
    hides = opaque or (bool(lowers) and _is_opaque(f"/proc/self/fd/{at}".encode()))
    left = folders.names(at)
    if hides:
        hidden = {name for lower in lowers for name in folders.names(lower)}
        left = sorted(hidden.union(left), reverse=True)
    return _Frame(path=entry.path, stat=os.fstat(at), lowers=lowers, opaque=hides, left=left)


def _entry(at: int, frame: _Frame, name: bytes) -> tuple[Entry | None, tuple[bytes, ...]]:
    path = frame.path + b"/" + name if frame.path else name
    below, lowers = beneath(frame.lowers, name)
    try:
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        # Hidden by its folder; or removed since that was listed.
        hidden = Entry(path, below, below, True, at) if below and frame.opaque else None  # noqa: FBT003
        return hidden, ()
    return Entry(path, found, below, _whiteout(found), at), lowers


def beneath(
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
        if _is_opaque(path):
            break
    return first, tuple(merged)


def _whiteout(found: os.stat_result) -> bool:
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def _is_opaque(path: bytes) -> bool:
    try:
        return os.getxattr(path, _OPAQUE) == b"y"
    except OSError:  # no such attribute, or a file system without any
        return False


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise RuntimeFault(f"the box's files changed while they were read: {e}") from e
