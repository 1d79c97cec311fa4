"""An engine that does not answer: nothing waits for it longer than it says."""

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer

import pytest

from sandbox.errors import RuntimeFault
from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.docker.container import Container
from sandbox.runtime.docker.ending import Ending
from sandbox.runtime.docker.engine import Engine, late
from sandbox.runtime.docker.images import Loaded
from sandbox.runtime.store import Store

BRIEF_SECONDS = 0.1
BOUND_SECONDS = 20 * BRIEF_SECONDS


class _Asked(BaseHTTPRequestHandler):
    """Tells its version, and of everything else nothing as long as the test lasts."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if not self.path.endswith("/version"):
            self._nothing()
            return
        body = b'{"ApiVersion": "1.41", "Components": []}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _nothing(self) -> None:
        over = getattr(self.server, "over")  # noqa: B009 - the server's class is not known here
        over.wait()
        self.close_connection = True

    def do_POST(self) -> None:
        self._nothing()

    def do_DELETE(self) -> None:
        self._nothing()

    def address_string(self) -> str:
        return ""

    def log_message(self, *_: object) -> None:
        """It is no affair of the test's output."""


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    over: threading.Event


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    with _Server(str(tmp_path / "engine"), _Asked) as server:
        server.over = threading.Event()
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"unix://{tmp_path}/engine"
        server.over.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def engine(host: str) -> Iterator[Engine]:
    with contextlib.closing(Engine(host, brief_seconds=BRIEF_SECONDS)) as made:
        yield made


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < BOUND_SECONDS


def test_the_removal_of_a_container_gives_up_in_time(engine: Engine):
    with bounded(), pytest.raises(RuntimeFault, match="does not remove container abc"):
        Container(engine, "abc").remove()


def test_a_container_is_not_killed_for_ever(engine: Engine):
    with bounded(), pytest.raises(RuntimeFault) as told:
        Container(engine, "abc").kill()
    assert late(told.value)


def test_images_that_are_not_removed_in_time_are_told_of(engine: Engine, tmp_path: Path):
    loaded = Loaded(engine, Store(tmp_path), lambda: "id")
    with bounded():
        assert loaded._remove(["a:1", "b:2"]) == ([], ["a:1", "b:2"])


def test_leftovers_are_not_looked_for_for_ever(host: str, tmp_path: Path):
    runtime = DockerRuntime(Store(tmp_path), host=host, brief_seconds=BRIEF_SECONDS)
    with contextlib.closing(runtime), bounded(), pytest.raises(RuntimeFault, match="list boxes"):
        runtime.reap()


def test_of_many_containers_the_first_that_does_not_end_uses_up_the_time(engine: Engine):
    ending = Ending(engine)
    names = [f"box-{number}" for number in range(30)]
    with bounded():
        assert not any(ending.of(name, Container(engine, name).remove) for name in names)
    with pytest.warns(RuntimeWarning, match=r"container box-29; image a:1"):
        ending.tell(["a:1"])


def test_without_leftovers_nothing_is_told(engine: Engine):
    ending = Ending(engine)
    assert ending.of("box", lambda: None)
    ending.tell([])
