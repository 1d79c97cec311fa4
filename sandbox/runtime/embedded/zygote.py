"""A small, clean process that makes boxes. Child of the user's process; dies with it.

It was started with an empty environment and knows nothing but what it is asked to make, so that
what it forks, the first process of each box, knows nothing either. When the user's process is
gone it removes what is left of the run, and ends.
"""

import contextlib
import gc
import os
import resource
import select
import shutil
import signal
import socket
import time
from typing import Any

from sandbox.runtime.embedded import filesystem, init, kernel, outside, still, wire

CONTROL_FD = 3
_NAMESPACES = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWNET
)
_IDS = 65536
_LAST_SECONDS = 10.0
_REST_SECONDS = 0.008
"""Whoever has just got a box is about to use it: what is for later does not take its time."""


def main(run: str, groups: list[str]) -> None:
    """`run`: the folder of this run's boxes, which is also how its groups are called.

    `groups`: the folders in which they are made.
    """
    kernel.hide_memory()
    kernel.set_name("stillroom-zygote")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ^C is for the user's process to handle
    _allow_descriptors()
    # A collection would write to every object, and each box would get a copy of all that memory.
    gc.disable()
    gc.freeze()
    control = socket.socket(fileno=CONTROL_FD)
    zygote = Zygote()
    later: list[tuple[dict[str, Any], list[int]]] = []
    while True:
        if later and not select.select([control], [], [], _REST_SECONDS)[0]:
            zygote.serve(*later.pop())
            continue
        request, fds = wire.receive(control)
        if request is None:
            break
        _reap()
        while later:
            zygote.serve(*later.pop())
        if request.get("later"):
            later.append((request, fds))
        else:
            zygote.serve(request, fds)
    clean_up(run, groups)
    os._exit(0)


class Zygote:
    def __init__(self) -> None:
        self._user_namespaces: dict[int, int] = {}
        """By owner: a box can have that of one which is gone."""

    def serve(self, request: dict[str, Any], fds: list[int]) -> None:
        if not fds:
            return  # no room for more descriptors; whoever asked sees their end closed
        reply = socket.socket(fileno=fds[0])
        try:
            self._answer(request, fds, reply)
        except Exception as e:  # noqa: BLE001 - whatever was asked for, the other boxes go on
            wire.tell_error(reply, e)
        finally:
            reply.close()
            for fd in fds[1:]:
                os.close(fd)

    def _answer(self, request: dict[str, Any], fds: list[int], reply: socket.socket) -> None:
        match request["op"]:
            case "hurry":
                pass  # what was to be done later has been done, since something was asked for
            case "load":
                still.load(request["path"])
                wire.send(reply, {"done": True})
            case "blank":
                self._blank(request, reply, control=fds[1])
            case "get":
                outside.get(request, reply, mounts=fds[1], out=fds[2])
            case "exec":
                owner = request["owner"]
                user_namespace = self._user_namespaces[owner] if owner else None
                outside.run(request, reply, user_namespace, pidfd=fds[1], streams=fds[2:])
            case other:
                raise KeyError(other)

    def _blank(self, request: dict[str, Any], reply: socket.socket, control: int) -> None:
        """Fork the first process of a box that will wait to be told what to become."""
        owner = request["owner"]
        user_namespace = self._user_namespace(owner) if owner else None
        rootless = request["rootless"]
        pid, pidfd = kernel.fork_into(_NAMESPACES | (kernel.CLONE_NEWUSER if rootless else 0))
        if pid == 0:
            try:
                if rootless:
                    kernel.wait_until_mapped()
                keep = {control} if user_namespace is None else {control, user_namespace}
                kernel.close_all_but(keep)
                _open_standard_streams()
                ground = filesystem.Ground(request["folder"], user_namespace, owner, rootless)
                init.run(ground, request["groups"], control)
            except BaseException as e:  # noqa: BLE001 - the child's boundary: say it, then end
                wire.tell_error(socket.socket(fileno=os.dup(control)), e)
            finally:
                os._exit(1)
        try:
            if rootless:
                _map(pid, 0, 1)
            mounts = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            try:
                wire.send(reply, {"pid": pid}, [pidfd, mounts])
            finally:
                os.close(mounts)
        finally:
            os.close(pidfd)

    def _user_namespace(self, owner: int) -> int:
        """A namespace in which 0… is the host's owner…; it lives as long as its descriptor."""
        if owner not in self._user_namespaces:
            self._user_namespaces[owner] = _new_user_namespace(owner)
        return self._user_namespaces[owner]


def clean_up(run: str, groups: list[str]) -> None:
    """Kill what is left of the run's boxes, then remove their groups and folders."""
    # A blank that is just being made makes its groups after we have looked for them, if it lives.
    for pid in _children():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    prefix = f"{os.path.basename(run)}."
    until = time.monotonic() + _LAST_SECONDS
    while time.monotonic() < until:
        alive = _children()
        names = {name for parent in groups for name in _listed(parent) if name.startswith(prefix)}
        for name in names:
            _kill(name, groups)
        _reap()
        ours = [os.path.join(parent, name) for parent in groups for name in names]
        if not [group for group in ours if not _removed(group)] and not alive:
            break
        time.sleep(0.002)
    for name in _listed(run):
        filesystem.discard(os.path.join(run, name))
    shutil.rmtree(run, onerror=_open_up)
    if not os.path.exists(run):
        with contextlib.suppress(OSError):
            os.unlink(f"{run}.lease")
    for parent in groups:
        with contextlib.suppress(OSError):
            os.rmdir(parent)  # unless another run has boxes in it


def _open_up(_function: object, path: str, _error: object) -> None:
    """Without root, the folder in which an overlay works is closed to its owner."""
    with contextlib.suppress(OSError):
        os.chmod(path, 0o700)
        shutil.rmtree(path, ignore_errors=True)


def _new_user_namespace(owner: int) -> int:
    read_end, write_end = os.pipe()
    pid, pidfd = kernel.fork_into(kernel.CLONE_NEWUSER)
    if pid == 0:
        os.close(write_end)
        os.read(read_end, 1)
        os._exit(0)
    try:
        os.close(read_end)
        _map(pid, owner, _IDS)
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(write_end)
        os.waitpid(pid, 0)
        os.close(pidfd)


def _map(pid: int, owner: int, count: int) -> None:
    """0… in the process's new user namespace are owner… in ours."""
    for name in ("uid_map", "gid_map"):
        kernel.write(f"/proc/{pid}/{name}", f"0 {owner} {count}")


def _children() -> list[int]:
    try:
        return [int(pid) for pid in kernel.read("/proc/thread-self/children").split()]
    except OSError:  # a kernel that does not tell
        return []


def _kill(name: str, groups: list[str]) -> None:
    """Every process of a box: those of its group in one hierarchy are those of all."""
    for parent in groups:
        with contextlib.suppress(OSError):
            kernel.write(os.path.join(parent, name, "freezer.state"), "THAWED")
    with contextlib.suppress(OSError):
        for line in kernel.read(os.path.join(groups[0], name, "cgroup.procs")).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line), signal.SIGKILL)


def _removed(group: str) -> bool:
    try:
        os.rmdir(group)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _allow_descriptors() -> None:
    """One for each box that lives, and then some."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _open_standard_streams() -> None:
    for _ in range(3):
        os.open("/dev/null", os.O_RDWR)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
