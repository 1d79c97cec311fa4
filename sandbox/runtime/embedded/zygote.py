"""A small, clean process that makes boxes. Child of the user's process; dies with it.

It was started with an empty environment and knows nothing but what it is asked to make, so that
what it forks, the first process of each box, knows nothing either.
"""

import contextlib
import os
import signal
import socket
import stat
import tarfile
from typing import Any

from sandbox.runtime.embedded import filesystem, init, kernel, wire

CONTROL_FD = 3
_NAMESPACES = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWNET
)
_IDS = 65536
_PATH_BYTES = 4096


def main() -> None:
    kernel.hide_memory()
    kernel.set_name("stillroom-zygote")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ^C is for the user's process to handle
    control = socket.socket(fileno=CONTROL_FD)
    while True:
        request, fds = wire.receive(control)
        if request is None:
            os._exit(0)
        _reap()
        reply = socket.socket(fileno=fds[0])
        try:
            _answer(request, fds, reply)
        except (OSError, KeyError, TypeError) as e:
            _tell_error(reply, e)
        finally:
            reply.close()
            for fd in fds[1:]:
                os.close(fd)


def _answer(request: dict[str, Any], fds: list[int], reply: socket.socket) -> None:
    match request["op"]:
        case "create":
            _create(request, reply, control=fds[1])
        case "get":
            _get(request, reply, mounts=fds[1], out=fds[2])
        case other:
            raise KeyError(other)


def _create(request: dict[str, Any], reply: socket.socket, control: int) -> None:
    owner = request["owner"]
    layout = filesystem.Layout(request["folder"], tuple(request["lowers"]), owner)
    setup = init.Setup(layout, request["groups"], request["hostname"], request["workdir"])
    filesystem.prepare(layout.folder)
    user_namespace = _user_namespace(owner) if owner else None
    pid, pidfd = kernel.fork_into(_NAMESPACES)
    if pid == 0:
        try:
            keep = {control} if user_namespace is None else {control, user_namespace}
            kernel.close_all_but(keep)
            _open_standard_streams()
            init.run(setup, control, user_namespace)
        except BaseException as e:  # noqa: BLE001 - the child's boundary: say it, then end
            _tell_error(socket.socket(fileno=os.dup(control)), e)
        finally:
            os._exit(1)
    if user_namespace is not None:
        os.close(user_namespace)
    mounts = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    wire.send(reply, {"pid": pid}, [pidfd, mounts])
    os.close(pidfd)
    os.close(mounts)


def _user_namespace(owner: int) -> int:
    """A namespace in which 0… is the host's owner…; it lives as long as its descriptor."""
    read_end, write_end = os.pipe()
    pid, pidfd = kernel.fork_into(kernel.CLONE_NEWUSER)
    if pid == 0:
        os.close(write_end)
        os.read(read_end, 1)
        os._exit(0)
    try:
        os.close(read_end)
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as f:
                f.write(f"0 {owner} {_IDS}")
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(write_end)
        os.waitpid(pid, 0)
        os.close(pidfd)


def _get(request: dict[str, Any], reply: socket.socket, mounts: int, out: int) -> None:
    """Write a tar of a path in a box, from outside: nothing in the box takes part.

    The box may be dead: its mount namespace lives as long as the descriptor.
    """
    if os.fork():
        return
    status = {"done": True}
    try:
        kernel.close_all_but({0, 1, 2, reply.fileno(), mounts, out})
        kernel.join_namespace(mounts, kernel.CLONE_NEWNS)
        os.lstat(request["path"])
        with os.fdopen(out, "wb") as f, tarfile.open(fileobj=f, mode="w|") as tar:
            _add(tar, os.fsencode(request["path"]), os.path.basename(request["path"]))
        wire.send(reply, status)
    except (FileNotFoundError, NotADirectoryError):
        wire.send(reply, {"missing": True})
    except BaseException as e:  # noqa: BLE001 - the child's boundary: say it, then end
        _tell_error(reply, e)
    finally:
        os._exit(0)


def _add(tar: tarfile.TarFile, top: bytes, name: str) -> None:
    """Regular files, folders and links; no owners, which would need the box's user table.

    Without recursion, and without what lies deeper than a path can say.
    """
    left = [(top, name)]
    while left:
        path, name = left.pop()
        found = os.lstat(path)
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
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as f:
                tar.addfile(entry, f)


def _open_standard_streams() -> None:
    for _ in range(3):
        os.open("/dev/null", os.O_RDWR)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _tell_error(reply: socket.socket, error: BaseException) -> None:
    with contextlib.suppress(OSError):
        wire.send(reply, {"error": str(error) or type(error).__name__})
