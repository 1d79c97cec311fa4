"""What is done to a box from outside: nothing that ran in it takes part.

Each function forks a child of the zygote, which joins the box's namespaces as far as it must.
"""

import os
import socket
import stat
import tarfile
from typing import Any

from sandbox.runtime.embedded import kernel, privileges, spawn, wire

_PATH_BYTES = 4096
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
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
        os.lstat(request["path"])
        with os.fdopen(out, "wb") as f, tarfile.open(fileobj=f, mode="w|") as tar:
            _add(tar, os.fsencode(request["path"]), os.path.basename(request["path"]))
        wire.send(reply, {"done": True})
    except (FileNotFoundError, NotADirectoryError):
        wire.send(reply, {"missing": True})
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
        kernel.join_namespace(pidfd, _JOINED)
        os.chdir("/")
        privileges.set_limits(0, request["open_files"], request["file_mib"])
        privileges.give_up(user_namespace)
        spawn.become(request, streams)
    except BaseException as e:  # noqa: BLE001 - the child's boundary: say it, then end
        os.write(say, (str(e) or type(e).__name__).encode())
    finally:
        os._exit(1)


def _add(tar: tarfile.TarFile, top: bytes, name: str) -> None:
    """Regular files, folders and links; no owners, which would need the box's user table.

    Without recursion, and without what lies deeper than a path can say.
    """
    left = [(top, name)]
    while left:
        path, name = left.pop()
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            continue  # removed while we read: the box may be alive
        entry = tarfile.TarInfo(name)
        entry.mode, entry.mtime = stat.S_IMODE(found.st_mode), int(found.st_mtime)
        if stat.S_ISLNK(found.st_mode):
            entry.type, entry.linkname = tarfile.SYMTYPE, os.fsdecode(os.readlink(path))
            tar.addfile(entry)
        elif stat.S_ISDIR(found.st_mode):
            entry.type = tarfile.DIRTYPE
            tar.addfile(entry)
            children = sorted(os.listdir(path), reverse=True)
            inside = [(path + b"/" + c, f"{name}/{os.fsdecode(c)}") for c in children]
            left += [child for child in inside if len(child[0]) < _PATH_BYTES]
        elif stat.S_ISREG(found.st_mode):
            entry.size = found.st_size
            with os.fdopen(os.open(path, _FILE), "rb") as f:
                tar.addfile(entry, f)
