"""What people ask for is resolved by the real indexes, and written down with their own addresses."""

import os
import shutil
from pathlib import Path

import pytest

from sandbox.errors import ImageFault, NetworkFault
from sandbox.formats import indexfile, jsonfile
from sandbox.formats.indexfile import ROOTS
from sandbox.model.image import ImageLock
from sandbox.model.index import LOCK_NAME, AptPin, NpmPin, PypiPin
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.network.index.files import ensure_files
from sandbox.runtime.network.index.record import record_index
from sandbox.runtime.network.index.resolve import Wanted, resolve
from sandbox.runtime.network.index.resolve_pypi import canonical_url
from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store, default_store

DATA = Path(__file__).parents[1] / "data"
PIN = "2024-05-15T12:00:00Z"

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]


def quiet(text: str, done: int, total: int) -> None:
    """Nobody watches."""


@pytest.fixture(scope="module")
def image() -> Image:
    pinned = jsonfile.load(DATA / "images" / "packages.lock.json", ImageLock)
    return ensure(default_store(os.environ), pinned, quiet)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_pip_s_wheels_come_with_what_they_need_and_are_not_newer_than_the_pin(store, tmp_path):
    lock = record_index(store, tmp_path, Wanted(pip=("requests==2.31.0",)), PIN, None, quiet)
    assert lock == indexfile.load(tmp_path / LOCK_NAME)
    pins = {p.name: p for p in lock.pins if isinstance(p, PypiPin)}
    assert set(pins) == {"certifi", "charset-normalizer", "idna", "requests", "urllib3"}
    known = indexfile.load(DATA / "packages" / LOCK_NAME)
    assert pins["requests"] in known.pins
    assert all(p.uploaded is not None and p.uploaded <= PIN for p in pins.values())
    for pin in pins.values():
        assert canonical_url(store.blob(pin.sha256), pin.filename) == pin.url


@pytest.mark.skipif(shutil.which("npm") is None, reason="resolving asks npm")
def test_npm_s_tarballs_come_without_those_for_other_machines(store):
    wanted = Wanted(npm=("is-odd@3.0.1", "@rollup/rollup-linux-x64-gnu@4.18.0", "fsevents@2.3.3"))
    with pytest.raises(NetworkFault, match="npm cannot resolve"):
        resolve(store, wanted, PIN, None, quiet)  # fsevents is for macOS only
    lock = resolve(store, Wanted(npm=("chokidar@3.6.0",)), PIN, None, quiet)
    names = {p.name for p in lock.pins if isinstance(p, NpmPin)}
    assert {"chokidar", "anymatch", "glob-parent"} < names
    assert "fsevents" not in names
    assert all(p.url.startswith(ROOTS["npm"]) for p in lock.pins)


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="resolving asks apt-get")
def test_apt_s_packages_are_what_the_image_has_not(store, image):
    lock = resolve(store, Wanted(apt=("jq", "libc6")), PIN, image, quiet)
    assert [p.name for p in lock.pins if isinstance(p, AptPin)] == ["jq", "libjq1", "libonig5"]
    assert lock.head.snapshot is not None


def test_a_recorded_lock_is_enough_for_another_machine(store, tmp_path):
    lock = indexfile.load(DATA / "packages" / LOCK_NAME)
    other = Store(tmp_path / "other")
    ensure_files(other, lock, quiet)
    assert {p.sha256 for p in lock.pins} == {
        path.name for path in (other.root / "blobs" / "sha256").iterdir()
    }


def test_an_unknown_package_is_told_by_the_resolver(store, image):
    for wanted in (Wanted(pip=("no-such-thing-at-all==9",)), Wanted(apt=("no-such-thing",))):
        with pytest.raises(ImageFault, match="no-such-thing"):
            resolve(store, wanted, PIN, image, quiet)
