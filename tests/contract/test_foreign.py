"""An image that others made is the same, file by file, in a box of every runtime."""

import contextlib
import gzip
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from sandbox.model.image import ImageLock
from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.docker.address import DEFAULT_HOST
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.locks import lock_image
from sandbox.runtime.spec import BoxSpec, Image
from sandbox.runtime.store import Store
from tests.contract.conftest import LIMITS
from tests.support.foreign import Member, digest, folder, hard_link, layer, symlink, write_layout

LOOK = r"""
import hashlib, os, stat
for above, folders, files in os.walk(b"/world"):
    for name in sorted([*folders, *files]):
        path = os.path.join(above, name)
        s = os.lstat(path)
        what = b""
        if stat.S_ISLNK(s.st_mode):
            what = os.readlink(path)
        elif stat.S_ISREG(s.st_mode):
            what = open(path, "rb").read()
        size = 0 if stat.S_ISDIR(s.st_mode) else s.st_size
        print((path, oct(s.st_mode), s.st_uid, s.st_gid, s.st_mtime_ns, size, s.st_rdev, what))
print(sorted(os.listdir(b"/")))
"""
CAPABILITY = (b"\1\0\0\2\0\4" + bytes(14)).decode()
"""cap_net_bind_service, effective and permitted."""
WHEN = 1_600_000_000
ODD = "not-\udcff\udcfe-utf8"
LAYERS = (
    layer(
        folder("world"),
        folder("world/kept", 0o2775, uid=1000, gid=1000),
        Member(name="world/kept/a", content=b"a1", mode=0o640, uid=1000, gid=50),
        Member(name="world/kept/b", content=b"b1"),
        folder("world/emptied"),
        Member(name="world/emptied/old", content=b"old"),
        folder("world/emptied/oldfolder"),
        Member(name="world/emptied/oldfolder/x"),
        folder("world/removed"),
        Member(name="world/removed/x"),
        folder("world/becomes-a-file"),
        Member(name="world/becomes-a-file/x"),
        Member(name="world/becomes-a-folder"),
        Member(name="world/becomes-a-link"),
        Member(name="world/comes-back", content=b"1"),
        folder("dev"),
        Member(name="dev/sda", kind=tarfile.BLKTYPE),
    ),
    layer(),
    layer(
        folder("world", 0o751, uid=3),
        folder("world/kept", 0o2770, uid=1000, gid=1000),
        Member(name="world/kept/.wh.b"),
        Member(name="world/kept/c", content=b"c2"),
        folder("world/emptied", 0o700),
        Member(name="world/emptied/.wh..wh..opq"),
        Member(name="world/emptied/new", content=b"new"),
        Member(name="world/.wh.removed"),
        Member(name="world/becomes-a-file", content=b"file"),
        folder("world/becomes-a-folder", 0o711),
        Member(name="world/becomes-a-folder/x", content=b"x"),
        symlink("world/becomes-a-link", "/etc/shadow"),
        Member(name="world/.wh.comes-back"),
        Member(name="world/su", content=b"#!/bin/sh\n", mode=0o4755),
        Member(name="world/sg", mode=0o2755, uid=65534, gid=65534),
        Member(name=f"world/{ODD}", content=b"odd"),
        Member(name="world/new\nline", content=b"odd"),
        Member(name="world/first", content=b"shared"),
        hard_link("world/second", "world/first"),
        Member(name="world/exact", pax={"mtime": "1500000000.123456789"}),
        Member(name="world/pipe", kind=tarfile.FIFOTYPE, mode=0o622),
        Member(name="far", content=b"far\n", mode=0o600, uid=197609, gid=4_000_000_000),
        Member(name="/absolute", content=b"at the root"),
        Member(name="unlisted/below/file", content=b"its folders are not listed"),
        Member(name="able", mode=0o755, pax={"SCHILY.xattr.security.capability": CAPABILITY}),
    ),
    layer(),
    layer(
        folder("world", 0o755, mtime=7),
        Member(name="world/comes-back", content=b"3"),
        folder("world/kept", 0o2770, uid=1000, gid=1000),
        Member(name="world/kept/a", content=b"a3", mode=0o600, uid=1000, gid=1000),
    ),
)


def row(
    path: str,
    mode: int,
    uid: int = 0,
    gid: int = 0,
    *,
    moment: int = WHEN * 10**9,
    what: bytes = b"",
) -> str:
    size = 0 if stat.S_ISDIR(mode) else len(what)
    return repr((b"/world/" + os.fsencode(path), oct(mode), uid, gid, moment, size, 0, what))


DIR, REG, LNK, FIFO = stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK, stat.S_IFIFO
SEEN = {
    row("kept", DIR | 0o2770, 1000, 1000),
    row("kept/a", REG | 0o600, 1000, 1000, what=b"a3"),
    row("kept/c", REG | 0o644, what=b"c2"),
    row("emptied", DIR | 0o700),
    row("emptied/new", REG | 0o644, what=b"new"),
    row("becomes-a-file", REG | 0o644, what=b"file"),
    row("becomes-a-folder", DIR | 0o711),
    row("becomes-a-folder/x", REG | 0o644, what=b"x"),
    row("becomes-a-link", LNK | 0o777, what=b"/etc/shadow"),
    row("comes-back", REG | 0o644, what=b"3"),
    row("su", REG | 0o4755, what=b"#!/bin/sh\n"),
    row("sg", REG | 0o2755, 65534, 65534),
    row(ODD, REG | 0o644, what=b"odd"),
    row("new\nline", REG | 0o644, what=b"odd"),
    row("first", REG | 0o644, what=b"shared"),
    row("second", REG | 0o644, what=b"shared"),
    row("exact", REG | 0o644, moment=1500000000123456789),
    row("pipe", FIFO | 0o622),
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("shelf"))


@pytest.fixture(scope="module")
def mark() -> Iterator[bytes]:
    """A layer that no other run has. Images with it leave the engine in the end."""
    made = layer(Member(name="mark", content=os.urandom(16)))
    yield made
    with contextlib.suppress(docker.errors.DockerException):  # there may be no engine
        engine = docker.APIClient(os.environ.get("DOCKER_HOST") or DEFAULT_HOST, version="auto")
        for tag in [tag for each in engine.images() for tag in each["RepoTags"] or ()]:
            found: dict[str, Any] = engine.inspect_image(tag)  # type: ignore[no-untyped-call]
            if digest(made) in found["RootFS"].get("Layers", ()):
                engine.remove_image(tag, force=True)
        engine.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, image: Image, mark: bytes) -> Path:
    """A folder of tasks with an image that others made, of bash and python3 below all else."""
    place = tmp_path_factory.mktemp("home")
    write_layout(
        place / "made",
        [image.layers[0].tar.read_bytes(), *LAYERS, mark],
        press=lambda t: gzip.compress(t, 1),
    )
    (place / "repos" / "images").mkdir(parents=True)
    (place / "repos/images/theirs.yaml").write_text("schema: 1\nsource: {layout: made}\n")
    return place


@pytest.fixture(scope="module")
def lock(shelf: Store, home: Path) -> ImageLock:
    return lock_image(shelf, home, "theirs", lambda *_: None)


@pytest.fixture(scope="module")
def theirs(shelf: Store, home: Path, lock: ImageLock) -> Image:
    return ensure(shelf, lock, lambda *_: None, home=home)


@pytest.fixture
def inside(runtime: Runtime, theirs: Image) -> Iterator[Box]:
    if runtime.name == "embedded":  # until it mounts `lowers`, where each layer is once
        theirs = replace(theirs, layers=(*theirs.layers[:2], *theirs.layers[3:]))
    with runtime.create(BoxSpec(image=theirs, limits=LIMITS)) as made:
        yield made


def test_every_file_is_as_its_layers_say(inside: Box):
    said = inside.exec(["python3", "-Ic", LOOK], seconds=60)
    assert said.stderr == b""
    *rows, top = said.stdout.decode().splitlines()
    assert set(rows) == SEEN
    assert len(rows) == len(SEEN)
    assert "b'absolute'" in top


def test_a_layer_that_comes_twice_is_a_lower_folder_once(theirs: Image):
    assert len(theirs.layers) == 7
    assert theirs.layers[2].diff_id == theirs.layers[4].diff_id
    folders = [theirs.layers[n].folder for n in (6, 5, 4, 3, 1, 0)]
    assert theirs.lowers == tuple(folders)


def test_hard_links_are_one_file(inside: Box):
    said = inside.exec(["stat", "-c", "%h", "/world/first"], seconds=30)
    assert said.stdout == b"2\n"


def test_folders_that_are_not_listed_are_roots(inside: Box):
    said = inside.exec(["stat", "-c", "%a %u %g", "/unlisted", "/unlisted/below"], seconds=30)
    assert said.stdout == b"755 0 0\n" * 2


def test_roots_power_is_over_files_of_any_owner(inside: Box):
    script = "cat /far && echo more >> /far && stat -c '%a %s' /far"
    said = inside.exec(["bash", "-c", script], seconds=30)
    assert (said.stderr, said.stdout) == (b"", b"far\n600 9\n")


def test_capabilities_of_programs_are_kept(inside: Box):
    look = "import os; print(os.getxattr('/able', 'security.capability'))"
    said = inside.exec(["python3", "-Ic", look], seconds=30)
    assert said.stdout.decode().strip() == repr(CAPABILITY.encode())


def test_its_environment_is_there_and_its_entrypoint_is_not(inside: Box):
    said = inside.exec(["bash", "-c", "echo $FOREIGN $PWD $(id -u)"], seconds=30)
    assert said.stdout == b"yes / 0\n"


def test_what_the_layers_hide_can_be_made_again(inside: Box):
    script = "cd /world && mkdir removed && ls -A removed emptied && echo 1 > kept/b && cat kept/b"
    said = inside.exec(["bash", "-c", script], seconds=30)
    assert said.stdout == b"emptied:\nnew\n\nremoved:\n1\n"


def test_a_device_of_the_image_is_none_of_the_boxs(inside: Box):
    assert inside.exec(["ls", "/dev/sda"], seconds=30).exit_code == 2


@pytest.mark.timeout(600)
def test_as_many_layers_as_an_engine_takes_are_mounted(
    runtime: Runtime, image: Image, tmp_path: Path, mark: bytes
):
    layers = [layer(Member(name=f"layer-{n}", content=b"%d" % n)) for n in range(123)]
    base = image.layers[0].tar.read_bytes()
    write_layout(tmp_path / "made", [base, mark, *layers], press=lambda tar: gzip.compress(tar, 1))
    (tmp_path / "repos/images").mkdir(parents=True)
    (tmp_path / "repos/images/many.yaml").write_text("schema: 1\nsource: {layout: made}\n")
    store = Store(tmp_path / "store")
    many = ensure(store, lock_image(store, tmp_path, "many", lambda *_: None), lambda *_: None)
    assert len(many.layers) == 125
    with runtime.create(BoxSpec(image=many, limits=LIMITS)) as made:
        said = made.exec(["bash", "-c", "cat /layer-0 /layer-122; ls / | wc -l"], seconds=60)
    assert said.stdout.startswith(b"0122")
