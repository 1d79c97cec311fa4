"""A layer that others made, unpacked as a lower folder of an overlay.

Nobody vouches for it. Names are resolved by us, never by the file system: what leads out of the
layer, or through a link, is refused. What it takes away from the layers below becomes the marks
that an overlay knows: a device 0/0 for a name, an attribute for a whole folder.
"""

import errno
import io
import os
import stat
import tarfile
from dataclasses import dataclass, field
from decimal import Decimal, DecimalException
from pathlib import Path
from typing import Any, cast

from sandbox.errors import ImageFault
from sandbox.runtime.image.unpack import BLOCK, OPAQUE

WHITEOUT, META, OPAQUE_MARK = ".wh.", ".wh..wh.", ".wh..wh..opq"
MOST_BYTES = 32 << 30
"""Of all files together, as large as they say they are."""
MOST_ENTRIES = 4_000_000
HEADER_BYTES = 8 << 20
"""A header that says it is longer would be read into memory as a whole."""
NAME_CHARACTERS = 4096
XATTR = "SCHILY.xattr."
OWNERS, NOBODY = 65536, 65534
"""A box with users of its own has so many. Over files of others not even its root has power."""
LAST_MOMENT = (1 << 63) - 1


def unpack_foreign(
    tar: Path, folder: Path, *, most_bytes: int = MOST_BYTES, most_entries: int = MOST_ENTRIES
) -> None:
    """Into `folder`, which must not exist. Keeps modes, times and links; owners when root.

    Kept of extended attributes: capabilities of programs, and those of users. Devices are left
    out below /dev, which is a box's own, and refused elsewhere. Raises ImageFault.
    """
    folder.mkdir(mode=0o700)
    try:
        with tar.open("rb") as raw:
            archive = tarfile.open(  # noqa: SIM115 - its file is closed
                fileobj=cast("Any", _Careful(raw)),
                mode="r:",
                encoding="utf-8",
                errors="surrogateescape",
            )
            _Unpacking(str(folder), most_bytes, most_entries).run(archive)
            raw.seek(archive.offset)
            if raw.read(tarfile.BLOCKSIZE).strip(b"\0"):
                raise ValueError(f"it is broken at byte {archive.offset}")
    except (tarfile.TarError, OSError, ValueError, OverflowError, DecimalException) as e:
        raise ImageFault(f"refused: layer {tar.stem}: {e}", retry=False) from e
    folder.chmod(0o755)


class _Careful:
    """The tar's file, to be read in small pieces only."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= HEADER_BYTES:
            raise ValueError(f"a header says that it has {size} bytes")
        return self._raw.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()


@dataclass(frozen=True, slots=True)
class _Dress:
    """How a file is to look in the end. Those folders that only follow from names are plain."""

    mode: int = 0o755
    uid: int = 0
    gid: int = 0
    moment: int = 0
    """Nanoseconds since 1970."""
    xattrs: dict[str, bytes] = field(default_factory=dict)


class _Unpacking:
    def __init__(self, root: str, most_bytes: int, most_entries: int) -> None:
        self._root = root
        self._bytes, self._entries = most_bytes, most_entries
        self._folders: dict[str, _Dress] = {"": _Dress()}
        self._others: set[str] = set()
        self._gone: set[str] = set()
        self._opaque: set[str] = set()
        self._as_root = os.geteuid() == 0

    def run(self, archive: tarfile.TarFile) -> None:
        while (member := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]  # it would remember them all
            self._entries -= 1
            self._bytes -= member.size if member.isreg() else 0
            if self._entries < 0 or self._bytes < 0:
                raise ValueError("it holds more than an image may")
            name = _inside(member.name)
            if name and not self._takes_away(name):
                self._add(archive, member, name)
        self._mark()
        for name in sorted(self._folders, reverse=True):  # see unpack: deepest first, and last
            if name:
                self._dress(self._place(name), self._folders[name])

    def _takes_away(self, name: str) -> bool:
        """Is it a mark rather than a file? Then it is noted: it is about the layers below only."""
        above, _, last = name.rpartition("/")
        if any(part.startswith(WHITEOUT) for part in above.split("/")):
            if META in name:
                return True  # an old engine's own, and nobody else's
            raise ValueError(f"{name!r} is below a mark, which is no folder")
        if not last.startswith(WHITEOUT):
            return False
        if last == OPAQUE_MARK:
            if not above:
                raise ValueError("it hides all layers below, which an overlay cannot do")
            self._opaque.add(above)
            self._have_folders(above)
        elif not last.startswith(META):
            hidden = last.removeprefix(WHITEOUT)
            if hidden in ("", ".", ".."):
                raise ValueError(f"{name!r} hides no name")
            self._gone.add(f"{above}/{hidden}".lstrip("/"))
        return True

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        if member.ischr() or member.isblk():
            if not name.startswith("dev/"):
                raise ValueError(f"{name!r} is a device")
            return
        self._have_folders(name.rpartition("/")[0])
        if name in self._folders:
            if not member.isdir():
                raise ValueError(f"{name!r} is a folder, and then something else")
            self._folders[name] = _dress_of(member)
            return
        target = self._place(self._shared(member, name)) if member.islnk() else ""
        place = self._place(name)
        if name in self._others:  # of two of the same name the later counts
            os.unlink(place)  # noqa: PTH108
            self._others.remove(name)
        if member.isdir():
            os.mkdir(place, 0o700)  # noqa: PTH102
            self._folders[name] = _dress_of(member)
        else:
            self._others.add(name)
            self._make(archive, member, place, target)

    def _make(
        self, archive: tarfile.TarFile, member: tarfile.TarInfo, place: str, target: str
    ) -> None:
        if member.islnk():
            os.link(target, place, follow_symlinks=False)
            return
        if member.isreg():
            _write(archive, member, place)
        elif member.issym():
            os.symlink(member.linkname, place)  # noqa: PTH211
        elif member.isfifo():
            os.mkfifo(place)
        else:
            raise ValueError(f"{member.name!r} is of a kind that is not known")
        self._dress(place, _dress_of(member))

    def _shared(self, member: tarfile.TarInfo, name: str) -> str:
        target = _inside(member.linkname)
        if target not in self._others or target == name:
            raise ValueError(f"{name!r} shares {member.linkname!r}, which is no file before it")
        return target

    def _have_folders(self, name: str) -> None:
        """Layers need not list the folders their files are in."""
        if name in self._folders:
            return
        if name in self._others:
            raise ValueError(f"{name!r} is no folder, yet something is to be in it")
        self._have_folders(name.rpartition("/")[0])
        os.mkdir(self._place(name), 0o700)  # noqa: PTH102
        self._folders[name] = _Dress()

    def _mark(self) -> None:
        # What is both hidden and there replaces what is below: a folder does so as an opaque one.
        self._opaque |= self._gone & self._folders.keys()
        for name in sorted(self._gone - self._folders.keys() - self._others):
            above = name.rpartition("/")[0]
            self._have_folders(above)
            if above not in self._opaque:
                os.mknod(self._place(name), stat.S_IFCHR | 0o600, os.makedev(0, 0))
        for name in self._opaque:
            os.setxattr(self._place(name), OPAQUE[0 if self._as_root else 1], b"y")

    def _dress(self, place: str, how: _Dress) -> None:
        link = Path(place).is_symlink()
        if self._as_root:
            os.chown(place, how.uid, how.gid, follow_symlinks=False)
        if not link:
            os.chmod(place, how.mode)  # noqa: PTH101
        # Last: a new owner takes capabilities away.
        for name, value in how.xattrs.items():
            _set_xattr(place, name, value)
        os.utime(place, ns=(how.moment, how.moment), follow_symlinks=False)

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}"


def _inside(name: str) -> str:
    """Absolute names are taken from the layer's root, as every engine does."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError(f"{name!r} leads elsewhere")
    if len(name) > NAME_CHARACTERS:
        raise ValueError(f"a name is longer than any path: {name[:40]!r}…")
    return "/".join(parts)


def _dress_of(member: tarfile.TarInfo) -> _Dress:
    said = member.pax_headers.get("mtime")  # tarfile rounds it
    seconds = Decimal(said) if said else Decimal(int(member.mtime))
    xattrs = {
        key.removeprefix(XATTR): value.encode("utf-8", "surrogateescape")
        for key, value in member.pax_headers.items()
        if key.startswith(XATTR) and _kept(key.removeprefix(XATTR))
    }
    return _Dress(
        mode=member.mode & 0o7777,
        uid=_owner(member.uid),
        gid=_owner(member.gid),
        moment=max(0, min(int(seconds * 1_000_000_000), LAST_MOMENT)),
        xattrs=xattrs,
    )


def _owner(number: int) -> int:
    return number if 0 <= number < OWNERS else NOBODY


def _kept(xattr: str) -> bool:
    """Never those that an overlay obeys."""
    if xattr.startswith("user."):
        return not xattr.startswith("user.overlay.")
    return xattr == "security.capability"


def _set_xattr(place: str, name: str, value: bytes) -> None:
    try:
        os.setxattr(place, name, value, follow_symlinks=False)
    except OSError as e:  # not as this user, or not on this file system
        if e.errno not in (errno.EPERM, errno.EOPNOTSUPP):
            raise


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, place: str) -> None:
    source = archive.extractfile(member)
    if source is None:
        raise ValueError(f"{member.name!r} has no content")
    sparse: Any = member.sparse  # pairs, whatever its stub says
    with source, open(place, "xb", buffering=0) as out:  # noqa: PTH123
        for start, size in [(0, member.size)] if sparse is None else sparse:
            if start < 0 or size < 0 or start + size > member.size:
                raise ValueError(f"{member.name!r} has a part outside of itself")
            source.seek(start)
            out.seek(start)
            left = size
            while left:
                block = source.read(min(BLOCK, left))
                if not block:
                    raise ValueError(f"{member.name!r} breaks off")
                out.write(block)
                left -= len(block)
        out.truncate(member.size)  # holes stay holes
