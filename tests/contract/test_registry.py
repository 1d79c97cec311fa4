"""An image from a registry is the pinned one, or refused; one that is not to be had is built."""

import gzip
import hashlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from sandbox.errors import ImageFault
from sandbox.formats import jsonfile
from sandbox.model.image import ImageLock, LayerPin, WheelPin
from sandbox.model.task import Digest
from sandbox.runtime.image.build import build_layer
from sandbox.runtime.image.config import config_of, sha256_of
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.image.registry import pull
from sandbox.runtime.image.skopeo import Bounds, is_loopback
from sandbox.runtime.image.stored import layer_tar
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot
from tests.support.absent import absent
from tests.support.registries import (
    LAYER_TYPE,
    Registry,
    endless_registry,
    free_port,
    running_registry,
    transfers_of,
)
from tests.support.waiting import eventually

UNKNOWN = Digest("")
ZEROS = "sha256:" + "0" * 64
SHORT = Bounds(stall_seconds=0.5)
ROOT = Path(__file__).parents[2]

lacking = [name for name in ("skopeo", "docker-registry") if not shutil.which(name)]
if lacking:
    absent(f"not installed: {', '.join(lacking)}", module=True)


class Heard(list[str]):
    """What was said of the progress."""

    def __call__(self, text: str, done: int, total: int) -> None:
        assert 0 <= done <= total, text
        self.append(text)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with running_registry(tmp_path / "registry") as made:
        yield made


@pytest.fixture
def first(tmp_path: Path) -> Store:
    """Where images are made."""
    return Store(tmp_path / "first")


@pytest.fixture
def empty(tmp_path: Path) -> Store:
    """Where they are wanted. What they are made of is not to be had from here."""
    return Store(tmp_path / "empty")


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def lock(first: Store) -> ImageLock:
    return locked(first, "toy")


@pytest.fixture
def ref(registry: Registry, first: Store, lock: ImageLock) -> str:
    return registry.push(ensure(first, lock, Heard()), gzip.compress)


def locked(store: Store, name: str) -> ImageLock:
    """An image of two layers, one wheel each, that no archive has."""
    layers = []
    for wheel in (f"{name}-1-py3-none-any.whl", f"{name}more-1-py3-none-any.whl"):
        pin = WheelPin(name=name, version="1", file=wheel, sha256=put_wheel(store, wheel))
        layer = LayerPin(kind="wheels", diff_id=UNKNOWN, wheels=(pin,))
        layers.append(replace(layer, diff_id=build_layer(store, layer, [], 1)))
    lock = ImageLock(
        schema=1,
        name=name,
        epoch=1,
        arch="amd64",
        recipe_sha256="",
        env={"LANG": "C.UTF-8"},
        layers=tuple(layers),
        config_digest=UNKNOWN,
    )
    return replace(lock, config_digest=sha256_of(config_of(lock)))


def put_wheel(store: Store, file: str) -> str:
    name = file.partition("-")[0]
    path = store.root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", f"x = {name!r}\n" * 1000)
        archive.writestr(f"{name}-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\n")
        archive.writestr(f"{name}-1.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr(f"{name}-1.dist-info/RECORD", f"{name}.py,,\n")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    store.blob(sha256).parent.mkdir(parents=True, exist_ok=True)
    path.rename(store.blob(sha256))
    return sha256


def with_downloads_of(store: Store, empty: Store) -> Store:
    shutil.copytree(store.root / "blobs", empty.root / "blobs")
    return empty


def manifest_of(registry: Registry, ref: str) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = json.loads(
        registry.blob(ref.partition("@")[2]).read_bytes()
    )
    return found


def nothing_is_left_in(store: Store) -> bool:
    return list((store.root / "tmp").iterdir()) == []


def zstd(content: bytes) -> bytes:
    return subprocess.run(["zstd", "-cq"], input=content, capture_output=True, check=True).stdout


def plain(content: bytes) -> bytes:
    return content


@pytest.mark.parametrize(
    ("press", "media_type"),
    [
        (gzip.compress, LAYER_TYPE + "+gzip"),
        (zstd, LAYER_TYPE + "+zstd"),
        (plain, LAYER_TYPE),
        (plain, LAYER_TYPE + "+gzip"),  # some tools call everything so
    ],
)
def test_an_empty_store_gets_it_from_the_registry_without_building(
    registry: Registry,
    first: Store,
    empty: Store,
    lock: ImageLock,
    heard: Heard,
    press: Callable[[bytes], bytes],
    media_type: str,
) -> None:
    made = ensure(first, lock, heard)
    ref = registry.push(made, press, media_type=media_type)
    heard.clear()
    image = ensure(empty, replace(lock, ref=ref), heard)
    assert image.digest == made.digest
    assert [e.diff_id for e in image.layers] == [e.diff_id for e in made.layers]
    assert [e.tar.read_bytes() for e in image.layers] == [e.tar.read_bytes() for e in made.layers]
    assert set(heard) == {f"pulling toy from {ref}"}
    assert not (empty.root / "blobs").exists()
    assert nothing_is_left_in(empty)


def test_it_is_what_a_task_gets(empty: Store, lock: ImageLock, ref: str, tmp_path: Path) -> None:
    path = tmp_path / "repos" / "images" / "toy.lock.json"
    jsonfile.write(path, jsonfile.dumps(replace(lock, ref=ref)))
    image = Depot(empty, Heard()).image(tmp_path, "toy", lock.config_digest)
    assert image.digest == lock.config_digest


def test_a_store_that_has_it_asks_no_registry(first: Store, lock: ImageLock, heard: Heard) -> None:
    ensure(first, replace(lock, ref=f"127.0.0.1:{free_port()}/toy@{ZEROS}"), heard)
    assert heard == []


def test_a_tampered_layer_is_refused(
    registry: Registry, first: Store, empty: Store, lock: ImageLock, ref: str
) -> None:
    blob = registry.blob(manifest_of(registry, ref)["layers"][0]["digest"])
    whole = blob.read_bytes()
    for damaged in (whole[:-1] + b"!", whole + b"!", gzip.compress(b"another layer")):
        blob.write_bytes(damaged)
        with pytest.raises(ImageFault, match=f"refused: what the registry sent is not {ref}") as e:
            ensure(with_downloads_of(first, empty), replace(lock, ref=ref), Heard())
        assert not e.value.retry
        assert not any(layer_tar(empty, p.diff_id).exists() for p in lock.layers)
        assert nothing_is_left_in(empty)
        shutil.rmtree(empty.root)


@pytest.mark.parametrize("which", ["manifest", "config"])
def test_a_tampered_manifest_or_config_is_refused(
    registry: Registry, empty: Store, lock: ImageLock, ref: str, which: str
) -> None:
    blob = registry.blob(lock.config_digest if which == "config" else ref.partition("@")[2])
    blob.write_bytes(blob.read_bytes() + b" ")
    with pytest.raises(ImageFault, match=f"refused: what the registry sent is not {ref}"):
        ensure(empty, replace(lock, ref=ref), Heard())


def test_a_ref_to_another_image_is_refused_by_name(
    registry: Registry, first: Store, empty: Store, lock: ImageLock
) -> None:
    other = locked(first, "other")
    ref = registry.push(ensure(first, other, Heard()), gzip.compress)
    with pytest.raises(ImageFault, match=f"refused: {ref} is image {other.config_digest}, but im"):
        ensure(with_downloads_of(first, empty), replace(lock, ref=ref), Heard())
    assert nothing_is_left_in(empty)


@pytest.mark.parametrize(
    "press",
    [
        pytest.param(lambda content: gzip.compress(content + b"more"), id="longer"),
        pytest.param(lambda content: gzip.compress(content)[:-9], id="cut gzip"),
        pytest.param(lambda content: b"\x1f\x8b" + content, id="no gzip"),
        pytest.param(lambda content: zstd(content)[:-9], id="cut zstd"),
    ],
)
def test_a_layer_that_does_not_hold_what_the_config_says_is_refused(
    registry: Registry,
    first: Store,
    empty: Store,
    lock: ImageLock,
    press: Callable[[bytes], bytes],
) -> None:
    ref = registry.push(ensure(first, lock, Heard()), press)
    with pytest.raises(ImageFault, match=f"refused: a layer of {ref} is not what was pinned"):
        ensure(empty, replace(lock, ref=ref), Heard())
    assert nothing_is_left_in(empty)


def test_a_manifest_that_lacks_a_layer_is_refused(
    registry: Registry, first: Store, empty: Store, lock: ImageLock
) -> None:
    image = ensure(first, lock, Heard())
    ref = registry.push(replace(image, layers=image.layers[:1]), gzip.compress)
    with pytest.raises(ImageFault, match=f"refused: {ref} has 1 layers, its config 2"):
        ensure(empty, replace(lock, ref=ref), Heard())


@pytest.mark.parametrize(
    "ref", ["toy", "host/toy:1", "host/toy@sha256:1", "--help/toy@" + ZEROS[:-1]]
)
def test_a_ref_that_pins_nothing_is_refused(empty: Store, lock: ImageLock, ref: str) -> None:
    with pytest.raises(ImageFault, match=f"refused: ref `{ref}` of image toy is not host/name@"):
        ensure(empty, replace(lock, ref=ref), Heard())


def test_a_registry_that_is_down_is_passed_over(
    first: Store, empty: Store, lock: ImageLock, heard: Heard
) -> None:
    lock = replace(lock, ref=f"127.0.0.1:{free_port()}/toy@{ZEROS}")
    assert ensure(with_downloads_of(first, empty), lock, heard).digest == lock.config_digest
    assert "built from its lock, not pulled" in heard[1]
    assert "connection refused" in heard[1]
    assert nothing_is_left_in(empty)


@pytest.mark.parametrize("name", ["toy", "never-pushed"])
def test_an_image_that_the_registry_lacks_is_built(
    registry: Registry, first: Store, empty: Store, lock: ImageLock, heard: Heard, name: str
) -> None:
    lock = replace(lock, ref=f"{registry.host}/{name}@{ZEROS}")
    assert ensure(with_downloads_of(first, empty), lock, heard).digest == lock.config_digest
    assert "manifest unknown" in heard[1]


def test_an_image_of_which_the_registry_lost_a_layer_is_built(
    registry: Registry, first: Store, empty: Store, lock: ImageLock, ref: str, heard: Heard
) -> None:
    registry.blob(manifest_of(registry, ref)["layers"][1]["digest"]).unlink()
    lock = replace(lock, ref=ref)
    assert ensure(with_downloads_of(first, empty), lock, heard).digest == lock.config_digest
    assert "404" in heard[1]


def test_without_skopeo_the_image_is_built(
    first: Store,
    empty: Store,
    lock: ImageLock,
    ref: str,
    heard: Heard,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    lock = replace(lock, ref=ref)
    assert ensure(with_downloads_of(first, empty), lock, heard).digest == lock.config_digest
    assert heard[1] == "toy is built from its lock, not pulled: skopeo is not installed"


def test_a_registry_that_stalls_is_given_up(
    first: Store, empty: Store, lock: ImageLock, heard: Heard
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lock = replace(lock, ref=f"127.0.0.1:{silent.getsockname()[1]}/toy@{ZEROS}")
        began = time.monotonic()
        ensure(with_downloads_of(first, empty), lock, heard, pull=partial(pull, bounds=SHORT))
    assert "the registry sent nothing for 0.5 s" in heard[1]
    assert time.monotonic() - began < 20
    assert nothing_is_left_in(empty)


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        (Bounds(stall_seconds=60, wall_seconds=0.5), "it took longer than 0.5 s"),
        (Bounds(bytes=2_000_000), "it is larger than 2000000 bytes"),
    ],
)
def test_a_registry_that_never_ends_is_given_up(
    first: Store, empty: Store, lock: ImageLock, heard: Heard, bounds: Bounds, why: str
) -> None:
    with endless_registry(ensure(first, lock, Heard())) as ref:
        lock = replace(lock, ref=ref)
        ensure(with_downloads_of(first, empty), lock, heard, pull=partial(pull, bounds=bounds))
    assert why in heard[1]
    assert nothing_is_left_in(empty)


def test_a_layer_too_large_to_unpack_is_not_unpacked(
    registry: Registry, first: Store, empty: Store, lock: ImageLock, heard: Heard, ref: str
) -> None:
    lock, bounds = replace(lock, ref=ref), Bounds(bytes=5000)
    ensure(with_downloads_of(first, empty), lock, heard, pull=partial(pull, bounds=bounds))
    assert heard[1] == "toy is built from its lock, not pulled: a layer is too large"


def test_a_killed_run_leaves_no_transfer_behind(lock: ImageLock, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ref = f"127.0.0.1:{silent.getsockname()[1]}/toy@{ZEROS}"
        (tmp_path / "lock.json").write_text(jsonfile.dumps(replace(lock, ref=ref)))
        process = subprocess.Popen([sys.executable, "-c", PULLING, str(tmp_path)], cwd=ROOT)
        try:
            assert eventually(lambda: transfers_of(ref) != [], 30)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert eventually(lambda: transfers_of(ref) == [])
    store = Store(tmp_path / "store")
    assert len(store.reap()) == 1
    assert nothing_is_left_in(store)


PULLING = """
import pathlib, sys
from sandbox.formats import jsonfile
from sandbox.model.image import ImageLock
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.store import Store
from tests.support.absent import absent
folder = pathlib.Path(sys.argv[1])
lock = jsonfile.load(folder / "lock.json", ImageLock)
ensure(Store(folder / "store"), lock, lambda text, done, total: None)
"""


@pytest.mark.parametrize(
    ("ref", "loopback"),
    [
        ("localhost/a", True),
        ("localhost:5000/a", True),
        ("127.0.0.1:5000/a", True),
        ("127.9.9.9/a", True),
        ("127.0.0.1.example.org/a", False),
        ("localhost.example.org:5000/a", False),
        ("10.0.0.1:5000/a", False),
        ("ghcr.io/localhost/a", False),
    ],
)
def test_only_on_loopback_does_a_registry_go_without_tls(ref: str, *, loopback: bool) -> None:
    assert is_loopback(ref) is loopback
