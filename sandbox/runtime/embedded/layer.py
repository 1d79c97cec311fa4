"""A snapshot on its way into a box: laid into the upper folder before that is mounted.

Written as the host's root, on the host's file system, which is many times quicker than through the
overlay. So every name is looked at: what is written lies in a folder that was made here, by us, in
this run; nobody else can reach the place, and a link is never gone through.
"""

import os
import stat
import tarfile

from sandbox.runtime.embedded import archive

_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def lay(tar: int, upper: str, lowers: list[str], opaque: str) -> None:
    """Unpack `tar`, a descriptor, into `upper`, the empty folder on top of `lowers`.

    `opaque`: the attribute by which a folder hides those below it. Raises OSError.
    """
    os.umask(0)
    try:
        layer = _Layer(upper, lowers, opaque)
        for opened, member in archive.members(tar):
            layer.add(opened, member)
        layer.finish()
    except (OSError, ValueError, tarfile.TarError) as e:
        raise OSError(f"the snapshot cannot be restored: {e}") from e


class _Layer:
    def __init__(self, upper: str, lowers: list[str], opaque: str) -> None:
        self._upper, self._lowers, self._opaque = upper, lowers, opaque
        self._folders = {""}
        """Those we have made. Nothing is put anywhere else."""
        self._times: list[tuple[str, int]] = []

    def add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parent, name = self._place(member.name)
        path = f"{self._upper}/{parent}/{name}"
        nanoseconds = _nanoseconds(member)
        if name == _OPAQUE:
            os.setxattr(f"{self._upper}/{parent}", self._opaque, b"y")
        elif name.startswith(_WHITEOUT):
            os.mknod(f"{self._upper}/{parent}/{name.removeprefix(_WHITEOUT)}", stat.S_IFCHR)
        elif member.isreg():
            _write(tar, member, path, nanoseconds)
        elif member.isdir():
            self._make(f"{parent}/{name}".lstrip("/"), member.mode, member.uid, member.gid)
            self._times.append((path, nanoseconds))  # what is put into it comes first
        elif member.issym():
            os.symlink(member.linkname, path)
            _own(path, member.uid, member.gid)
            os.utime(path, ns=(nanoseconds, nanoseconds), follow_symlinks=False)
        elif member.islnk():
            first, last = self._place(member.linkname)
            os.link(f"{self._upper}/{first}/{last}", path, follow_symlinks=False)
        elif member.isfifo():
            os.mkfifo(path)
            _own(path, member.uid, member.gid)
            os.chmod(path, member.mode)
            os.utime(path, ns=(nanoseconds, nanoseconds))
        else:
            raise ValueError(f"{member.name} is no file, folder, link or pipe")

    def finish(self) -> None:
        for path, nanoseconds in reversed(self._times):
            os.utime(path, ns=(nanoseconds, nanoseconds))

    def _place(self, member: str) -> tuple[str, str]:
        """The folder and the name in it; folders that are not listed are as they are below."""
        parts = member.split("/")
        if {"", ".", ".."} & set(parts):
            raise ValueError(f"{member!r} leads elsewhere")
        for number in range(1, len(parts)):
            folder = "/".join(parts[:number])
            if folder not in self._folders:
                found = self._below(folder)
                self._make(folder, stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid)
                self._times.append((f"{self._upper}/{folder}", found.st_mtime_ns))
        return "/".join(parts[:-1]), parts[-1]

    def _below(self, folder: str) -> os.stat_result:
        for lower in self._lowers:
            try:
                found = os.lstat(f"{lower}/{folder}")
            except OSError:
                continue
            if stat.S_ISDIR(found.st_mode):
                return found
        raise ValueError(f"{folder} is a folder neither of the snapshot nor of what it is of")

    def _make(self, folder: str, mode: int, uid: int, gid: int) -> None:
        path = f"{self._upper}/{folder}"
        os.mkdir(path, 0o700)
        self._folders.add(folder)
        _own(path, uid, gid)
        os.chmod(path, mode)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str, nanoseconds: int) -> None:
    target = os.open(path, _NEW, 0o600)
    try:
        archive.send(tar, member, target)
        if (member.uid, member.gid) != (0, 0):
            os.fchown(target, member.uid, member.gid)
        os.fchmod(target, member.mode)
        os.utime(target, ns=(nanoseconds, nanoseconds))
    finally:
        os.close(target)


def _own(path: str, uid: int, gid: int) -> None:
    if (uid, gid) != (os.geteuid(), os.getegid()):
        os.chown(path, uid, gid, follow_symlinks=False)


def _nanoseconds(member: tarfile.TarInfo) -> int:
    seconds, _, rest = member.pax_headers.get("mtime", str(int(member.mtime))).partition(".")
    return int(seconds) * 1_000_000_000 + int(rest.ljust(9, "0")[:9])
