"""Archives on their way into a box, unpacked by a child of its first process.

In the box, with the rights of the box: whatever an archive says, it can do no more than a program
there could. A bad one ends the child, not the box.
"""

import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterator
from typing import IO, cast

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_TAKEN = frozenset(
    (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)
)


def put(archive: int, folder: str) -> int:
    """The process id of a child that unpacks a tar in `folder`, owned by root."""
    return _in_child(lambda: _put(archive, folder))


def restore(archive: int) -> int:
    """The same for a snapshot: owners and times are kept, whiteouts remove."""
    return _in_child(lambda: _restore(archive))


def _in_child(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def _put(archive: int, folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    for tar, member in _members(archive):
        _place(tar, member, folder)


def _members(archive: int) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    with (
        os.fdopen(archive, "rb") as f,
        tarfile.open(fileobj=f, mode="r:", encoding="utf-8", errors="surrogateescape") as tar,
    ):
        tar.extraction_filter = lambda member, _: member
        for member in tar:
            yield tar, member
            tar.members = []  # type: ignore[attr-defined]  # it would remember them all


def _place(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: str) -> None:
    """One member, owned by root. What is in its place gives way: a link is never written through."""
    _check_name(member.name)
    if member.islnk():
        _check_name(member.linkname)
    if member.type not in _TAKEN and not member.issparse():
        raise PermissionError(f"{member.name} is no file, folder or link")
    target = os.path.join(folder, member.name)
    _make_parents(folder, member.name)
    _make_room(target, member)
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode &= 0o7777
    if member.isreg() and not member.issparse():
        _write_file(tar, member, target)
        os.chmod(target, member.mode)
        os.utime(target, (member.mtime, member.mtime))
    else:
        tar.extract(member, folder, numeric_owner=True)


def _write_file(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    """In the kernel, from archive to file: buffers of our own would cost more than the file."""
    target = os.open(path, _NEW, 0o600)
    try:
        _send(tar, member, target)
    finally:
        os.close(target)


def _send(tar: tarfile.TarFile, member: tarfile.TarInfo, target: int) -> None:
    source = cast("IO[bytes]", tar.fileobj).fileno()
    at, end = member.offset_data, member.offset_data + member.size
    while at < end:
        sent = os.sendfile(target, source, at, end - at)
        if not sent:
            raise OSError(f"{member.name}: the archive is too short")
        at += sent


def _check_name(name: str) -> None:
    if name.startswith("/") or ".." in name.split("/"):
        raise PermissionError(f"{name} leads out of the folder")


def _make_parents(folder: str, name: str) -> None:
    """Folders above it; a link among them that an earlier member made would lead elsewhere."""
    path = folder
    for part in name.split("/")[:-1]:
        path = os.path.join(path, part)
        if os.path.islink(path):
            os.unlink(path)
        if not os.path.isdir(path):
            os.makedirs(path, exist_ok=True)


def _make_room(target: str, member: tarfile.TarInfo) -> None:
    if not os.path.lexists(target):
        return
    if os.path.islink(target) or not os.path.isdir(target):
        os.unlink(target)
    elif not member.isdir():
        shutil.rmtree(target)


def _restore(archive: int) -> None:
    """Ours, and checked: names do not lead elsewhere, and no member comes through a link."""
    os.umask(0)
    times: list[tuple[str, int]] = []
    for tar, member in _members(archive):
        _restore_one(tar, member, times)
    for path, nanoseconds in reversed(times):
        os.utime(path, ns=(nanoseconds, nanoseconds))


def _restore_one(
    tar: tarfile.TarFile, member: tarfile.TarInfo, times: list[tuple[str, int]]
) -> None:
    _check_name(member.name)
    parent, _, name = f"/{member.name}".rpartition("/")
    if name == _OPAQUE:
        for inside in os.listdir(parent):
            _remove(f"{parent}/{inside}")
        return
    if name.startswith(_WHITEOUT):
        _remove(f"{parent}/{name.removeprefix(_WHITEOUT)}")
        return
    path = f"/{member.name}"
    nanoseconds = _nanoseconds(member)
    if member.isreg():
        _restore_file(tar, member, path, nanoseconds)
        return
    if not (member.isdir() and os.path.isdir(path) and not os.path.islink(path)):
        _make_way(path)
    tar.extract(member, "/", set_attrs=False, numeric_owner=True)
    if member.islnk():
        return
    os.chown(path, member.uid, member.gid, follow_symlinks=False)
    if not member.issym():
        os.chmod(path, member.mode)
    if member.isdir():
        times.append((path, nanoseconds))  # what is put into it comes first
    else:
        os.utime(path, ns=(nanoseconds, nanoseconds), follow_symlinks=False)


def _restore_file(
    tar: tarfile.TarFile, member: tarfile.TarInfo, path: str, nanoseconds: int
) -> None:
    """In as few calls as can be: most of a snapshot is files that are new."""
    try:
        target = os.open(path, _NEW, member.mode)
    except FileExistsError:
        if not _make_way(path):
            return
        target = os.open(path, _NEW, member.mode)
    try:
        _send(tar, member, target)
        if (member.uid, member.gid) != (0, 0):
            os.fchown(target, member.uid, member.gid)
        if member.mode & 0o7000:
            os.fchmod(target, member.mode)  # writing, and a new owner, cost a file these bits
        os.utime(target, ns=(nanoseconds, nanoseconds))
    finally:
        os.close(target)


def _make_way(path: str) -> bool:
    """Remove what is there. False for what is mounted there, and another runtime sees as a file."""
    if os.path.ismount(path):
        return False
    _remove(path)
    return True


def _remove(path: str) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(found.st_mode):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _nanoseconds(member: tarfile.TarInfo) -> int:
    seconds, _, rest = member.pax_headers.get("mtime", str(int(member.mtime))).partition(".")
    return int(seconds) * 1_000_000_000 + int(rest.ljust(9, "0")[:9])
