"""Archives on their way into a box, unpacked by a child of its first process.

In the box, with the rights of the box: whatever an archive says, it can do no more than a program
there could. A bad one ends the child, not the box.
"""

import os
import shutil
import tarfile
from collections.abc import Callable

from sandbox.runtime.embedded import archive, privileges

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TAKEN = frozenset(
    (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)
)


def put(tar: int, folder: str) -> int:
    """The process id of a child that unpacks a tar in `folder`, owned by root."""
    return _in_child(lambda: _put(tar, folder))


def _in_child(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        privileges.as_a_program()
        os.umask(0o022)
        work()
        status = 0
    finally:
        os._exit(status)


def _put(tar: int, folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    for opened, member in archive.members(tar):
        _place(opened, member, folder)


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
        archive.send(tar, member, target)
    finally:
        os.close(target)


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
