"""A box with the recorded network: every client is answered or refused, at once, and nothing leaves."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sandbox.errors import NetworkFault
from sandbox.model.task import Limits
from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.freeze.build import programs
from sandbox.runtime.network.attach import FOLDER, Link
from sandbox.runtime.spec import BoxSpec, Image
from sandbox.runtime.store import Store
from tests.support.webs import replaying

PAGE = ("https://example.test/page", b"recorded\n")
PLAIN = ("http://example.test/plain", b"plain\n")
FAR = ("https://example.test:8443/far", b"another port\n")
BIG = ("http://example.test/big", bytes(range(256)) * (32 << 10))
PROXY = "http://127.0.0.1:3128"

FETCH = """
import hashlib, json, ssl, sys, time, urllib.error, urllib.request
for url in sys.argv[1:]:
    began = time.monotonic()
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            body = answer.read()
            text = body.decode() if len(body) < 1000 else hashlib.sha256(body).hexdigest()
            said = [answer.status, answer.reason, text]
    except urllib.error.HTTPError as e:
        said = [e.code, e.reason, e.read().decode()]
    except urllib.error.URLError as e:
        said = [0, type(e.reason).__name__, str(e.reason)]
    print(json.dumps([*said, time.monotonic() - began]))
"""


@dataclass(frozen=True)
class Connected:
    box: Box
    link: Link
    log: Path

    def run(self, *argv: str, **env: str) -> str:
        done = self.box.exec(argv, seconds=60, env=env)
        assert done.exit_code == 0, done.stderr.decode()
        return done.stdout.decode()

    def fetch(self, *urls: str, **env: str) -> list[tuple[int, str, str, float]]:
        lines = self.run("python3", "-c", FETCH, *urls, **env).splitlines()
        return [tuple(json.loads(line)) for line in lines]

    @property
    def has_six(self) -> bool:
        """Engines take IPv6 from the loopback of a box without a network; clients take the other."""
        return bool(self.run("cat", "/proc/net/if_inet6"))

    def logged(self, event: str) -> list[dict[str, object]]:
        lines = (json.loads(line) for line in self.log.read_text().splitlines())
        return [line for line in lines if line["event"] == event]


@pytest.fixture(scope="session")
def wire(store: Store) -> Path:
    return programs(store).program("wire")


@pytest.fixture
def bare(image: Image) -> BoxSpec:
    return BoxSpec(image=image, limits=Limits(memory_mib=192, pids=64))


@pytest.fixture
def net(runtime: Runtime, bare: BoxSpec, wire: Path, tmp_path: Path) -> Iterator[Connected]:
    with (
        replaying(tmp_path, PAGE, PLAIN, FAR, BIG, wire=wire) as link,
        runtime.create(link.joined(bare)) as box,
    ):
        link.start(box)
        yield Connected(box, link, tmp_path / "tape" / "network.jsonl")


def test_a_client_that_knows_no_proxy_gets_what_was_recorded(net: Connected):
    page, plain, big = net.fetch(PAGE[0], PLAIN[0], BIG[0])
    assert (page[0], page[2]) == (200, "recorded\n")
    assert plain[2] == "plain\n"
    assert big[2] == hashlib.sha256(BIG[1]).hexdigest()


def test_a_client_that_knows_one_gets_the_same_and_reaches_other_ports(net: Connected):
    said = net.fetch(PAGE[0], PLAIN[0], FAR[0], https_proxy=PROXY, http_proxy=PROXY)
    assert [line[2] for line in said] == ["recorded\n", "plain\n", "another port\n"]


@pytest.mark.parametrize("env", [{}, {"https_proxy": PROXY, "http_proxy": PROXY}])
def test_what_was_not_recorded_is_refused_at_once_by_name(net: Connected, env: dict[str, str]):
    urls = [f"{scheme}://host{n}.test/x" for scheme in ("http", "https") for n in range(3)]
    for url, (status, reason, text, seconds) in zip(urls, net.fetch(*urls, **env), strict=True):
        assert (status, reason) == (403, "Not recorded")
        assert f"GET {url} is not recorded" in text
        assert "cassette: toy-1/cassette" in text
        assert "stillroom record" in text
        assert seconds < 1
    assert [line["url"] for line in net.logged("refused")] == urls


def test_a_certificate_is_verified_and_only_ours_is_trusted(net: Connected):
    ((status, _, why, _),) = net.fetch(PAGE[0], SSL_CERT_FILE="/dev/null", SSL_CERT_DIR="/none")
    assert status == 0
    assert "CERTIFICATE_VERIFY_FAILED" in why
    assert "PRIVATE" not in net.run("sh", "-c", f"cat {FOLDER}/*.pem")


def test_the_usual_bundle_is_ours(net: Connected):
    bundle = net.run("cat", "/etc/ssl/certs/ca-certificates.crt")
    assert bundle == (net.link.folder / "certificates.pem").read_text()


def test_other_ports_are_refused_by_the_kernel_at_once(net: Connected):
    ((status, kind, _, seconds),) = net.fetch(FAR[0])
    assert status == 0
    # Of the second address, which a box without IPv6 has not.
    assert kind == ("ConnectionRefusedError" if net.has_six else "OSError")
    assert seconds < 1


NAMES = """
import socket, sys
print(sorted({a[4][0] for a in socket.getaddrinfo("pypi.org", 443)}))
try: print(socket.getaddrinfo("nobody.invalid", 443))
except socket.gaierror as e: print(e.errno == socket.EAI_NONAME)
question = b"\\1\\2\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\4pypi\\3org\\0\\0\\1\\0\\1"
for address in sys.argv[1:]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.connect((address, 53))
        s.send(question)
        print(s.recv(512)[-4:].hex())
    with socket.create_connection((address, 53), 10) as s:
        s.sendall(len(question).to_bytes(2, "big") + question)
        print(s.recv(512)[-4:].hex())
"""


def test_names_are_answered_over_udp_and_tcp_ipv4_and_ipv6(net: Connected):
    places = ["127.0.0.1", *(["::1"] if net.has_six else [])]
    said = net.run("python3", "-c", NAMES, *places).splitlines()
    assert said[0] == "['127.0.0.1', '::1']"
    assert said[1:] == ["True", *["7f000001"] * 2 * len(places)]
    assert {line["name"] for line in net.logged("name")} == {"pypi.org", "nobody.invalid"}


SIX = """
import socket
with socket.create_connection(("::1", 80), 10) as s:
    s.sendall(b"GET /plain HTTP/1.1\\r\\nHost: example.test\\r\\nConnection: close\\r\\n\\r\\n")
    print(b"".join(iter(lambda: s.recv(4096), b"")).decode())
"""


def test_it_is_there_on_ipv6(net: Connected):
    if not net.has_six:
        pytest.skip("this runtime's boxes have no IPv6")
    assert "plain\n" in net.run("python3", "-c", SIX)


BEYOND = """
import errno, socket
def attempt(family, kind, address, number=0):
    try:
        with socket.socket(family, kind, number) as s:
            s.settimeout(5)
            if address: s.connect(address); s.send(b"x")
        return "done"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
print(attempt(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 443)))
print(attempt(socket.AF_INET6, socket.SOCK_DGRAM, ("2001:db8::1", 53)))
print(attempt(socket.AF_INET, socket.SOCK_RAW, None, 1))
print(attempt(socket.AF_PACKET, socket.SOCK_RAW, None))
"""


def test_nothing_else_can_be_reached(net: Connected):
    said = net.run("python3", "-c", BEYOND).split()
    assert set(said[:2]) <= {"ENETUNREACH", "EADDRNOTAVAIL", "EHOSTUNREACH"}
    assert set(said[2:]) <= {"EPERM", "EACCES", "EAFNOSUPPORT"}


MANY = """
import http.client, socket, threading
def one(n):
    c = http.client.HTTPConnection("127.0.0.1", 80, timeout=60)
    for _ in range(5):
        c.request("GET", "/big" if n % 8 == 0 else "/plain", headers={"Host": "example.test"})
        sizes.append(len(c.getresponse().read()))
    c.close()
sizes = []
idle = [socket.create_connection(("127.0.0.1", 80)) for _ in range(60)]
threads = [threading.Thread(target=one, args=(n,)) for n in range(40)]
for t in threads: t.start()
for t in threads: t.join()
for s in idle: s.close()
print(sorted(set(sizes)), len(sizes))
"""


def test_many_connections_at_once_each_get_all_of_their_answer(net: Connected):
    assert net.run("python3", "-c", MANY).strip() == f"[6, {len(BIG[1])}] 200"
    net.link.check()


ABRUPT = """
import os, socket, struct
for n in range(400):
    s = socket.create_connection(("127.0.0.1", (80, 443, 3128, 53)[n % 4]))
    s.sendall(os.urandom(n))
    if n % 2: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(200): u.sendto(os.urandom(n), ("127.0.0.1", 53))
"""


def test_connections_that_make_no_sense_do_no_harm(net: Connected):
    net.run("python3", "-c", ABRUPT)
    assert net.fetch(PLAIN[0])[0][2] == "plain\n"
    net.link.check()


def test_wire_goes_with_all_programs_and_can_be_started_again(net: Connected):
    net.box.kill_all()
    ((status, kind, _, _),) = net.fetch(PLAIN[0])
    assert (status, kind) != (200, "")
    net.link.start(net.box)
    assert net.fetch(PLAIN[0])[0][2] == "plain\n"
    with pytest.raises(NetworkFault, match=r"port 53 .*in use"):
        net.link.start(net.box)


def test_it_is_no_part_of_what_the_box_changed(net: Connected):
    net.run("cat", "/etc/ssl/certs/ca-certificates.crt", "/etc/resolv.conf")
    assert net.box.changes() == []
    done = net.box.exec(["sh", "-c", f"echo x > {FOLDER}/certificates.pem"], seconds=20)
    assert done.exit_code != 0


def test_a_box_whose_answerer_has_ended_is_refused_at_once_and_is_a_fault(net: Connected):
    net.link.process.kill()
    net.link.process.wait()
    ((status, _, _, seconds),) = net.fetch(PLAIN[0])
    assert status == 0
    assert seconds < 5
    with pytest.raises(NetworkFault):
        net.link.check()


def test_a_box_of_another_user_is_answered_too(
    runtime: Runtime, bare: BoxSpec, wire: Path, tmp_path: Path
):
    spec = replace(bare, user="65534:65534")
    with (
        replaying(tmp_path, PAGE, wire=wire) as link,
        runtime.create(link.joined(spec)) as box,
    ):
        link.start(box)
        net = Connected(box, link, tmp_path / "tape" / "network.jsonl")
        assert net.fetch(PAGE[0])[0][2] == "recorded\n"
