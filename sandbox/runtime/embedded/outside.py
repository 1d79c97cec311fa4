"""What is done to a box from outside: nothing that ran in it takes part.

Each function forks a child of the zygote, which joins the box's namespaces as far as it must.
"""

import errno
import os
import socket
import stat
import tarfile
from typing import Any

from sandbox.runtime import folders
from sandbox.runtime.embedded import kernel, privileges, spawn, still, wire
from sandbox.runtime.freeze.axis import Axis, file_time_ns

_PATH_BYTES = 4096
_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""A link in a circle leads nowhere, too: an agent can make one where its work has to be."""
_JOINED = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWCGROUP
)


def get(request: dict[str, Any], reply: socket.socket, mounts: int, out: int) -> None:
    """Write a tar of a path in a box.

    The box may be dead: its mount namespace lives as long as the descriptor.
    """
    if os.fork():
        return
    try:
        kernel.close_all_but({0, 1, 2, reply.fileno(), mounts, out})
        kernel.join_namespace(mounts, kernel.CLONE_NEWNS)
        if _leads_nowhere(request["path"]):
            wire.send(reply, {"missing": True})
            return
        with os.fdopen(out, "wb") as f, tarfile.open(fileobj=f, mode="w|") as tar:
            _add(tar, request["path"], Axis.of(request["axis"]) if request["axis"] else None)
        wire.send(reply, {"done": True})
    except BaseException as e:  # noqa: BLE001 - the child's boundary: say it, then end
        wire.tell_error(reply, e)
    finally:
        os._exit(0)


def run(
    request: dict[str, Any],
    reply: socket.socket,
    user_namespace: int | None,
    *,
    pidfd: int,
    streams: list[int],
) -> None:
    """Run a program in a box as its first process would, without asking that."""
    if os.fork():
        return
    try:
        kernel.die_with_parent()
        groups = [os.open(f"{path}/cgroup.procs", os.O_WRONLY) for path in request["groups"]]
        keep = {0, 1, 2, reply.fileno(), pidfd, *streams, *groups}
        kernel.close_all_but(keep if user_namespace is None else keep | {user_namespace})
        kernel.join_namespace(pidfd, kernel.CLONE_NEWPID)
        said, say = os.pipe2(os.O_CLOEXEC)
        # Forked before it counts as one of the box, which may have no room for another.
        pid = os.fork()
        if pid == 0:
            _become(request, user_namespace, pidfd, streams, groups, say)
        os.close(say)
        error = os.read(said, _PATH_BYTES)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        wire.send(reply, {"error": error.decode()} if error else {"exit": code})
    except BaseException as e:  # noqa: BLE001 - the child's boundary: say it, then end
        wire.tell_error(reply, e)
    finally:
        os._exit(0)


def _become(
    request: dict[str, Any],
    user_namespace: int | None,
    pidfd: int,
    streams: list[int],
    groups: list[int],
    say: int,
) -> None:
    try:
        for group in groups:
            os.write(group, b"0")
        if request["processors"]:
            os.sched_setaffinity(0, request["processors"])
        own = (
            kernel.CLONE_NEWTIME * request["own_time"] | kernel.CLONE_NEWUSER * request["rootless"]
        )
        kernel.join_namespace(pidfd, _JOINED | own)
        os.chdir("/")
        privileges.set_limits(0, request["open_files"], request["file_mib"])
        privileges.give_up(user_namespace)
        if request["clock"]:
            still.join()
        spawn.become(request, dict(enumerate(streams)))
    except BaseException as e:  # noqa: BLE001 - the child's boundary: say it, then end
        os.write(say, (str(e) or type(e).__name__).encode())
    finally:
        os._exit(1)


def _leads_nowhere(path: str) -> bool:
    try:
        os.lstat(path)
    except OSError as e:
        if e.errno in _NOWHERE:
            return True
        raise
    return False


def _add(tar: tarfile.TarFile, top: str, axis: Axis | None) -> None:
    """Regular files, folders and links; no owners, which would need the box's user table.

    At any depth, and through no link but those of `top` itself.
    """
    parent, _, last = os.fsencode(top).rstrip(b"/").rpartition(b"/")
    at = os.open(parent or b"/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    above: list[tuple[bytes, os.stat_result, list[bytes]]] = [(b"", os.fstat(at), [last or b"."])]
    while above:
        prefix, _, left = above[-1]
        if not left:
            above.pop()
            if above:
                at = folders.up(at, above[-1][1])
            continue
        name = left.pop()
        path = prefix + b"/" + name if prefix else name
        if _add_one(tar, at, name, path, axis):
            at = folders.down(at, name)
            above.append((path, os.fstat(at), folders.names(at)))


def _add_one(tar: tarfile.TarFile, at: int, name: bytes, path: bytes, axis: Axis | None) -> bool:
    """Is it a folder, to be gone into?"""
    try:
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False  # removed while we read: the box may be alive
    entry = tarfile.TarInfo(os.fsdecode(path))
    when = axis.shown_ns(found.st_mtime_ns, file_time_ns()) if axis else found.st_mtime_ns
    entry.mode, entry.mtime = stat.S_IMODE(found.st_mode), when // 1_000_000_000
    if stat.S_ISLNK(found.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.fsdecode(os.readlink(name, dir_fd=at))
        tar.addfile(entry)
    elif stat.S_ISDIR(found.st_mode):
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
    elif stat.S_ISREG(found.st_mode):
        with os.fdopen(os.open(name, folders.FILE, dir_fd=at), "rb") as f:
            entry.size = os.fstat(f.fileno()).st_size
            tar.addfile(entry, f)
    return stat.S_ISDIR(found.st_mode)
