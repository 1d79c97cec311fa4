"""Downloads by hash, from a real server on loopback."""

import hashlib
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from sandbox.errors import ImageFault, NetworkFault
from sandbox.runtime.fetch import download, fetch, fetch_json, pypi_url
from sandbox.runtime.store import Store

DATA = bytes(range(256)) * 500
SHA256 = hashlib.sha256(DATA).hexdigest()
LISTING = b'{"files": [{"filename": "a-1.tar.gz", "url": "http://x/a-1.tar.gz"}]}'


class Handler(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        times = self.asked.count(self.path)
        body = LISTING if self.path.startswith("/simple/") else DATA
        body = b"[]" if self.path == "/simple/odd/" else body
        if self.path in ("/gone", "/simple/gone/") or (self.path == "/broken"):
            self.send_error(503 if self.path == "/broken" else 404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = self.path == "/always-cut" or (self.path == "/cut-once" and times == 1)
        self.wfile.write(body[: len(body) // 2] if cut else body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    Handler.asked.clear()
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=lambda: made.serve_forever(poll_interval=0.01))
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def get(store: Store, *urls: str, sha256: str = SHA256) -> Path:
    return fetch(store, urls, sha256=sha256, name="a.deb", fault=ImageFault)


def test_the_pinned_file_is_stored_and_not_fetched_again(server: str, store: Store):
    assert get(store, f"{server}/a").read_bytes() == DATA
    assert get(store, f"{server}/a").read_bytes() == DATA
    assert Handler.asked == ["/a"]
    assert list((store.root / "tmp").iterdir()) == []


def test_another_file_is_refused_by_name_and_not_kept(server: str, store: Store):
    with pytest.raises(ImageFault, match=r"refused: a\.deb from http") as caught:
        get(store, f"{server}/a", sha256="0" * 64)
    assert not caught.value.retry
    assert SHA256 in str(caught.value)
    assert not store.blob("0" * 64).exists()


def test_another_file_is_refused_at_once_also_as_a_network_fault(server: str, store: Store):
    urls = [f"{server}/a", f"{server}/b"]
    with pytest.raises(NetworkFault, match=r"^refused: a\.deb from http") as caught:
        fetch(store, urls, sha256="0" * 64, name="a.deb", fault=NetworkFault)
    assert not caught.value.retry
    assert Handler.asked == ["/a"]


def test_a_file_that_is_nowhere_is_a_network_fault_that_names_each_address(server, store):
    with pytest.raises(NetworkFault, match=r"cannot fetch a\.deb: .*/gone: HTTP 404"):
        get(store, f"{server}/gone")


def test_the_next_address_is_asked_when_the_first_has_nothing(server: str, store: Store):
    assert get(store, f"{server}/gone", f"{server}/broken", f"{server}/a").read_bytes() == DATA
    assert Handler.asked == ["/gone", "/broken", "/a"]


def test_without_an_address_there_is_a_fault(store: Store):
    with pytest.raises(NetworkFault, match="no address is known"):
        get(store)


def test_a_connection_cut_half_way_is_tried_again(server: str, tmp_path: Path):
    pauses: list[float] = []
    assert download(f"{server}/cut-once", tmp_path / "f", pause=pauses.append) == SHA256
    assert (tmp_path / "f").read_bytes() == DATA
    assert pauses == [0.5]


def test_a_connection_that_is_always_cut_is_a_network_fault(server: str, tmp_path: Path):
    pauses: list[float] = []
    with pytest.raises(NetworkFault, match="always-cut"):
        download(f"{server}/always-cut", tmp_path / "f", pause=pauses.append)
    assert pauses == [0.5, 1.0]
    assert Handler.asked == ["/always-cut"] * 3


def test_a_server_s_no_is_not_tried_again(server: str, tmp_path: Path):
    with pytest.raises(NetworkFault) as gone:
        download(f"{server}/gone", tmp_path / "f", pause=lambda _: None)
    with pytest.raises(NetworkFault) as broken:
        download(f"{server}/broken", tmp_path / "f", pause=lambda _: None)
    assert (gone.value.retry, broken.value.retry) == (False, True)
    assert Handler.asked == ["/gone", "/broken"]


def test_nobody_at_the_other_end_is_a_network_fault(tmp_path: Path):
    with pytest.raises(NetworkFault):
        download("http://127.0.0.1:1/a", tmp_path / "f", pause=lambda _: None)


def test_a_stored_file_that_was_changed_is_refused_by_name(server: str, store: Store):
    get(store, f"{server}/a").write_bytes(b"tampered")
    with pytest.raises(ImageFault, match=r"refused: a\.deb is not what was pinned") as caught:
        get(store, f"{server}/a")
    assert "rm " in caught.value.hint


def test_two_that_want_the_same_file_fetch_it_once(server: str, store: Store):
    threads = [threading.Thread(target=get, args=(store, f"{server}/a")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Handler.asked == ["/a"]


def test_the_index_tells_where_a_file_is(server: str):
    assert pypi_url("a", "a-1.tar.gz", index=f"{server}/simple") == "http://x/a-1.tar.gz"
    with pytest.raises(NetworkFault, match="does not list b"):
        pypi_url("a", "b", index=f"{server}/simple")
    with pytest.raises(NetworkFault, match="404"):
        pypi_url("gone", "b", index=f"{server}/simple")
    for odd in ("nonsense/a", "simple/odd"):
        with pytest.raises(NetworkFault):
            pypi_url(odd.split("/")[1], "b", index=f"{server}/{odd.split('/')[0]}")


def test_a_proxy_is_that_of_now_and_not_that_of_the_first_download(
    store: Store, server: str, monkeypatch: pytest.MonkeyPatch
):
    urllib.request.install_opener(urllib.request.build_opener())
    assert fetch_json(f"{server}/simple/a/", "application/json")["files"]
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with pytest.raises(NetworkFault, match="refused"):
        download(f"{server}/second", store.root / "file", pause=lambda _: None)
    with pytest.raises(NetworkFault, match="refused"):
        fetch_json(f"{server}/simple/a/", "application/json")
