"""What is left of boxes of the docker runtime when they are gone, and of their seeds."""

import gc
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from sandbox.audit.conformance import Bench
from sandbox.audit.conformance.lifetime import controller
from sandbox.errors import RuntimeFault
from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.docker.address import DEFAULT_HOST
from sandbox.runtime.docker.engine import BRIEF_SECONDS
from sandbox.runtime.spec import BoxSpec, Image, Seed
from sandbox.runtime.store import Store
from tests.contract.conftest import LIMITS
from tests.support.absent import absent
from tests.support.tars import Entry, make_tar, read_tar, unpacked

pytestmark = [pytest.mark.box, pytest.mark.docker]


@pytest.fixture
def engine() -> Iterator[docker.APIClient]:
    """The engine as somebody else sees it."""
    client = docker.APIClient(os.environ.get("DOCKER_HOST") or DEFAULT_HOST, version="auto")
    yield client
    client.close()


@pytest.fixture(params=["docker"])
def opened_twice(request: pytest.FixtureRequest, store: Store) -> Iterator[list[DockerRuntime]]:
    made = [DockerRuntime(store), DockerRuntime(store)]
    try:
        made[0].capabilities()
    except RuntimeFault as e:
        absent(f"{request.param} cannot run here: {e}")
    yield made
    for runtime in made:
        runtime.close()


def seeded(folder: Path, name: str, content: bytes) -> Seed:
    archive = make_tar([Entry(name=name, content=content)])
    tar = folder / "seed.tar"
    tar.write_bytes(archive)
    (folder / "seed").mkdir()
    return Seed(tar=tar, folder=unpacked(archive, folder / "seed"))


def images(engine: docker.APIClient, store: Store) -> set[str]:
    path = store.root / "docker" / "id"
    label = f"stillroom.seeded={path.read_text() if path.exists() else 'none'}"
    found = engine.images(filters={"label": label})
    return {name for image in found for name in image["RepoTags"] or ()}


def test_a_reset_of_what_is_gone_leaves_no_container(
    opened_twice: list[DockerRuntime], spec: BoxSpec, engine: docker.APIClient
):
    labels = {"test": f"gone-{os.getpid()}"}
    box = opened_twice[0].create(replace(spec, labels=labels))
    box.destroy()
    with pytest.raises(RuntimeFault, match="gone"):
        box.reset()
    assert not engine.containers(all=True, filters={"label": f"test=gone-{os.getpid()}"})


@pytest.mark.parametrize("end", ["reset", "destroy", "stop"])
def test_a_terminal_of_a_box_that_is_gone_has_the_code_of_what_was_killed(
    opened_twice: list[DockerRuntime], spec: BoxSpec, end: str
):
    with opened_twice[0].create(spec) as box:
        pty = box.open_pty(["sleep", "60"])
        getattr(box, end)()
        assert pty.wait(10) == 137
        pty.resize(20, 20)
        pty.close()
        assert pty.wait(0) == 137


def test_a_reading_that_nobody_ends_does_not_hold_up_the_end_of_a_box(
    opened_twice: list[DockerRuntime], spec: BoxSpec
):
    begun = time.monotonic()
    with opened_twice[0].create(spec) as box:
        box.exec(["sh", "-c", "head -c 50000000 /dev/zero > /tmp/much"], seconds=20)
        half_read = box.get("/tmp/much")
        next(half_read)
    assert time.monotonic() - begun < BRIEF_SECONDS
    with pytest.raises(RuntimeFault):
        list(half_read)


def test_a_reading_that_is_dropped_leaves_the_box_as_it_was(
    opened_twice: list[DockerRuntime], spec: BoxSpec
):
    with opened_twice[0].create(spec) as box:
        box.exec(["sh", "-c", "head -c 50000000 /dev/zero > /tmp/much"], seconds=20)
        gc.disable()
        try:
            next(iter(box.get("/tmp/much")))
            begun = time.monotonic()
            assert not box.lost()
        finally:
            gc.enable()
        assert time.monotonic() - begun < BRIEF_SECONDS / 2


def test_nothing_is_put_into_a_stopped_box(opened_twice: list[DockerRuntime], spec: BoxSpec):
    with opened_twice[0].create(spec) as box:
        box.stop()
        with pytest.raises(RuntimeFault, match="stopped"):
            box.put(make_tar([Entry(name="a")]), "/tmp")


def test_a_link_on_the_way_to_a_member_gives_way(opened_twice: list[DockerRuntime], spec: BoxSpec):
    """Where the archive names no folder; the folder it is put into may be a link."""
    with opened_twice[0].create(spec) as box:
        script = "mkdir -m 700 /tmp/kept /srv; ln -s /etc /tmp/way; ln -s /tmp /srv/tmp"
        assert box.exec(["sh", "-c", script], seconds=30).exit_code == 0
        names = ("way/passwd", "way/deep/er/file", "kept/file", "\udcff/file")
        box.put(make_tar([Entry(name=n, content=b"x") for n in names]), "/srv/tmp")
        script = "stat -c '%a %F' /tmp/way /tmp/kept /srv/tmp; cat /tmp/way/deep/er/file; head -c 4 /etc/passwd"
        found = box.exec(["sh", "-c", script], seconds=30).stdout.decode()
        assert read_tar(box.get("/tmp/\udcff"))["\udcff/file"].content == b"x"
    assert found == "755 directory\n700 directory\n777 symbolic link\nxroot"


def test_boxes_that_find_out_together_what_the_engine_cannot_give_all_start(
    store: Store, spec: BoxSpec, opened_twice: list[DockerRuntime]
):
    many = replace(spec, limits=replace(LIMITS, open_files=1 << 20))
    with ThreadPoolExecutor(4) as pool:
        boxes = list(pool.map(lambda _: opened_twice[0].create(many), range(4)))
    for box in boxes:
        assert int(box.exec(["sh", "-c", "ulimit -n"], seconds=30).stdout) >= 1024
        box.destroy()


def test_a_seeded_image_goes_with_the_last_run_that_used_it(
    opened_twice: list[DockerRuntime],
    spec: BoxSpec,
    tmp_path: Path,
    store: Store,
    engine: docker.APIClient,
):
    one, other = opened_twice
    others = images(engine, store)  # of boxes of other tests
    with_seed = replace(spec, seeds=(seeded(tmp_path, "file", os.urandom(8)),))
    one.create(with_seed).destroy()
    (made,) = images(engine, store) - others
    other.create(with_seed).destroy()
    one.close()
    assert other.reap() == []
    assert images(engine, store) - others == {made}
    other.create(with_seed).destroy()
    other.close()
    assert images(engine, store) <= others


@pytest.mark.parametrize("benches", ["docker"], indirect=True)
def test_a_seeded_image_of_a_dead_run_is_reaped(
    opened_twice: list[DockerRuntime], bench: Bench, engine: docker.APIClient
):
    marker = f"4242.{os.getpid()}"
    others = images(engine, bench.store)
    seed = seeded(bench.scratch, "file", os.urandom(8))
    dying = replace(bench, spec=replace(bench.spec, seeds=(seed,)))
    with controller(dying, marker) as dead:
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        (made,) = images(engine, bench.store) - others
        assert f"docker image {made}" in opened_twice[0].reap()
        assert made not in images(engine, bench.store)


def test_a_seed_with_a_file_that_is_called_like_a_whiteout_is_refused(
    opened_twice: list[DockerRuntime], spec: BoxSpec, tmp_path: Path, image: Image
):
    odd = seeded(tmp_path, "repo/.wh.file", b"content")
    with pytest.raises(RuntimeFault, match=r"\.wh\.file") as raised:
        opened_twice[0].create(replace(spec, seeds=(odd,)))
    assert not raised.value.retry
