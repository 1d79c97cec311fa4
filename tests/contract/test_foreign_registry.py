"""An image that others made is had from its registry or layout as it was locked, or refused."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from sandbox.errors import ImageFault
from sandbox.formats import jsonfile
from sandbox.model.image import ImageLock
from sandbox.model.task import Digest
from sandbox.runtime.docker.address import DEFAULT_HOST
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.image.stored import layer_tar
from sandbox.runtime.locks import lock_image
from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot
from tests.support.absent import absent
from tests.support.foreign import Made, Member, folder, layer, nest, symlink, write_layout
from tests.support.registries import LAYER_TYPE, Registry, free_port, running_registry

ROOT = Path(__file__).parents[2]
ONE = layer(folder("a"), Member(name="a/one", content=b"1" * 5000), Member(name="gone"))
TWO = layer(folder("a"), Member(name="a/two", content=b"2" * 5000), Member(name=".wh.gone"))

lacking = [name for name in ("skopeo", "docker-registry") if not shutil.which(name)]
if lacking:
    absent(f"not installed: {', '.join(lacking)}", module=True)


class Heard(list[str]):
    def __call__(self, text: str, done: int, total: int) -> None:
        assert 0 <= done <= total, text
        self.append(text)


class Home:
    """A folder of tasks with one recipe, `theirs`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "repos" / "images").mkdir(parents=True)

    def lock(self, store: Store, **source: str) -> ImageLock:
        said = "schema: 1\nsource: " + json.dumps(source)
        (self.place / "repos/images/theirs.yaml").write_text(said)
        return lock_image(store, self.place, "theirs", Heard())

    def had(self, store: Store, heard: Heard | None = None) -> Image:
        """As a task gets it."""
        path = self.place / "repos/images/theirs.lock.json"
        digest = jsonfile.load(path, ImageLock).config_digest
        return Depot(store, Heard() if heard is None else heard).image(self.place, "theirs", digest)

    def change(self, **fields: object) -> None:
        """Edit the lock, as somebody might by hand."""
        path = self.place / "repos/images/theirs.lock.json"
        jsonfile.write(path, jsonfile.dumps(replace(jsonfile.load(path, ImageLock), **fields)))  # type: ignore[arg-type]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with running_registry(tmp_path / "registry") as made:
        yield made


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def made(home: Home) -> Made:
    return write_layout(home.place / "made", [ONE, TWO])


@pytest.fixture
def first(tmp_path: Path) -> Store:
    return Store(tmp_path / "first")


@pytest.fixture
def empty(tmp_path: Path) -> Store:
    return Store(tmp_path / "empty")


def zstd(content: bytes) -> bytes:
    return subprocess.run(["zstd", "-cq"], input=content, capture_output=True, check=True).stdout


def longer(content: bytes) -> bytes:
    return content + b" "


def other(content: bytes) -> bytes:
    return content[:-1] + b" "


def nothing_is_left_in(store: Store) -> bool:
    return list((store.root / "tmp").iterdir()) == []


def names_in(image: Image) -> list[list[str]]:
    return [sorted(p.name for p in each.folder.rglob("*")) for each in image.layers]


def test_a_tag_is_locked_to_what_it_means_today_and_stays_so(
    registry: Registry, home: Home, made: Made, first: Store, empty: Store
) -> None:
    named = registry.push_layout(made.layout)
    lock = home.lock(first, registry=named)
    assert lock.ref == f"{registry.host}/theirs@{made.manifest}"
    assert (lock.manifest, lock.config_digest) == (made.manifest, made.config)
    assert tuple(pin.diff_id for pin in lock.layers) == made.diff_ids
    assert [pin.blob for pin in lock.layers] == made.layers()
    assert {pin.media_type for pin in lock.layers} == {LAYER_TYPE + "+gzip"}
    assert (lock.env, lock.epoch) == ({"FOREIGN": "yes"}, 1704164645)
    later = write_layout(home.place / "later", [ONE])
    registry.push_layout(later.layout)
    image = home.had(empty)
    assert image.digest == made.config
    assert image.config.read_bytes() == made.blob(made.config).read_bytes()
    assert names_in(image) == [["a", "gone", "one"], ["a", "gone", "two"]]
    assert [each.tar.read_bytes() for each in image.layers] == [ONE, TWO]
    assert nothing_is_left_in(empty)
    assert home.lock(first, registry=named).config_digest == later.config


def test_manifests_of_dockers_own_kind_are_read(
    registry: Registry, home: Home, made: Made, first: Store, empty: Store
) -> None:
    named = f"{registry.host}/theirs:docker"
    copy = ("skopeo", "copy", "-q", "--format", "v2s2", "--dest-tls-verify=false")
    subprocess.run([*copy, f"oci:{made.layout}", f"docker://{named}"], check=True)
    lock = home.lock(first, registry=named)
    kinds = {pin.media_type for pin in lock.layers}
    assert kinds == {"application/vnd.docker.image.rootfs.diff.tar.gzip"}
    assert [each.tar.read_bytes() for each in home.had(empty).layers] == [ONE, TWO]


def test_of_an_index_the_image_for_boxes_is_locked(
    registry: Registry, home: Home, made: Made, first: Store, empty: Store
) -> None:
    write_layout(made.layout, [ONE], arch="arm64")
    index = nest(made.layout)
    named = registry.push_layout(made.layout)
    for asked in (named, f"{registry.host}/theirs@{index}"):
        lock = home.lock(first, registry=asked)
        assert lock.ref == f"{registry.host}/theirs@{made.manifest}"
        assert lock.config_digest == made.config
    assert home.had(empty).digest == made.config
    assert home.lock(first, layout="made").config_digest == made.config


def test_an_image_for_other_machines_is_refused(
    registry: Registry, home: Home, first: Store
) -> None:
    made = write_layout(home.place / "made", [ONE], arch="arm64")
    named = registry.push_layout(made.layout)
    with pytest.raises(ImageFault, match="is for linux/arm64, boxes are for linux/amd64"):
        home.lock(first, registry=named)
    with pytest.raises(ImageFault, match="layout made has no images for linux/amd64"):
        home.lock(first, layout="made")


@pytest.mark.parametrize(
    ("press", "media_type"),
    [(zstd, LAYER_TYPE + "+zstd"), (bytes, LAYER_TYPE), (bytes, LAYER_TYPE + "+gzip")],
)
def test_layers_may_be_compressed_or_not(
    registry: Registry,
    home: Home,
    first: Store,
    empty: Store,
    press: Callable[[bytes], bytes],
    media_type: str,
) -> None:
    made = write_layout(home.place / "made", [ONE, TWO], press=press, media_type=media_type)
    home.lock(first, registry=registry.push_layout(made.layout))
    assert names_in(home.had(empty))[0] == ["a", "gone", "one"]


def test_the_second_use_transfers_nothing(
    registry: Registry, home: Home, made: Made, empty: Store
) -> None:
    home.lock(empty, registry=registry.push_layout(made.layout))
    shutil.rmtree(registry.root / "docker")
    shutil.rmtree(made.layout)
    heard = Heard()
    assert home.had(empty, heard).digest == made.config
    assert heard == []


@pytest.mark.parametrize("which", ["manifest", "config", "layer"])
def test_what_the_registry_changed_is_refused_by_name(
    registry: Registry, home: Home, made: Made, first: Store, empty: Store, which: str
) -> None:
    lock = home.lock(first, registry=registry.push_layout(made.layout))
    digests = {"manifest": made.manifest, "config": made.config, "layer": made.layers()[1]}
    blob = registry.blob(digests[which])
    blob.write_bytes(blob.read_bytes() + b" ")
    with pytest.raises(ImageFault, match=f"refused: what the registry sent is not {lock.ref}"):
        home.had(empty)
    assert not any(layer_tar(empty, Digest(d)).exists() for d in made.diff_ids)
    assert nothing_is_left_in(empty)


@pytest.mark.parametrize("which", ["manifest", "config", "layer"])
@pytest.mark.parametrize("change", [longer, other])
def test_what_was_changed_in_a_layout_is_refused_by_name(
    home: Home,
    made: Made,
    first: Store,
    empty: Store,
    which: str,
    change: Callable[[bytes], bytes],
) -> None:
    home.lock(first, layout="made")
    digests = {"manifest": made.manifest, "config": made.config, "layer": made.layers()[1]}
    blob = made.blob(digests[which])
    blob.write_bytes(change(blob.read_bytes()))
    words = f"refused: layout made has something else under {digests[which]}"
    with pytest.raises(ImageFault, match=words):
        home.lock(empty, layout="made")
    if which != "config":  # which the lock has already
        with pytest.raises(ImageFault, match=words):
            home.had(Store(empty.root / "another"))
    assert nothing_is_left_in(empty)


def test_a_layer_that_is_not_what_the_config_says_is_refused(
    registry: Registry, home: Home, first: Store
) -> None:
    lie = "sha256:" + "0" * 64
    made = write_layout(home.place / "made", [ONE, TWO], claimed=[Digest(lie), Digest(lie)])
    named = registry.push_layout(made.layout)
    for source in ({"registry": named}, {"layout": "made"}):
        with pytest.raises(ImageFault, match=f"not what was pinned: expected {lie}"):
            home.lock(first, **source)
    assert not (home.place / "repos/images/theirs.lock.json").exists()
    assert nothing_is_left_in(first)


def test_a_layout_that_has_another_image_now_is_refused(
    home: Home, made: Made, first: Store, empty: Store
) -> None:
    home.lock(first, layout="made")
    shutil.rmtree(made.layout)
    other = write_layout(home.place / "made", [ONE])
    with pytest.raises(ImageFault, match=f"has the manifest {other.manifest}, but image theirs is"):
        home.had(empty)


def test_a_lock_that_disagrees_with_itself_is_refused(home: Home, made: Made, first: Store) -> None:
    lock = home.lock(first, layout="made")
    assert lock.config
    for wrong, why in (
        ({"config": lock.config.replace("yes", "no")}, "but the config in its lock is"),
        ({"layers": lock.layers[:1]}, "lists other layers, or env, than its config"),
        ({"env": {"PATH": "/evil"}}, "lists other layers, or env, than its config"),
        ({"config": "{}"}, "has no config of an image"),
        ({"config": None}, "refused: image theirs is pinned as"),
    ):
        with pytest.raises(ImageFault, match=why):
            ensure(first, replace(lock, **wrong), Heard())


def test_a_layout_may_be_a_tar_and_hold_several_images(
    home: Home, made: Made, first: Store, empty: Store
) -> None:
    write_layout(made.layout, [ONE], tag="2")
    with tarfile.open(home.place / "made.tar.gz", "w:gz") as tar:
        tar.add(made.layout, ".")
        tar.addfile(tarfile.TarInfo("../../outside"))
    shutil.rmtree(made.layout)
    with pytest.raises(ImageFault, match="has 2 images") as e:
        home.lock(first, layout="made.tar.gz")
    assert e.value.hint == "choose with `tag`: 1, 2"
    assert home.lock(first, layout="made.tar.gz", tag="1").config_digest == made.config
    assert home.had(empty).digest == made.config
    with pytest.raises(ImageFault, match="no images for linux/amd64 of the tag `3`"):
        home.lock(first, layout="made.tar.gz", tag="3")


@pytest.mark.parametrize("content", [b"", b"no tar" * 1000])
def test_what_is_no_layout_is_refused(home: Home, first: Store, content: bytes) -> None:
    (home.place / "empty").mkdir()
    (home.place / "file").write_bytes(content)
    for name, why in (
        ("empty", "is no OCI layout"),
        ("file", "is no tar"),
        ("none", "there is no"),
    ):
        with pytest.raises(ImageFault, match=why):
            home.lock(first, layout=name)


def test_a_hostile_layer_is_refused_when_it_is_locked(
    home: Home, first: Store, tmp_path: Path
) -> None:
    hostile = layer(symlink("up", "../../.."), Member(name="up/out-of-it", content=b"x"))
    write_layout(home.place / "made", [ONE, hostile])
    with pytest.raises(ImageFault, match="'up' is no folder, yet something is to be in it"):
        home.lock(first, layout="made")
    assert not (home.place / "repos/images/theirs.lock.json").exists()
    assert list(tmp_path.rglob("out-of-it")) == []
    assert nothing_is_left_in(first)


def test_more_layers_than_an_overlay_holds_are_refused(home: Home, first: Store) -> None:
    write_layout(home.place / "made", [layer(Member(name=f"{n}")) for n in range(126)])
    with pytest.raises(ImageFault, match="has 126 layers; 1 to 125 can be used"):
        home.lock(first, layout="made")


def test_two_processes_that_want_the_same_image_have_it_once(
    registry: Registry, home: Home, first: Store, empty: Store
) -> None:
    big = layer(*(Member(name=f"f{n}", content=os.urandom(3000)) for n in range(2000)))
    made = write_layout(home.place / "made", [ONE, big])
    home.lock(first, registry=registry.push_layout(made.layout))
    asked = [sys.executable, "-c", HAVING, str(home.place), str(empty.root), made.config]
    both = [subprocess.Popen(asked, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted("pulling" in each for each in said) == [False, True]
    assert names_in(home.had(empty))[1] == sorted(f"f{n}" for n in range(2000))
    assert nothing_is_left_in(empty)


HAVING = """
import pathlib, sys
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot
from tests.support.absent import absent
home, store, digest = sys.argv[1:]
told = lambda text, done, total: print(text)
Depot(Store(pathlib.Path(store)), told).image(pathlib.Path(home), "theirs", digest)
"""


def test_a_registry_that_is_down_is_a_fault_that_may_pass(
    home: Home, made: Made, first: Store, empty: Store
) -> None:
    lock = home.lock(first, layout="made")
    shutil.rmtree(made.layout)
    away = replace(lock, ref=f"127.0.0.1:{free_port()}/theirs@{made.manifest}")
    with pytest.raises(ImageFault, match=r"theirs is not to be had: .*connection refused.*") as e:
        ensure(empty, away, Heard(), home=home.place)
    assert "there is no " in str(e.value)  # the layout, which was the other way
    assert e.value.retry


def test_a_ref_that_pins_nothing_is_refused(home: Home, made: Made, first: Store) -> None:
    lock = replace(home.lock(first, layout="made"), ref="host.org/theirs:1")
    with pytest.raises(ImageFault, match=r"ref `host\.org/theirs:1` of image theirs is not host/"):
        ensure(Store(first.root / "other"), lock, Heard())


def test_an_image_from_elsewhere_is_no_base(home: Home, made: Made, first: Store) -> None:
    home.lock(first, layout="made")
    (home.place / "repos/images/on-it.yaml").write_text("schema: 1\nbase: theirs\ndebs: [tree]\n")
    with pytest.raises(Exception, match="`theirs` was made elsewhere and cannot be a `base`"):
        lock_image(first, home.place, "on-it", Heard())


@pytest.mark.docker
def test_without_skopeo_the_engine_pulls_it_by_its_digest(
    registry: Registry,
    home: Home,
    first: Store,
    empty: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unique = layer(Member(name="unique", content=os.urandom(8)))
    made = write_layout(home.place / "made", [ONE, TWO, unique])
    lock = home.lock(first, registry=registry.push_layout(made.layout))
    monkeypatch.setenv("PATH", "/nonexistent")
    heard = Heard()
    engine = docker.APIClient(os.environ.get("DOCKER_HOST") or DEFAULT_HOST, version="auto")
    try:
        image = home.had(empty, heard)
        assert image.digest == made.config
        assert [each.tar.read_bytes() for each in image.layers] == [ONE, TWO, unique]
        assert f"the container engine pulls {lock.ref}" in heard
        assert nothing_is_left_in(empty)
    finally:
        engine.remove_image(made.config, force=True)
        engine.close()
