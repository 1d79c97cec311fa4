"""A Dockerfile is built from images that are here, without a network, and runs everywhere."""

import contextlib
import gzip
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from sandbox.errors import ImageFault, RuntimeFault, SpecError
from sandbox.formats import jsonfile, yamlfile
from sandbox.model.image import ImageLock
from sandbox.runtime.base import Runtime
from sandbox.runtime.docker.address import DEFAULT_HOST
from sandbox.runtime.docker.images import docker_archive, tag_for
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.locks import lock_image
from sandbox.runtime.spec import BoxSpec, Image
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot
from tests.contract.conftest import LIMITS
from tests.support.absent import absent
from tests.support.foreign import Member, digest, layer, write_layout
from tests.support.registries import running_registry

pytestmark = [pytest.mark.box, pytest.mark.docker]

ROOT = Path(__file__).parents[2]
DOCKERFILE = """\
# syntax=docker/dockerfile:1
ARG PYTHON=3.11
FROM --platform=linux/amd64 python:${PYTHON}-slim AS build
ARG GREETING
RUN test "$(ls /sys/class/net)" = lo
RUN mkdir -p /out/old && echo "$GREETING" > /out/greeting && echo x > /out/old/file
FROM docker.io/library/ubuntu:24.04
COPY --from=build /out /srv/out
RUN rm -r /srv/out/old && mkdir /srv/out/old && echo new > /srv/out/old/new
COPY . /srv/context
ENV BUILT=yes
USER nobody
WORKDIR /srv
ENTRYPOINT ["/no/such/program"]
"""


def quiet(text: str, done: int, total: int) -> None:
    assert 0 <= done <= total, text


class Home:
    """A folder of tasks with an image to build, in images/built, on a table of bases."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.images = place / "repos" / "images"
        self.context = place / "images" / "built"
        self.images.mkdir(parents=True)
        self.context.mkdir(parents=True)
        self.recipe()
        self.dockerfile(DOCKERFILE)
        (self.context / "kept").write_text("kept")
        (self.context / "secret").write_text("secret")
        (self.context / ".dockerignore").write_text("# what stays here\nsecret\n.dockerignore\n")
        self.bases({"python:3.11-slim": "base", "ubuntu:24.04": "base"})

    def recipe(self, **more: object) -> None:
        source = {"dockerfile": {"folder": "images/built", "args": {"GREETING": "hello"}, **more}}
        (self.images / "built.yaml").write_text(yamlfile.dumps({"schema": 1, "source": source}))

    def dockerfile(self, text: str) -> None:
        (self.context / "Dockerfile").write_text(text)

    def bases(self, table: dict[str, str]) -> None:
        (self.images / "bases.yaml").write_text(yamlfile.dumps({"schema": 1, "bases": table}))

    def lock(self, store: Store) -> ImageLock:
        return lock_image(store, self.place, "built", quiet)

    def had(self, store: Store) -> Image:
        lock = jsonfile.load(self.images / "built.lock.json", ImageLock)
        return Depot(store, quiet).image(self.place, "built", lock.config_digest)


@pytest.fixture(scope="module")
def mark() -> bytes:
    """A layer of the base that no other run has: what is built on it is ours to remove."""
    return layer(Member(name="mark", content=os.urandom(16)))


@pytest.fixture(scope="module")
def engine(mark: bytes) -> Iterator[docker.APIClient]:
    try:
        client = docker.APIClient(os.environ.get("DOCKER_HOST") or DEFAULT_HOST, version="auto")
    except docker.errors.DockerException as e:
        absent(f"no container engine: {e}")
    yield client
    while any(removed(client, name, mark) for name in client.images(all=True, quiet=True)):
        pass  # a child goes before its parent
    client.close()


def removed(engine: docker.APIClient, name: str, mark: bytes) -> bool:
    with contextlib.suppress(docker.errors.APIError):
        found: dict[str, Any] = engine.inspect_image(name)  # type: ignore[no-untyped-call]
        if digest(mark) in found["RootFS"].get("Layers", ()):
            engine.remove_image(name, force=True)
            return True
    return False


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("shelf"))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, image: Image, mark: bytes) -> Path:
    """A layout of the image that the bases stand for."""
    place = tmp_path_factory.mktemp("layouts") / "tiny"
    content = image.layers[0].tar.read_bytes()
    write_layout(place, [content, mark], press=lambda tar: gzip.compress(tar, 1), user="")
    return place


@pytest.fixture
def home(tmp_path: Path, engine: docker.APIClient, tiny: Path, shelf: Store) -> Home:
    made = Home(tmp_path / "home")
    shutil.copytree(tiny, made.place / "tiny")
    (made.images / "base.yaml").write_text("schema: 1\nsource: {layout: tiny}\n")
    lock_image(shelf, made.place, "base", quiet)
    return made


def test_what_was_built_runs_on_every_runtime(runtime: Runtime, home: Home, shelf: Store) -> None:
    lock = home.lock(shelf)
    assert lock.env["BUILT"] == "yes"
    look = "echo $BUILT $PWD $(id -u); cat /srv/out/greeting; ls -A /srv/out/old /srv/context"
    with runtime.create(BoxSpec(image=home.had(shelf), limits=LIMITS)) as made:
        said = made.exec(["bash", "-c", look], seconds=60)
    assert said.stdout.decode().split("\n") == [
        "yes / 0",
        "hello",
        "/srv/context:",
        "Dockerfile",
        "kept",
        "",
        "/srv/out/old:",
        "new",
        "",
    ]


def test_building_it_again_from_the_same_makes_the_same(home: Home, shelf: Store) -> None:
    assert home.lock(shelf) == home.lock(shelf)


def test_it_is_had_from_the_engine_or_from_the_store(
    home: Home, shelf: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, empty = home.lock(shelf), Store(tmp_path / "empty")
    assert home.had(empty).digest == lock.config_digest
    assert home.had(empty).config.read_text() == lock.config
    assert list((empty.root / "tmp").iterdir()) == []
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert home.had(empty).digest == lock.config_digest


@pytest.mark.skipif(not shutil.which("skopeo"), reason="needs skopeo")
@pytest.mark.skipif(not shutil.which("docker-registry"), reason="needs docker-registry")
def test_pushed_to_a_registry_it_is_had_by_who_cannot_build(
    home: Home, shelf: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = home.lock(shelf)
    with (tmp_path / "built.tar").open("wb") as file:
        file.writelines(docker_archive(home.had(shelf), "built:1"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with running_registry(tmp_path / "registry") as registry:
        target = f"docker://{registry.host}/built:1"
        copy = ("skopeo", "copy", "-q", "--dest-tls-verify=false", "--digestfile", tmp_path / "is")
        subprocess.run([*copy, f"docker-archive:{tmp_path}/built.tar", target], check=True)
        ref = f"{registry.host}/built@{(tmp_path / 'is').read_text().strip()}"
        path = home.images / "built.lock.json"
        jsonfile.write(path, jsonfile.dumps(replace(lock, ref=ref)))
        image = home.had(Store(tmp_path / "empty"))
    assert image.digest == lock.config_digest
    assert [each.diff_id for each in image.layers] == [pin.diff_id for pin in lock.layers]


def test_what_is_nowhere_has_to_be_built_and_is_another_image_then(
    home: Home, shelf: Store, engine: docker.APIClient, tmp_path: Path
) -> None:
    home.dockerfile(f"FROM ubuntu:24.04\nRUN echo {time.time_ns()} > /once\n")
    lock = home.lock(shelf)
    engine.remove_image(tag_for("built", lock.config_digest), force=True)
    with pytest.raises(ImageFault, match="built has to be built from its Dockerfile: ") as e:
        home.had(Store(tmp_path / "empty"))
    assert e.value.hint.startswith("stillroom lock image built, where its recipe is.")
    assert "another image" in e.value.hint
    assert not e.value.retry
    again = home.lock(shelf)
    assert again.config_digest != lock.config_digest
    with pytest.raises(ImageFault, match=f"is {again.config_digest}, but the task pins"):
        Depot(shelf, quiet).image(home.place, "built", lock.config_digest)


def test_an_engine_that_has_something_else_under_the_name_is_refused(
    home: Home, shelf: Store, engine: docker.APIClient, tmp_path: Path
) -> None:
    home.dockerfile(f"FROM ubuntu:24.04\nRUN echo {time.time_ns()} > /twice\n")
    lock = home.lock(shelf)
    tag = tag_for("built", lock.config_digest)
    engine.remove_image(tag, force=True)
    tiny = jsonfile.load(home.images / "base.lock.json", ImageLock)
    engine.tag(tiny.config_digest, tag.partition(":")[0], tag.partition(":")[2])
    words = f"refused: the container engine's {tag} is image {tiny.config_digest}, but image built"
    with pytest.raises(ImageFault, match=words):
        home.had(Store(tmp_path / "empty"))


def test_a_base_that_is_nowhere_is_told_with_its_line(home: Home, shelf: Store) -> None:
    home.dockerfile("# x\nFROM ubuntu:24.04 AS a\n\nFROM never/heard-of:1\nCOPY --from=a / /\n")
    with pytest.raises(SpecError, match="base `never/heard-of:1` is neither in repos/images") as e:
        home.lock(shelf)
    assert e.value.where == f"{home.context}/Dockerfile:4"
    assert "docker pull never/heard-of:1" in e.value.hint
    assert not (home.images / "built.lock.json").exists()


def test_it_is_told_as_any_mistake_in_a_file_is(home: Home, tmp_path: Path) -> None:
    home.dockerfile("FROM never/heard-of:1\n")
    command = [sys.executable, "-m", "sandbox", "lock", "image", "built"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "STILLROOM_STORE": str(tmp_path / "store")}
    said = subprocess.run(
        command, cwd=home.place, env=env, capture_output=True, text=True, check=False
    )
    assert said.returncode == 2
    assert "images/built/Dockerfile:1: base `never/heard-of:1` is neither in" in said.stderr
    assert "hint: map it to an image of repos/images in bases.yaml" in said.stderr


def test_a_base_may_be_one_that_the_engine_has(
    home: Home, shelf: Store, engine: docker.APIClient
) -> None:
    tiny = jsonfile.load(home.images / "base.lock.json", ImageLock)
    home.lock(shelf)  # which puts it there
    engine.tag(tiny.config_digest, "stillroom-test/base", "1")
    try:
        home.dockerfile("FROM stillroom-test/base:1\nCOPY kept /kept\n")
        assert home.lock(shelf).layers[1].diff_id == tiny.layers[1].diff_id
    finally:
        engine.remove_image("stillroom-test/base:1", force=True)


def test_a_base_of_the_table_that_is_not_locked_is_told(home: Home, shelf: Store) -> None:
    home.bases({"python:3.11-slim": "never-locked"})
    with pytest.raises(SpecError, match=r"image `never-locked` by the table, but there is no") as e:
        home.lock(shelf)
    assert e.value.where == f"{home.images}/bases.yaml"
    assert e.value.hint == "stillroom lock image never-locked"


def test_a_step_that_fails_is_told_with_its_last_words(home: Home, shelf: Store) -> None:
    home.dockerfile("FROM ubuntu:24.04\nRUN echo out of luck; exit 3\n")
    with pytest.raises(ImageFault, match=r"cannot build built: .*returned a non-zero code: 3") as e:
        home.lock(shelf)
    assert "out of luck" in e.value.hint
    assert "network: default" in e.value.hint
    assert not e.value.retry


def test_only_the_stage_that_is_asked_for_is_built(home: Home, shelf: Store) -> None:
    home.recipe(target="build")
    assert "BUILT" not in home.lock(shelf).env


def test_a_build_may_be_given_the_engines_network(home: Home, shelf: Store) -> None:
    home.recipe(network="default")
    once = f'RUN echo {time.time_ns()}; test "$(ls /sys/class/net)" = lo'  # nothing of it is cached
    home.dockerfile(f"FROM ubuntu:24.04\n{once}\n")
    with pytest.raises(ImageFault, match="cannot build built") as e:  # it has more than lo now
        home.lock(shelf)
    assert "network: default" not in e.value.hint


def test_without_an_engine_the_fault_says_what_to_do(
    home: Home, shelf: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(RuntimeFault, match="no container engine answers") as e:
        home.lock(shelf)
    assert "start Docker" in e.value.hint


def test_a_built_image_can_be_a_base_of_another(
    home: Home, shelf: Store, engine: docker.APIClient
) -> None:
    lock = home.lock(shelf)
    home.bases({"python:3.11-slim": "built"})
    (home.images / "upon.yaml").write_text(
        "schema: 1\nsource: {dockerfile: {folder: images/built, file: Upon}}\n"
    )
    (home.context / "Upon").write_text("FROM python:3.11-slim\nCOPY kept /more\n")
    upon = lock_image(shelf, home.place, "upon", quiet)
    assert upon.layers[:-1] == lock.layers
    assert ensure(shelf, upon, quiet).env["BUILT"] == "yes"
