"""The first process of a box: what it sets up, and in which order it gives its rights away.

It joins its control groups and stages its file system before anybody asks for a box, because
that takes the longest; then it waits to be told what to become. Once it serves, it holds no
privilege beyond the box's own and nothing worth reading; it cannot be traced.
"""

import fcntl
import os
import socket
import struct
from typing import Any

from sandbox.runtime.embedded import cgroup, filesystem, kernel, privileges, serve, wire

_LOW_PORTS = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
_SIOCGIFFLAGS_UP = 0x1 | 0x40
_SIOCSIFFLAGS = 0x8914


def run(ground: filesystem.Ground, groups: list[str], control: int) -> None:
    """Become the box's first process. Never returns normally."""
    kernel.die_with_parent()
    kernel.hide_memory()
    kernel.set_name("init")
    cgroup.join(groups)
    kernel.unshare(kernel.CLONE_NEWCGROUP)
    _network()
    filesystem.stage(ground)
    os.setsid()
    os.umask(0o022)
    channel = socket.socket(fileno=control)
    request, _ = wire.receive(channel)
    if request is None:
        return  # nobody wanted a box
    upper, made = _build(ground, request)
    wire.send(channel, {"made": made}, [upper])
    os.close(upper)
    serve.serve(channel)


def _build(ground: filesystem.Ground, request: dict[str, Any]) -> tuple[int, list[str]]:
    layout = filesystem.Layout(
        lowers=request["lowers"],
        disk=request["disk"],
        disk_mib=request["disk_mib"],
        terminals=request["terminals"],
        mounts=[(source, target) for source, target in request["mounts"]],
        tmpfs=request["tmpfs"],
    )
    upper, made = filesystem.build(ground, layout)
    kernel.set_hostname(request["hostname"])
    privileges.set_limits(request["open_files"], request["file_mib"], request["processes"])
    privileges.give_up(ground.user_namespace)
    made += filesystem.make_mount_point(request["workdir"], folder=True)
    return upper, made


def _network() -> None:
    """A loopback that is up, and on which root in the box may use the low ports."""
    kernel.write(_LOW_PORTS, "0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh", b"lo", _SIOCGIFFLAGS_UP) + b"\0" * 16
        fcntl.ioctl(s, _SIOCSIFFLAGS, request)
