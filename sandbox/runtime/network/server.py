"""Takes the connections that `wire` carries out of a box, and has each one answered."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import ssl
import struct
import threading
import traceback
from pathlib import Path
from typing import Any

from sandbox.runtime.network import bounds, dns
from sandbox.runtime.network.answers import Answers, Outcome
from sandbox.runtime.network.authority import NOBODY, Authority, is_host
from sandbox.runtime.network.bounds import Held
from sandbox.runtime.network.exchange import Exchange
from sandbox.runtime.network.log import NetworkLog
from sandbox.runtime.network.message import Request

_GREETING = b"wire 1 "
_GREETING_BYTES = 16


class Server:
    """One thread takes connections, one more serves each of them. All are daemons: see process.py."""

    def __init__(
        self,
        listener: socket.socket,
        answers: Answers,
        authority: Authority,
        log: NetworkLog,
        *,
        spool: Path | None = None,
    ) -> None:
        """`spool`: where bodies lie that are removed once they are sent."""
        self._listener = listener
        self._answers = answers
        self._authority = authority
        self._log = log
        self._spool = spool
        self._room = threading.BoundedSemaphore(bounds.CONNECTIONS)
        self._exchange = Exchange(answers.to, self._as_host, self, Held())
        self._anyone = authority.context(NOBODY)
        self._anyone.sni_callback = self._named

    def serve(self) -> None:
        """Until the listener is closed."""
        while True:
            self._room.acquire()
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            sock.settimeout(bounds.IDLE_SECONDS)
            self._speak(sock)
        except (OSError, EOFError) as e:  # TLS errors are OSErrors
            if not isinstance(e, TimeoutError | ConnectionError | EOFError):
                self._log.add("broken", why=str(e))
        except Exception:  # noqa: BLE001 - one connection, whatever it was told, is not the others
            self._log.add("broken", why=traceback.format_exc())
        finally:
            with contextlib.suppress(OSError):
                sock.close()
            self._room.release()

    def _speak(self, sock: socket.socket) -> None:
        match _port(sock):
            case 53:
                self._names(sock)
            case 80:
                self._exchange.direct(sock, "http")
            case 443:
                self._exchange.direct(sock, "https")
            case 3128:
                self._exchange.proxy(sock)
            case _:
                pass  # `wire` asks whether we are there

    def _names(self, sock: socket.socket) -> None:
        """As DNS over TCP: each message behind its length."""
        for _ in range(bounds.REQUESTS):
            (size,) = struct.unpack("!H", _exactly(sock, 2))
            found = dns.answer(_exactly(sock, size))
            self._log.add("name", name=found.name, type=found.kind, said=found.said)
            if not found.message:
                return
            sock.sendall(struct.pack("!H", len(found.message)) + found.message)

    def _as_host(self, sock: socket.socket, host: str | None) -> ssl.SSLSocket:
        context = self._anyone if host is None else self._authority.context(host)
        return context.wrap_socket(sock, server_side=True, suppress_ragged_eofs=True)

    def _named(self, tls: Any, name: str | None, context: ssl.SSLContext) -> int | None:
        del context
        if name is None:
            return None
        if not is_host(name):
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        tls.context = self._authority.context(name)
        return None

    def complained(self, why: str) -> None:
        self._log.add("refused", why=why)

    def answering(self, request: Request, outcome: Outcome, size: int) -> None:
        response = outcome.response
        digest = hashlib.sha256(request.body).hexdigest() if request.body else ""
        self._log.add(
            outcome.event,
            method=request.method,
            url=request.url,
            status=response.status,
            bytes=size,
            source=outcome.source,
            request_bytes=len(request.body),
            request_sha256=digest,
            sha256=_digest(response.body),
        )

    def answered(self, outcome: Outcome) -> None:
        body = outcome.response.body
        if self._spool and isinstance(body, Path) and body.parent == self._spool:
            body.unlink(missing_ok=True)


def listening(folder: Path, name: str) -> socket.socket:
    """A socket in a folder, whatever the length of its path: the kernel takes 107 bytes."""
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.bind(f"/proc/self/fd/{fd}/{name}")
        (folder / name).chmod(0o666)  # the box's users are others than ours
        made.listen(128)
    finally:
        os.close(fd)
    return made


def _port(sock: socket.socket) -> int:
    """From the line that `wire` begins with; 0 when it says nothing."""
    line = b""
    while not line.endswith(b"\n") and len(line) < _GREETING_BYTES:
        if not (byte := sock.recv(1)):
            return 0
        line += byte
    number = line.removeprefix(_GREETING).strip()
    return int(number) if number.isdigit() else 0


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (block := sock.recv(size - len(data))):
            raise EOFError
        data += block
    return data


def _digest(body: bytes | Path) -> str:
    """A file of a cassette is named by it."""
    return hashlib.sha256(body).hexdigest() if isinstance(body, bytes) else body.name
