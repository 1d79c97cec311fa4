"""What the real network says is written down, once, and no more of it than an answer."""

import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from sandbox.runtime.network.answers import NoAnswer
from sandbox.runtime.network.attach import connected
from sandbox.runtime.network.cassette import read_index
from sandbox.runtime.network.merge import merged
from sandbox.runtime.network.message import Request
from sandbox.runtime.network.settings import Mode, Settings
from sandbox.runtime.network.upstream import Upstream, public_address
from sandbox.runtime.store import Store
from tests.support.waiting import eventually
from tests.support.webs import NO_WIRE, Web, ask, serving


def asking(folder: Path, web: Web, mode: Mode = "record", **more: object):
    settings = Settings(
        mode=mode,
        log=str(folder / "network.jsonl"),
        instead={"up.test:443": web.place, "up.test:80": web.place},
        ca_file=web.ca_file,
        **more,  # type: ignore[arg-type]
    )
    return connected(Store(folder / "store"), NO_WIRE, settings)


class Counting:
    """Says how often it was asked, and remembers by whom."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self._lock = threading.Lock()

    def __call__(self, asked: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes]:
        with self._lock:
            self.asked.append(dict(asked.headers))
            body = b"%d" % len(self.asked)
        size = int(asked.headers.get("Content-Length") or 0)
        if size:
            body = asked.rfile.read(size)[::-1]
        if asked.path == "/moved":
            return 302, {"Location": "https://up.test/there", "Connection": "keep-alive"}, b""
        return 200, {"X-Kept": "yes", "Vary": "Accept-Encoding, Accept"}, body


def test_answers_are_written_down_in_their_order_and_without_who_asked(tmp_path: Path):
    counting = Counting()
    with serving(counting, tmp_path, "up.test") as web, asking(tmp_path, web) as link:
        assert not link.apart
        assert ask(link, "https://up.test/x", authorization="secret").body == b"1"
        assert ask(link, "https://up.test/x", accept_encoding="br").body == b"2"
        assert ask(link, "https://up.test/p", "POST", b"abc").body == b"cba"
        assert ask(link, "https://up.test/moved").status == 302
        entries = read_index(link.scratch / "index.jsonl")
        text = (link.scratch / "index.jsonl").read_text()
        bodies = {p.name: p.read_bytes() for p in (link.scratch / "blobs").iterdir()}
    assert [(e.method, e.url, bodies[e.sha256]) for e in entries] == [
        ("GET", "https://up.test/x", b"1"),
        ("GET", "https://up.test/x", b"2"),
        ("POST", "https://up.test/p", b"cba"),
        ("GET", "https://up.test/moved", b""),
    ]
    assert entries[0].accept == ""
    assert dict(entries[0].headers)["X-Kept"] == "yes"
    assert not {"Connection", "Content-Length"} & {n for e in entries for n, _ in e.headers}
    assert "secret" not in text
    assert counting.asked[0]["authorization"] == "secret", "but it is passed on"
    assert {asked["Accept-Encoding"] for asked in counting.asked} == {"identity"}
    assert counting.asked[0]["Host"] == "up.test"


def test_what_gives_no_answer_is_refused_and_not_written_down(tmp_path: Path):
    with serving(Counting(), tmp_path, "other.test") as web, asking(tmp_path, web) as link:
        said = ask(link, "https://up.test/x")
        assert said.status == 403
        assert "cannot be asked of the real network" in said.body.decode()
        assert not (link.scratch / "index.jsonl").exists()


def test_open_passes_on_and_keeps_nothing(tmp_path: Path):
    with serving(Counting(), tmp_path, "up.test") as web, asking(tmp_path, web, "open") as link:
        assert ask(link, "https://up.test/x").body == b"1"
        assert ask(link, "https://up.test/x").body == b"2"
        there = {"blobs", "more", "said"}
        assert eventually(lambda: {p.name for p in link.scratch.iterdir()} == there)
    assert '"event": "passed"' in (tmp_path / "network.jsonl").read_text()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "10.0.0.1",
        "169.254.169.254",
        "192.168.1.1",
        "::1",
        "fe80::1",
        "::ffff:127.0.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "100.64.0.1",
    ],
)
def test_a_box_does_not_reach_its_hosts_own_network(host: str):
    with pytest.raises(OSError, match="no public address"):
        public_address(host, 80)


def test_not_even_by_asking_for_it(tmp_path: Path):
    with serving(Counting(), tmp_path) as web:
        upstream = Upstream(tmp_path)
        with pytest.raises(NoAnswer, match="no public address"):
            upstream.answer(Request("GET", f"http://{web.place}/"))
        with pytest.raises(NoAnswer, match="no public address"):
            upstream.answer(Request("GET", f"http://localhost:{web.port}/"))


def test_an_answer_that_breaks_off_is_none(tmp_path: Path):
    def broken(asked: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes]:
        asked.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        raise ConnectionAbortedError

    with serving(broken, tmp_path, "up.test") as web, asking(tmp_path, web) as link:
        assert ask(link, "https://up.test/x").status == 403
        assert not (link.scratch / "index.jsonl").exists()


def test_many_at_once_are_each_written_whole(tmp_path: Path):
    with serving(Counting(), tmp_path, "up.test") as web, asking(tmp_path, web) as link:
        threads = [
            threading.Thread(target=ask, args=(link, f"https://up.test/{n}")) for n in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        entries = read_index(link.scratch / "index.jsonl")
    assert len(merged([], entries)) == 20
