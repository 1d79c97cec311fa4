"""An image is what its lock says, or it is refused. All files are at hand: no network."""

import hashlib
import json
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import ImageFault
from sandbox.model.image import ImageLock, LayerPin, WheelPin
from sandbox.model.task import Digest
from sandbox.runtime.docker.images import docker_archive
from sandbox.runtime.image.build import build, build_layer
from sandbox.runtime.image.config import config_of, sha256_of
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.image.entry import Entry as FileEntry
from sandbox.runtime.image.entry import folder
from sandbox.runtime.image.layer import write_layer
from sandbox.runtime.image.stored import layer_folder, layer_tar, unpacked
from sandbox.runtime.store import Store, remove_tree

UNKNOWN = Digest("")
REF = "host/toy@sha256:1"
WHEEL = "toy-1.0-py3-none-any.whl"
MODULE = "usr/local/lib/python3.11/dist-packages/toy.py"


def quiet(text: str, done: int, total: int) -> None:
    assert 0 <= done <= total, text


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def lock(store):
    """Of one layer: a wheel, already downloaded, and a link."""
    pin = WheelPin(name="toy", version="1.0", file=WHEEL, sha256=put_wheel(store))
    links = {"/usr/lib/toy": "/usr/local/bin"}
    layer = LayerPin(kind="wheels", diff_id=UNKNOWN, wheels=(pin,), links=links)
    layer = replace(layer, diff_id=build_layer(store, layer, [], 1))
    layer_tar(store, layer.diff_id).unlink()
    lock = ImageLock(
        schema=1,
        name="toy",
        epoch=1,
        arch="amd64",
        recipe_sha256="",
        env={"LANG": "C.UTF-8"},
        layers=(layer,),
        config_digest=UNKNOWN,
    )
    return replace(lock, config_digest=sha256_of(config_of(lock)))


def put_wheel(store: Store) -> str:
    path = store.root / "wheel"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toy.py", "x = 1\n")
        archive.writestr("toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\n")
        archive.writestr("toy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        archive.writestr("toy-1.0.dist-info/RECORD", "toy.py,,\n")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    store.blob(sha256).parent.mkdir(parents=True)
    path.rename(store.blob(sha256))
    return sha256


def test_an_image_is_built_from_its_lock(store, lock):
    image = ensure(store, lock, quiet)
    assert image.digest == lock.config_digest
    assert image.env == {"LANG": "C.UTF-8"}
    assert (image.layers[0].folder / MODULE).read_text() == "x = 1\n"
    assert str((image.layers[0].folder / "usr/lib/toy").readlink()) == "/usr/local/bin"
    config = json.loads(image.config.read_bytes())
    assert config["rootfs"]["diff_ids"] == [layer.diff_id for layer in image.layers]
    assert config["created"] == "1970-01-01T00:00:01Z"


def with_file(home: Path, lock: ImageLock, data: bytes = b"made once\n") -> ImageLock:
    """The lock, and a tar in repos/images/ that is one more layer."""
    tar = home / "repos" / "images" / "toy.files.tar"
    tar.parent.mkdir(parents=True, exist_ok=True)
    entries = [folder("srv"), FileEntry("srv/it", "file", data=data)]
    pin = LayerPin(kind="files", diff_id=write_layer(entries, tar, 1), file=tar.name)
    lock = replace(lock, layers=(*lock.layers, pin))
    return replace(lock, config_digest=sha256_of(config_of(lock)))


def test_a_layer_of_files_is_what_its_tar_is(store, lock, tmp_path):
    image = ensure(store, with_file(tmp_path / "home", lock), quiet, home=tmp_path / "home")
    assert (image.layers[1].folder / "srv/it").read_text() == "made once\n"


def test_another_tar_than_the_pinned_one_is_refused(store, lock, tmp_path):
    pinned = with_file(tmp_path / "home", lock)
    with_file(tmp_path / "home", lock, b"another\n")
    with pytest.raises(ImageFault, match="is not the layer that image toy pins") as caught:
        ensure(store, pinned, quiet, home=tmp_path / "home")
    assert "stillroom lock image toy" in caught.value.hint


def test_a_layer_in_the_store_is_not_built_again(store, lock):
    build(store, lock, quiet)
    store.blob(lock.layers[0].wheels[0].sha256).unlink()
    assert ensure(store, lock, quiet).digest == lock.config_digest


def test_a_tampered_wheel_is_refused_by_name(store, lock):
    blob = store.blob(lock.layers[0].wheels[0].sha256)
    blob.write_bytes(blob.read_bytes() + b"!")
    with pytest.raises(ImageFault, match=f"refused: {WHEEL} is not what was pinned") as caught:
        ensure(store, lock, quiet)
    assert not caught.value.retry


def test_a_layer_that_comes_out_differently_is_refused(store, lock):
    other = replace(lock.layers[0], diff_id=Digest("sha256:" + "0" * 64))
    lock = replace(lock, layers=(other,))
    lock = replace(lock, config_digest=sha256_of(config_of(lock)))
    with pytest.raises(ImageFault, match="layer wheels of image toy came out as") as caught:
        ensure(store, lock, quiet)
    assert "stillroom lock image toy" in caught.value.hint
    assert not layer_tar(store, other.diff_id).exists()


@pytest.mark.parametrize("change", [{"epoch": 2}, {"env": {}}, {"config_digest": "sha256:0"}])
def test_a_lock_whose_digest_is_not_its_own_is_refused(store, lock, change):
    with pytest.raises(ImageFault, match="refused: image toy is pinned as"):
        ensure(store, replace(lock, **change), quiet)


def test_a_damaged_config_is_written_again(store, lock):
    config = ensure(store, lock, quiet).config
    config.write_bytes(b"{}")
    assert sha256_of(ensure(store, lock, quiet).config.read_bytes()) == lock.config_digest


def test_a_damaged_folder_is_unpacked_again(store, lock):
    build(store, lock, quiet)
    folder = unpacked_by_another_process(store, lock.layers[0].diff_id)
    (folder / MODULE).write_text("x = 2  # planted\n")
    image = ensure(store, lock, quiet)
    assert (image.layers[0].folder / MODULE).read_text() == "x = 1\n"


def test_a_folder_without_its_record_is_not_believed(store, lock):
    build(store, lock, quiet)
    folder = layer_folder(store, lock.layers[0].diff_id)
    folder.mkdir()
    (folder / "planted").touch()
    ensure(store, lock, quiet)
    assert not (folder / "planted").exists()


def test_a_damaged_folder_is_not_repaired_from_a_damaged_tar(store, lock):
    build(store, lock, quiet)
    folder = unpacked_by_another_process(store, lock.layers[0].diff_id)
    (folder / MODULE).unlink()
    tar = layer_tar(store, lock.layers[0].diff_id)
    tar.write_bytes(tar.read_bytes().replace(b"x = 1", b"x = 2"))
    with pytest.raises(ImageFault, match=r"refused: layer sha256:.* is not what was pinned"):
        ensure(store, lock, quiet)


def test_a_missing_tar_is_made_again(store, lock):
    tar = ensure(store, lock, quiet).layers[0].tar
    tar.unlink()
    assert ensure(store, lock, quiet).layers[0].tar.exists()


def test_a_registry_may_have_it(store, lock):
    build(store, lock, quiet)
    tar = layer_tar(store, lock.layers[0].diff_id)
    content = tar.read_bytes()
    tar.unlink()
    store.blob(lock.layers[0].wheels[0].sha256).unlink()
    asked = []

    def pull(lock, folder, progress):
        asked.append(lock.ref)
        (folder / tar.name).write_bytes(content)

    lock = replace(lock, ref=REF)
    assert ensure(store, lock, quiet, pull=pull).digest == lock.config_digest
    assert ensure(store, lock, quiet, pull=pull).digest == lock.config_digest
    assert asked == [REF]


def test_what_a_registry_says_is_not_believed(store, lock):
    tar = layer_tar(store, lock.layers[0].diff_id)

    def pull(lock, folder, progress):
        (folder / tar.name).write_bytes(b"something else")

    with pytest.raises(ImageFault, match=f"refused: a layer of {REF} is not what was") as caught:
        ensure(store, replace(lock, ref=REF), quiet, pull=pull)
    assert not caught.value.retry
    assert not tar.exists()
    assert list((store.root / "tmp").iterdir()) == []


def test_where_a_registry_has_it_is_not_part_of_what_it_is(lock):
    assert config_of(replace(lock, ref=REF)) == config_of(lock)


def test_the_docker_archive_names_config_and_layers_by_content(store, lock, tmp_path):
    blocks = docker_archive(ensure(store, lock, quiet), "toy:1")
    (tmp_path / "image.tar").write_bytes(b"".join(blocks))
    with tarfile.open(tmp_path / "image.tar") as archive:
        found = {m.name: read(archive, m) for m in archive}
    (manifest,) = json.loads(found["manifest.json"])
    assert manifest["RepoTags"] == ["toy:1"]
    assert sha256_of(found[manifest["Config"]]) == lock.config_digest
    assert [sha256_of(found[path]) for path in manifest["Layers"]] == [lock.layers[0].diff_id]


def read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = archive.extractfile(member)
    return content.read() if content else b""


def unpacked_by_another_process(store: Store, diff_id: Digest) -> Path:
    """This process has not looked at it yet: it looks at each folder once."""
    elsewhere = Store(store.root.with_name("elsewhere"))
    layer_tar(elsewhere, diff_id).parent.mkdir(parents=True)
    layer_tar(elsewhere, diff_id).write_bytes(layer_tar(store, diff_id).read_bytes())
    folder = unpacked(elsewhere, diff_id)
    target = layer_folder(store, diff_id)
    folder.rename(target)
    folder.with_name(folder.name + ".manifest").rename(target.with_name(target.name + ".manifest"))
    remove_tree(elsewhere.root)
    return target
