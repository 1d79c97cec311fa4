"""Images in an engine: what becomes of them when it does not answer."""

import socket
import threading
import time
from pathlib import Path

import pytest

from sandbox.runtime.docker import engine
from sandbox.runtime.docker.engine import Engine
from sandbox.runtime.docker.images import Loaded
from sandbox.runtime.store import Store

VERSION = b'{"ApiVersion": "1.41", "Components": []}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(VERSION), VERSION)


def test_an_engine_that_cannot_remove_an_image_now_holds_up_no_run(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(engine, "HASTY_SECONDS", 0.2)
    asked: list[bytes] = []

    def answer_but_once(listener: socket.socket) -> None:
        """Which it is, to those who wish to know; to a removal it says nothing."""
        held = []
        while not asked or not asked[-1].startswith(b"DELETE"):
            sock, _ = listener.accept()
            held.append(sock)
            while (said := sock.recv(1 << 16)) and not said.startswith(b"DELETE"):
                asked.append(said)
                sock.sendall(ANSWER)
            asked.append(said)
        for sock in held:
            while sock.recv(1 << 16):
                pass
            sock.close()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "sock"))
        listener.listen()
        answering = threading.Thread(target=answer_but_once, args=(listener,))
        answering.start()
        there = Engine(f"unix://{tmp_path}/sock")
        loaded = Loaded(there, store, lambda: "this")
        loaded._uses.begin("stillroom:one")
        began = time.monotonic()
        loaded.close()
        assert time.monotonic() - began < 10
        there.close()
        answering.join(20)
    assert asked[-1].startswith(b"DELETE /v1.41/images/stillroom:one")
