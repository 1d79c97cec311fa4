"""What answers a box: the recorded, and a refusal that helps; whatever it is sent."""

import hashlib
import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import NetworkFault
from sandbox.runtime.network.answers import Outcome
from sandbox.runtime.network.attach import MEMORY, connected, neutral
from sandbox.runtime.network.bounds import Held
from sandbox.runtime.network.entry import kept
from sandbox.runtime.network.exchange import Exchange
from sandbox.runtime.network.message import Response
from sandbox.runtime.store import Store
from tests.support.waiting import eventually
from tests.support.webs import NO_WIRE, Carried, Tape, ask, carried, replaying, trusting

PAGE = ("https://example.test/page?b=2&a=1", b"recorded\n")
PLAIN = ("http://example.test/plain", b"plain\n")
FAR = ("https://example.test:8443/far", b"another port\n")


def log_of(folder: Path) -> list[dict[str, object]]:
    text = (folder / "tape" / "network.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_what_was_recorded_is_given_over_tls_that_is_verified(tmp_path: Path):
    with replaying(tmp_path, PAGE, PLAIN) as link:
        assert ask(link, "https://example.test/page?b=2&a=1").body == b"recorded\n"
        assert ask(link, "https://example.test/page?a=1&b=2").body == b"recorded\n"
        assert ask(link, "http://example.test/plain").body == b"plain\n"
    served = [line for line in log_of(tmp_path) if line["event"] == "served"]
    assert served[0]["url"] == PAGE[0]
    assert {line["sha256"] for line in served[:2]} == {hashlib.sha256(PAGE[1]).hexdigest()}


def test_what_was_not_is_refused_by_name_and_written_down(tmp_path: Path):
    with replaying(tmp_path, PAGE) as link:
        began = time.monotonic()
        said = ask(link, "http://example.test/other", "POST", b"question")
        seconds = time.monotonic() - began
    assert (said.status, said.reason) == (403, "Not recorded")
    text = said.body.decode()
    assert "POST http://example.test/other (8 bytes, sha256 " in text
    assert "cassette: toy-1/cassette" in text
    assert "stillroom record toy-1" in text
    assert str(tmp_path) not in text
    assert seconds < 1
    refused = [line for line in log_of(tmp_path) if line["event"] == "refused"]
    assert refused[0]["request_sha256"] == hashlib.sha256(b"question").hexdigest()


def test_a_client_that_knows_its_proxy_is_answered_the_same(tmp_path: Path):
    with replaying(tmp_path, PAGE, PLAIN, FAR) as link:
        client = Carried(link.folder, "127.0.0.1", port=3128)
        client.request("GET", PLAIN[0])
        assert client.getresponse().read() == b"plain\n"
        client.close()
        for host, path, body in (
            ("example.test:443", "/page?a=1&b=2", b"recorded\n"),
            ("example.test:8443", "/far", b"another port\n"),
        ):
            assert tunnelled(link, host, path) == body


def tunnelled(link, place: str, path: str) -> bytes:
    sock = carried(link, 3128)
    sock.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
    said = b""
    while not said.endswith(b"\r\n\r\n"):
        said += sock.recv(1)
    assert said.startswith(b"HTTP/1.1 200 ")
    client = http.client.HTTPConnection("example.test")
    client.sock = trusting(link.folder).wrap_socket(sock, server_hostname="example.test")
    client.request("GET", path)
    body = client.getresponse().read()
    client.close()
    return body


def test_a_series_is_given_in_order_and_its_last_answer_stays(tmp_path: Path):
    url = "http://example.test/count"
    with replaying(tmp_path, (url, b"1"), (url, b"2"), (url, b"2"), (url, b"3")) as link:
        assert [ask(link, url).body for _ in range(6)] == [b"1", b"2", b"2", b"3", b"3", b"3"]
    with replaying(tmp_path / "other", (url, b"1"), (url, b"2")) as link:
        assert ask(link, url).body == b"1"


def test_the_head_of_what_is_known_is_known(tmp_path: Path):
    with replaying(tmp_path, PLAIN) as link:
        said = ask(link, PLAIN[0], "HEAD")
        assert (said.status, said.body, said.headers["Content-Length"]) == (200, b"", "6")


def test_many_requests_come_by_one_connection(tmp_path: Path):
    with replaying(tmp_path, PLAIN) as link:
        client = Carried(link.folder, "example.test")
        for _ in range(50):
            client.request("GET", "/plain")
            assert client.getresponse().read() == b"plain\n"
        client.close()


@pytest.mark.parametrize(
    ("port", "sent", "status"),
    [
        (80, b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (80, b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", b"400"),
        (80, b"GET / HTTP/1.1\r\nHost: example.test\r\nHost: other.test\r\n\r\n", b"400"),
        (80, b"GET / HTTP/1.1\r\nHost: ../../etc\r\n\r\n", b"400"),
        (80, b"GET ftp://example.test/ HTTP/1.1\r\nHost: example.test\r\n\r\n", b"400"),
        (80, b"\x16\x03\x01 what is this\r\n\r\n", b"400"),
        (80, b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", b"400"),
        (80, b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", b"400"),
        (
            80,
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"403",
        ),
        (3128, b"CONNECT /etc/passwd HTTP/1.1\r\nHost: h\r\n\r\n", b"400"),
        (3128, b"CONNECT example.test:99999 HTTP/1.1\r\nHost: h\r\n\r\n", b"400"),
        (3128, b"GET http://user:word@example.test/ HTTP/1.1\r\nHost: h\r\n\r\n", b"400"),
    ],
)
def test_what_is_no_request_is_told_so(tmp_path: Path, port: int, sent: bytes, status: bytes):
    with replaying(tmp_path, PLAIN) as link:
        with carried(link, port) as sock:
            sock.sendall(sent)
            assert sock.recv(4096).split(b" ")[1] == status
        assert ask(link, PLAIN[0]).body == b"plain\n"
        link.check()
    assert any(line["event"] == "refused" for line in log_of(tmp_path))


@given(
    st.lists(st.tuples(st.text("aBc-_09", min_size=1), st.text(st.characters(max_codepoint=300)))),
    st.integers(200, 599),
    st.sampled_from(["GET", "HEAD"]),
    st.binary(max_size=50),
)
def test_whatever_was_recorded_can_be_said(headers, status, method, body):
    response = Response(status, kept(tuple(headers), method), body)
    outcome = Outcome("served", response)
    ours, theirs = socket.socketpair()
    exchange = Exchange(lambda _: outcome, no_tls, Silent(), Held())
    with ours, theirs:
        theirs.sendall(f"{method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        exchange.direct(ours, "http")
        ours.shutdown(socket.SHUT_WR)
        said = http.client.HTTPResponse(theirs, method=method)
        said.begin()
        assert said.status == status
        assert said.read() == (b"" if method == "HEAD" or status in (204, 304) else body)


@given(st.binary(max_size=300), st.sampled_from(["http", "proxy"]))
def test_whatever_a_box_says_is_answered_or_refused(data: bytes, way: str):
    ours, theirs = socket.socketpair()
    exchange = Exchange(lambda _: Outcome("served", Response(200)), no_tls, Silent(), Held())
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        if way == "proxy":
            exchange.proxy(ours)
        else:
            exchange.direct(ours, "http")
        ours.shutdown(socket.SHUT_WR)
        said = theirs.recv(65536)
    assert not said or said.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 200 "))


def no_tls(sock: socket.socket, host: str | None) -> ssl.SSLSocket:
    raise ConnectionError(host)


class Silent:
    def answering(self, *_: object) -> None: ...

    def answered(self, *_: object) -> None: ...

    def complained(self, why: str) -> None: ...


def test_a_body_larger_than_is_taken_is_refused_and_not_held(tmp_path: Path):
    with replaying(tmp_path, PLAIN) as link:
        said = ask(link, "http://example.test/up", "POST", b"x" * (33 << 20))
        assert said.status == 413
        assert ask(link, PLAIN[0]).status == 200


def test_more_connections_than_there_are_wait_and_do_no_harm(tmp_path: Path):
    with replaying(tmp_path, PLAIN) as link:
        idle = [carried(link, 80) for _ in range(120)]
        assert ask(link, PLAIN[0]).body == b"plain\n"
        for sock in idle:
            sock.close()
        link.check()


def test_a_name_is_asked_for_as_wire_carries_it(tmp_path: Path):
    question = b"\x12\x34\x01\x00\x00\x01\0\0\0\0\0\0\x07example\x04test\0\0\x01\0\x01"
    with replaying(tmp_path) as link, carried(link, 53) as sock:
        sock.sendall(len(question).to_bytes(2, "big") + question)
        size = int.from_bytes(sock.recv(2), "big")
        assert sock.recv(size).endswith(socket.inet_aton("127.0.0.1"))
    assert log_of(tmp_path)[0]["name"] == "example.test"


def test_in_replay_it_has_no_network_at_all(tmp_path: Path):
    with replaying(tmp_path, PLAIN) as link:
        if not link.apart:
            pytest.skip("this kernel gives no empty network")
        mine, its = (
            Path(f"/proc/{pid}/ns/net").stat().st_ino for pid in ("self", link.process.pid)
        )
        assert mine != its
        assert Path(f"/proc/{link.process.pid}/net/dev").read_text().count(":") == 1


def test_its_end_is_a_fault_and_no_answer(tmp_path: Path):
    with replaying(tmp_path, PLAIN) as link:
        link.check()
        link.process.kill()
        link.process.wait()
        with pytest.raises(NetworkFault, match="has ended"):
            link.check()


def test_one_that_cannot_start_is_a_fault_that_says_why(tmp_path: Path):
    settings = Tape(tmp_path / "tape").with_answers(PLAIN)
    broken = replace(settings, log=str(tmp_path / "no" / "log"))
    with (
        pytest.raises(NetworkFault, match="No such file"),
        connected(Store(tmp_path / "store"), NO_WIRE, broken),
    ):
        pass


def test_nothing_of_it_stays(tmp_path: Path):
    with replaying(tmp_path, PLAIN) as link:
        pid, folder = link.process.pid, link.scratch
    assert not folder.exists()
    assert not Path(f"/proc/{pid}").exists()
    assert not list((tmp_path / "store" / "tmp").iterdir())


OWNER = """
import sys, time
from pathlib import Path
from tests.support.webs import replaying
with replaying(Path(sys.argv[1])) as link:
    print(link.process.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_it_goes_with_its_owner_however_that_ends(tmp_path: Path, number: int):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )
    assert owner.stdout
    pid = int(owner.stdout.readline())
    owner.stdout.close()
    owner.send_signal(number)
    owner.wait()
    assert eventually(lambda: ended(pid))
    Store(tmp_path / "store").reap()
    assert not list((tmp_path / "store" / "tmp").iterdir())


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return True


def test_what_a_box_has_mounted_lies_where_its_path_tells_nothing(tmp_path: Path):
    with replaying(tmp_path) as link:
        assert MEMORY in link.folder.parents
        assert link.folder.parent.stat().st_mode & 0o777 == 0o700
    assert not link.folder.parent.exists()


def test_without_memory_that_has_files_it_lies_in_the_store(tmp_path: Path):
    with neutral(tmp_path / "scratch", memory=tmp_path) as place:
        assert place == tmp_path / "scratch"


def test_what_answers_removes_it_when_its_owner_has_not(tmp_path: Path):
    with replaying(tmp_path) as link:
        assert link.process.stdin
        link.process.stdin.close()
        assert link.process.wait(20) == 0
        assert not link.folder.parent.exists()
