"""A network for tests: cassettes made by hand, ways to ask, and servers of this machine's loopback."""

import hashlib
import http.client
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import trustme

from sandbox.runtime.network.asked import key_of
from sandbox.runtime.network.attach import Link, connected
from sandbox.runtime.network.entry import Entry
from sandbox.runtime.network.message import Request
from sandbox.runtime.network.settings import Settings
from sandbox.runtime.store import Store

REMEDY = "to record it: stillroom record toy-1"
NO_WIRE = Path("/nonexistent")


def entry(url: str, body: bytes = b"", *, method: str = "GET", **more: object) -> Entry:
    """As a recording of it would be."""
    asked = Request(method, url, more.pop("asked_headers", ()), more.pop("asked", b""))  # type: ignore[arg-type]
    given = {"status": 200, "headers": (("content-type", "text/plain"),), **more}
    return Entry(
        key=key_of(asked),
        method=method,
        url=url,
        sha256=hashlib.sha256(body).hexdigest(),
        size=len(body),
        **given,  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class Tape:
    """Entries and their bodies."""

    folder: Path

    def with_answers(self, *answers: tuple[str, bytes]) -> Settings:
        self.folder.mkdir(parents=True, exist_ok=True)
        for _, body in answers:
            (self.folder / hashlib.sha256(body).hexdigest()).write_bytes(body)
        return Settings(
            mode="replay",
            log=str(self.folder / "network.jsonl"),
            cassette="toy-1/cassette",
            remedy=REMEDY,
            entries=tuple(entry(url, body) for url, body in answers),
            bodies={p.name: str(p) for p in self.folder.iterdir() if len(p.name) == 64},
        )


@contextmanager
def replaying(folder: Path, *answers: tuple[str, bytes], wire: Path = NO_WIRE) -> Iterator[Link]:
    """An answerer of these; its log is folder/network.jsonl."""
    settings = Tape(folder / "tape").with_answers(*answers)
    with connected(Store(folder / "store"), wire, settings) as link:
        yield link


def carried(link: Link, port: int) -> socket.socket:
    return carried_at(link.folder, port)


def carried_at(folder: Path, port: int) -> socket.socket:
    """A connection as `wire` makes it for one that was made to `port` in the box."""
    fd = os.open(folder, os.O_PATH)
    try:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(20)
        sock.connect(f"/proc/self/fd/{fd}/wire.sock")
    finally:
        os.close(fd)
    sock.sendall(b"wire 1 %d\n" % port)
    return sock


def trusting(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "certificates.pem"))


class Carried(http.client.HTTPConnection):
    """A client of the standard library's, on a carried connection."""

    def __init__(self, folder: Path, host: str, *, tls: bool = False, port: int = 0) -> None:
        super().__init__(host)
        self._folder, self._tls, self._to = folder, tls, port or (443 if tls else 80)

    def connect(self) -> None:
        sock = carried_at(self._folder, self._to)
        self.sock = (
            trusting(self._folder).wrap_socket(sock, server_hostname=self.host)
            if self._tls
            else sock
        )


@dataclass(frozen=True)
class Said:
    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


def ask(
    link: Link, url: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> Said:
    return ask_at(link.folder, url, method, body, **headers)


def ask_at(
    folder: Path, url: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> Said:
    """Straight, as a client that knows no proxy."""
    scheme, rest = url.split("://")
    host, slash, path = rest.partition("/")
    client = Carried(folder, host, tls=scheme == "https")
    try:
        client.request(
            method, slash + path, body, {k.replace("_", "-"): v for k, v in headers.items()}
        )
        response = client.getresponse()
        return Said(response.status, response.reason, dict(response.headers), response.read())
    finally:
        client.close()


Handler = Callable[[BaseHTTPRequestHandler], tuple[int, Mapping[str, str], bytes]]


@dataclass(frozen=True)
class Web:
    """A server of this machine's own."""

    port: int
    ca_file: str

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"


class Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Connections break here on purpose."""


@contextmanager
def serving(answer: Handler, folder: Path, *names: str) -> Iterator[Web]:
    """HTTP on the loopback; HTTPS when it is told its `names`."""

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, body = answer(self)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_POST = do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    server = Quiet(("127.0.0.1", 0), Answering)
    ca = trustme.CA()
    ca_file = folder / "upstream.pem"
    if names:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert(*names).configure_cert(context)
        ca.cert_pem.write_to_path(str(ca_file))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Web(server.server_address[1], str(ca_file) if names else "")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def git_backend(projects: Path) -> Handler:
    """Git's own server, for the repositories of a folder."""

    def answer(asked: BaseHTTPRequestHandler) -> tuple[int, Mapping[str, str], bytes]:
        path, _, query = asked.path.partition("?")
        size = int(asked.headers.get("Content-Length") or 0)
        body = asked.rfile.read(size) if size else _chunked(asked)
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=True,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(projects),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": asked.headers.get("Git-Protocol", ""),
                "GIT_CONFIG_NOSYSTEM": "1",
                "HOME": "/nonexistent",
                "REQUEST_METHOD": asked.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": asked.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": asked.headers.get("Content-Encoding", ""),
            },
        ).stdout
        head, _, answered = done.partition(b"\r\n\r\n")
        lines = (line.partition(": ") for line in head.decode().split("\r\n"))
        headers = {name: value for name, _, value in lines}
        status = int(headers.pop("Status", "200").split()[0])
        return status, headers, answered

    return answer


def _chunked(asked: BaseHTTPRequestHandler) -> bytes:
    body = b""
    if asked.headers.get("Transfer-Encoding", "").lower() == "chunked":
        while size := int(asked.rfile.readline(), 16):
            body += asked.rfile.read(size)
            asked.rfile.readline()
        asked.rfile.readline()
    return body
