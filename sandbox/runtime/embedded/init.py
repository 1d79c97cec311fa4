"""The first process of a box: what it sets up, and in which order it gives its rights away.

It joins its control groups and stages its file system before anybody asks for a box, because
that takes the longest; then it waits to be told what to become. Once it serves, it holds no
privilege beyond the box's own and nothing worth reading; it cannot be traced.
"""

import fcntl
import json
import os
import socket
import struct
from typing import Any

from sandbox.runtime.embedded import cgroup, filesystem, kernel, privileges, serve, still, wire

_LOW_PORTS = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
_SIOCGIFFLAGS_UP = 0x1 | 0x40
_SIOCSIFFLAGS = 0x8914
_FIRST = 1
_CLOCK_BYTES = 4096


def run(ground: filesystem.Ground, groups: list[str], control: int) -> None:
    """Become the box's first process. Never returns normally."""
    kernel.die_with_parent()
    kernel.hide_memory()
    kernel.set_name("init")
    cgroup.make(groups)
    cgroup.join(groups)
    kernel.unshare(kernel.CLONE_NEWCGROUP)
    os.setsid()
    os.umask(0o022)
    told, tell = os.pipe2(os.O_CLOEXEC)
    builder = os.fork()
    if builder == 0:
        _build_and_end(ground, control, tell)
    os.close(tell)
    privileges.enter(ground.user_namespace)  # what is still to be done, the builder does
    own_users = ground.rootless or ground.user_namespace is not None
    clock = os.read(told, _CLOCK_BYTES)
    os.close(told)
    ready: dict[str, Any] = {"ready": True}
    if not clock:
        privileges.confine()
    elif clock != still.LATER:
        ready.update(still.begin(json.loads(clock), own_users=own_users))
    if os.waitpid(builder, 0)[1]:
        return  # it has said why; or nobody wanted a box
    channel = socket.socket(fileno=control)
    wire.send(channel, ready)  # and alone
    if clock == still.LATER and not still.begin_when_told(channel, own_users=own_users):
        return
    serve.serve(channel)


def _build_and_end(ground: filesystem.Ground, control: int, tell: int) -> None:
    """What this process does is done for the first one, which has the same namespaces.

    A process pays for every page it touches as long as it lives, and that one lives long.
    `tell`: a pipe to it, by which it hears soon whether there is to be a clock.
    """
    channel = socket.socket(fileno=control)
    status = 1
    try:
        kernel.die_with_parent()
        filesystem.prepare(ground.folder)
        _network()
        trees = filesystem.stage(ground)
        wire.send(channel, {"staged": True})
        request, fds = wire.receive(channel)
        if request is not None:
            os.write(tell, _told(request["clock"]))
            os.close(tell)
            made = _build(ground, request, trees, fds, channel)
            wire.send(channel, {"made": made})
            status = 0
    except BaseException as e:  # noqa: BLE001 - the child's boundary: say it, then end
        wire.tell_error(channel, e)
    finally:
        os._exit(status)


def _told(clock: dict[str, Any] | None) -> bytes:
    """How the first process hears of its clock: with nothing, of none."""
    if clock is None:
        return b""
    return json.dumps(clock).encode() if "options" in clock else still.LATER


def _build(
    ground: filesystem.Ground,
    request: dict[str, Any],
    trees: list[tuple[int, str]],
    fds: list[int],
    channel: socket.socket,
) -> list[str]:
    layout = filesystem.Layout(
        lowers=request["lowers"],
        workdir=request["workdir"],
        hostname=request["hostname"],
        disk=request["disk"],
        disk_mib=request["disk_mib"],
        terminals=request["terminals"],
        mounts=[(source, target) for source, target in request["mounts"]],
        tmpfs=request["tmpfs"],
        guise=request["guise"],
        snapshot=fds[0] if fds else None,
    )
    made = filesystem.build(
        ground, layout, trees, lambda upper: wire.send(channel, {"upper": True}, [upper])
    )
    kernel.set_hostname(request["hostname"])
    privileges.set_limits(_FIRST, request["open_files"], request["file_mib"], request["processes"])
    return made


def _network() -> None:
    """A loopback that is up, and on which root in the box may use the low ports."""
    kernel.write(_LOW_PORTS, "0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh", b"lo", _SIOCGIFFLAGS_UP) + b"\0" * 16
        fcntl.ioctl(s, _SIOCSIFFLAGS, request)
