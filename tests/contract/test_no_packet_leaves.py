"""No packet leaves a box: watched from outside, in its network, while a program tries all ways."""

import json
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest

from sandbox.model.task import Limits
from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.freeze.build import programs
from sandbox.runtime.spec import BoxSpec, Image, Stillness
from sandbox.runtime.store import Store
from tests.contract.conftest import host_processes
from tests.support.absent import absent
from tests.support.capture import Packet, capture
from tests.support.waiting import eventually
from tests.support.webs import replaying

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="joining a box's network needs root")

TRIES = r"""
import errno, json, os, socket, sys
BEYOND4, BEYOND6 = "192.0.2.1", "2001:db8::1"  # addresses for documentation: nobody's
said = {}
def attempt(name, what):
    try:
        said[name] = what() or "done"
    except socket.gaierror as e:
        said[name] = "unresolved"
    except OSError as e:
        said[name] = errno.errorcode.get(e.errno, str(e.errno))
def reach(family, kind, address, data=b"x"):
    with socket.socket(family, kind) as s:
        s.settimeout(2)
        if kind == socket.SOCK_DGRAM:
            s.sendto(data, address)
        else:
            s.connect(address)
attempt("tcp4", lambda: reach(socket.AF_INET, socket.SOCK_STREAM, (BEYOND4, 80)))
attempt("tcp6", lambda: reach(socket.AF_INET6, socket.SOCK_STREAM, (BEYOND6, 80)))
attempt("udp4", lambda: reach(socket.AF_INET, socket.SOCK_DGRAM, (BEYOND4, 53)))
attempt("udp6", lambda: reach(socket.AF_INET6, socket.SOCK_DGRAM, (BEYOND6, 53)))
attempt("multicast", lambda: reach(socket.AF_INET, socket.SOCK_DGRAM, ("224.0.0.251", 5353)))
attempt("link local", lambda: reach(socket.AF_INET6, socket.SOCK_DGRAM, ("ff02::fb", 5353, 0, 1)))
attempt("metadata", lambda: reach(socket.AF_INET, socket.SOCK_STREAM, ("169.254.169.254", 80)))
attempt("dns", lambda: socket.getaddrinfo("example.org", 443) and None)
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
attempt("raw6", lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58).close())
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close())
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM).close())
attempt("bluetooth", lambda: socket.socket(31, socket.SOCK_SEQPACKET, 0).close())
attempt("xdp", lambda: socket.socket(44, socket.SOCK_RAW, 0).close())
attempt("alg", lambda: socket.socket(38, socket.SOCK_SEQPACKET, 0).close())
attempt("abstract", lambda: reach(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + sys.argv[1]))
attempt("itself", lambda: reach(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 9)))
print(json.dumps(said))
"""
UNREACHABLE = {"ENETUNREACH", "EADDRNOTAVAIL", "EHOSTUNREACH", "EACCES", "EPERM"}
REFUSED = {"EPERM", "EACCES", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT"}
EXPECTED = {
    **dict.fromkeys(("tcp4", "tcp6", "udp4", "udp6", "metadata"), UNREACHABLE),
    **dict.fromkeys(("multicast", "link local"), UNREACHABLE | {"done"}),
    **dict.fromkeys(("raw", "raw6", "packet", "vsock", "bluetooth", "xdp", "alg"), REFUSED),
    "dns": {"unresolved"},
    "abstract": {"ECONNREFUSED"},
    "itself": {"done"},
}
"""`done` to many at once: nobody is there but the box itself, and the capture tells."""


MOVING, STILL = None, Stillness(at_ns=1_715_774_400 * 10**9)
PAGE = ("https://example.test/page", b"recorded\n")
FETCH = f"import urllib.request; print(urllib.request.urlopen({PAGE[0]!r}, timeout=20).read())"
CLOCKS = pytest.mark.parametrize("still", [MOVING, STILL], ids=["moving clock", "clock of its own"])


@pytest.fixture
def spec(runtime: Runtime, image: Image, still: Stillness | None) -> BoxSpec:
    if still and (why := runtime.capabilities().still):
        absent(why)
    return BoxSpec(image=image, limits=Limits(memory_mib=192, pids=64), still=still)


@CLOCKS
def test_no_packet_leaves_a_box_whatever_a_program_tries(runtime: Runtime, spec: BoxSpec):
    with runtime.create(spec) as box, outside() as name:
        said, packets = watched(box, ["python3", "-c", TRIES, name])
    assert unexpected(json.loads(said)) == {}
    assert any(p.destination == "127.0.0.1" for p in packets), "the capture sees nothing at all"
    assert_none_left(packets)


@CLOCKS
def test_no_packet_leaves_a_box_that_is_answered_from_a_cassette(
    runtime: Runtime, spec: BoxSpec, store: Store, tmp_path: Path
):
    wire = programs(store).program("wire")
    with (
        replaying(tmp_path, PAGE, wire=wire) as link,
        runtime.create(link.joined(spec)) as box,
        outside() as name,
    ):
        link.start(box)
        said, packets = watched(box, ["python3", "-c", TRIES, name])
        page, more = watched(box, ["python3", "-c", FETCH])
    assert page == b"b'recorded\\n'\n"
    names = json.loads(said)
    assert names.pop("dns") == "done"
    assert unexpected({**names, "dns": "unresolved"}) == {}
    assert any(p.destination == "127.0.0.1" for p in more), "the capture sees nothing at all"
    assert_none_left(packets + more)


@contextmanager
def outside() -> Iterator[str]:
    """The name of an abstract socket on which this machine listens."""
    name = f"outside-{secrets.token_hex(6)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name)
        listener.listen()
        yield name


def watched(box: Box, argv: list[str]) -> tuple[bytes, list[Packet]]:
    """What it said, and every packet meanwhile, seen from outside the box."""
    marker = f"9{secrets.randbelow(10**8)}"
    box.exec(["sh", "-c", f"sleep {marker} > /dev/null 2>&1 &"], seconds=20)
    assert eventually(lambda: bool(host_processes(marker)))
    with capture(host_processes(marker)[0]) as seen:
        done = box.exec(argv, seconds=60)
        assert done.exit_code == 0, done.stderr.decode()
        return done.stdout, list(seen.packets())


def unexpected(said: dict[str, str]) -> dict[str, str]:
    assert said.keys() == EXPECTED.keys()
    return {name: said[name] for name in said if said[name] not in EXPECTED[name]}


def assert_none_left(packets: list[Packet]) -> None:
    assert {p.interface for p in packets} == {"lo"}
    assert [p for p in packets if not is_own(p.destination)] == []


def is_own(destination: str) -> bool:
    address = ip_address(destination)
    return address.is_loopback or address.is_multicast
