"""What is particular to Docker: engines, images, labels, leftovers."""

import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from sandbox.errors import ImageFault, RuntimeFault
from sandbox.model.task import Digest
from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.docker.address import DEFAULT_HOST
from sandbox.runtime.docker.images import tag_of
from sandbox.runtime.docker.profile import profile
from sandbox.runtime.lease import Lease
from sandbox.runtime.spec import BoxSpec, Image, ImageLayer
from sandbox.runtime.store import Store
from tests.contract.conftest import LIMITS
from tests.support.tars import Entry, make_tar
from tests.support.tinyimage import config_of

pytestmark = [pytest.mark.box, pytest.mark.docker]


@pytest.fixture(scope="module")
def runtime(docker_runtime: DockerRuntime) -> DockerRuntime:
    return docker_runtime


@pytest.fixture
def engine() -> Iterator[docker.APIClient]:
    """The engine as somebody else sees it."""
    client = docker.APIClient(os.environ.get("DOCKER_HOST") or DEFAULT_HOST, version="auto")
    yield client
    client.close()


def small_image(store: Store, content: bytes) -> Image:
    """An image of one file; it can be loaded, but nothing runs in it."""
    tar = store.root / "layers" / "small.tar"
    tar.parent.mkdir(parents=True, exist_ok=True)
    tar.write_bytes(make_tar([Entry(name="file", content=content)]))
    return config_of(store, "Small Image", ImageLayer(diff_id=Digest(""), tar=tar, folder=tar))


@pytest.fixture
def small(tmp_path: Path, engine: docker.APIClient) -> Iterator[Image]:
    made = small_image(Store(tmp_path), os.urandom(16))
    yield made
    if engine.images(name=tag_of(made)):
        engine.remove_image(tag_of(made), force=True)


def test_without_an_engine_the_fault_says_what_to_do(tmp_path: Path, spec: BoxSpec):
    runtime = DockerRuntime(Store(tmp_path), host=f"unix://{tmp_path}/no.sock")
    with pytest.raises(RuntimeFault, match="no container engine answers") as raised:
        runtime.create(spec)
    assert "DOCKER_HOST" in raised.value.hint
    assert not raised.value.retry
    runtime.close()


@pytest.mark.parametrize("host", ["ssh://me@there", "npipe:////./pipe/docker", "tcp://", "here"])
def test_an_address_it_cannot_use_is_refused_with_a_way_out(
    tmp_path: Path, spec: BoxSpec, host: str
):
    with pytest.raises(RuntimeFault, match="DOCKER_HOST") as raised:
        DockerRuntime(Store(tmp_path), host=host).create(spec)
    assert "ssh -NL" in raised.value.hint


def test_an_engine_can_be_reached_over_tcp(store: Store, spec: BoxSpec):
    with forwarded() as port:
        runtime = DockerRuntime(store, host=f"tcp://127.0.0.1:{port}")
        with runtime.create(spec) as box:
            assert box.exec(["cat"], seconds=30, input=b"typed").stdout == b"typed"
            pty = box.open_pty(["echo", "shown"])
            assert os.read(pty.fileno(), 100) == b"shown\r\n"
            pty.close()
        runtime.close()


def test_the_engine_calls_the_image_by_our_digest(
    runtime: DockerRuntime, image: Image, engine: docker.APIClient
):
    found = engine.inspect_image(image.digest)  # type: ignore[no-untyped-call]
    assert found["Id"] == image.digest
    assert found["RootFS"]["Layers"] == [layer.diff_id for layer in image.layers]
    assert found["RepoTags"] == [tag_of(image)]


def test_a_layer_that_was_changed_is_refused(tmp_path: Path, small: Image):
    small.layers[0].tar.write_bytes(make_tar([Entry(name="file", content=b"something else")]))
    runtime = DockerRuntime(Store(tmp_path))
    with pytest.raises(ImageFault, match="does not have"):
        runtime.create(BoxSpec(image=small, limits=LIMITS))
    runtime.close()


def test_a_config_that_was_changed_is_refused(tmp_path: Path, small: Image):
    small.config.write_bytes(small.config.read_bytes() + b" ")
    runtime = DockerRuntime(Store(tmp_path))
    with pytest.raises(ImageFault, match="does not have"):
        runtime.create(BoxSpec(image=small, limits=LIMITS))
    runtime.close()


def test_runs_that_start_together_load_the_image_once(
    tmp_path: Path, small: Image, engine: docker.APIClient
):
    runtimes = [DockerRuntime(Store(tmp_path)) for _ in range(4)]

    def start(runtime: DockerRuntime) -> str:
        with pytest.raises(RuntimeFault, match="start the box"):  # there is nothing to run in it
            runtime.create(BoxSpec(image=small, limits=LIMITS))
        runtime.close()
        return str(engine.inspect_image(small.digest)["Id"])  # type: ignore[no-untyped-call]

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(start, runtimes)) == {small.digest}


def test_a_box_that_cannot_start_leaves_no_container(
    tmp_path: Path, small: Image, engine: docker.APIClient
):
    runtime = DockerRuntime(Store(tmp_path))
    with pytest.raises(RuntimeFault):
        runtime.create(BoxSpec(image=small, limits=LIMITS, labels={"test": small.digest}))
    assert not engine.containers(all=True, filters={"label": f"test={small.digest}"})
    runtime.close()


def test_a_container_is_what_was_asked_for(
    runtime: DockerRuntime, spec: BoxSpec, engine: docker.APIClient
):
    with runtime.create(replace(spec, labels={"task": "click-841"})) as box:
        seen = engine.inspect_container(box.id)
    config, host = seen["Config"], seen["HostConfig"]
    assert config["Labels"]["task"] == "click-841"
    assert config["Labels"]["stillroom.owner"].endswith(".lease")
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges", f"seccomp={profile()}"]
    assert host["Memory"] == host["MemorySwap"] == LIMITS.memory_mib << 20
    assert host["PidsLimit"] == LIMITS.pids
    assert host["NanoCpus"] == 2_000_000_000
    assert not seen["Mounts"]
    assert not host["Binds"]


def test_a_container_that_was_never_started_is_reaped(
    runtime: DockerRuntime, image: Image, store: Store, engine: docker.APIClient
):
    store_id = (store.root / "docker" / "id").read_text()
    labels = {"stillroom.owner": "dead.lease", "stillroom.store": store_id}
    made = engine.create_container(image.digest, ["true"], labels=labels)["Id"]
    with Lease(store.root / "docker" / "dead.lease"):
        assert runtime.reap() == []
    assert runtime.reap() == [f"docker container {made}"]


def test_leases_go_with_their_runs(tmp_path: Path, spec: BoxSpec):
    runtime = DockerRuntime(Store(tmp_path))
    with runtime.create(spec):
        assert len(list((tmp_path / "docker").glob("*.lease"))) == 1
    runtime.close()
    assert not list((tmp_path / "docker").glob("*.lease"))
    (tmp_path / "docker" / "left.lease").touch()  # by a run that died without a box
    assert runtime.reap() == []
    runtime.close()
    assert not list((tmp_path / "docker").glob("*.lease"))


@contextmanager
def forwarded() -> Iterator[int]:
    """A TCP port that leads to the engine's socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=accept, args=(server,))
        thread.start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def accept(server: socket.socket) -> None:
    with ThreadPoolExecutor(16) as pool:
        while True:
            try:
                near, _ = server.accept()
            except OSError:
                return
            pool.submit(join, near, pool)


def join(near: socket.socket, pool: ThreadPoolExecutor) -> None:
    with near, socket.socket(socket.AF_UNIX) as far:
        far.connect(DEFAULT_HOST.removeprefix("unix://"))
        back = pool.submit(copy, far, near)
        copy(near, far)
        back.result()


def copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while block := source.recv(1 << 16):
            target.sendall(block)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
