"""In a box without a network, package managers install from the frozen index, the same each time."""

import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sandbox.formats import indexfile, jsonfile
from sandbox.model.image import ImageLock
from sandbox.model.index import LOCK_NAME, IndexLock, moment
from sandbox.model.task import Limits
from sandbox.runtime.base import Box, ExecResult, Runtime
from sandbox.runtime.freeze.build import programs
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.network.attach import Link, connected
from sandbox.runtime.network.cassette import BLOBS, INDEX, read_index
from sandbox.runtime.network.entry import Entry
from sandbox.runtime.network.index.files import ensure_files
from sandbox.runtime.network.settings import Settings
from sandbox.runtime.spec import BoxSpec, Image, Mount, Stillness
from sandbox.runtime.store import Store, default_store
from tests.support.gits import commit, git
from tests.support.webs import git_backend, serving

DATA = Path(__file__).parents[1] / "data"
LOCK = DATA / "packages" / LOCK_NAME
PIN_NS = int(moment("2024-05-15T12:00:00Z").timestamp()) * 10**9
LIMITS = Limits(memory_mib=1024, pids=256, cpus=2.0)
INSTALLS = {
    "pip": ("pip install requests==2.31.0", "/usr/local/lib/python3.11/dist-packages"),
    "uv": (
        "uv pip install --system --break-system-packages requests",
        "/usr/local/lib/python3.11/dist-packages",
    ),
    "npm": ("cd /srv && npm install is-odd @sindresorhus/is semver@7.6.2", "/srv"),
    "apt": ("apt-get update && apt-get install -y hello jq", "/usr/bin /usr/lib/x86_64-linux-gnu"),
}
USES = {
    "pip": "python3 -c 'import requests; print(requests.__version__)'",
    "uv": "python3 -c 'import requests; print(requests.__version__)'",
    "npm": 'cd /srv && node -p \'require("is-odd")(3) && "2.31.0"\'',
    "apt": "hello && jq -nr '\"2.31.0\"'",
}
"""Each ends in 2.31.0."""

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]


def quiet(text: str, done: int, total: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class World:
    """What boxes are made of, at hand."""

    store: Store
    image: Image
    lock: IndexLock
    npm: Path
    runtime: Runtime
    scratch: Path

    @property
    def settings(self) -> Settings:
        """Of the index alone."""
        return Settings(
            mode="replay",
            log=str(self.scratch / "network.jsonl"),
            cassette="tests/data/packages",
            remedy="to record it: stillroom record packages",
            index=str(LOCK),
            blobs=str(self.store.blob("")),
        )

    @contextmanager
    def box(self) -> Iterator[Box]:
        with self.linked(self.settings) as (box, _):
            yield box

    @contextmanager
    def linked(self, settings: Settings) -> Iterator[tuple[Box, Link]]:
        wire = programs(self.store).program("wire")
        still = None if self.runtime.capabilities().still else Stillness(at_ns=PIN_NS)
        spec = BoxSpec(
            image=self.image,
            limits=LIMITS,
            still=still,
            mounts=(Mount(source=self.npm, target="/opt/npm"),),
        )
        with (
            connected(self.store, wire, settings, self.lock) as link,
            self.runtime.create(link.joined(spec)) as box,
        ):
            link.start(box)
            yield box, link
            link.check()


@pytest.fixture(scope="module")
def shelf() -> Store:
    """Of this user, as for the e2e tests: an image is not fetched for each run."""
    return default_store(os.environ)


@pytest.fixture(scope="module")
def supplies(shelf: Store, tmp_path_factory) -> tuple[Image, IndexLock, Path]:
    pinned = jsonfile.load(DATA / "images" / "packages.lock.json", ImageLock)
    lock = indexfile.load(LOCK)
    npm = indexfile.load(DATA / "packages" / "npm.lock.jsonl")
    for one in (lock, npm):
        ensure_files(shelf, one, quiet)
    folder = tmp_path_factory.mktemp("npm")
    with tarfile.open(shelf.blob(npm.pins[0].sha256)) as archive:
        archive.extractall(folder, filter="tar")
    folder.chmod(0o755)
    return ensure(shelf, pinned, quiet), lock, folder / "package"


@pytest.fixture
def world(shelf, supplies, runtime, tmp_path) -> World:
    image, lock, npm = supplies
    return World(shelf, image, lock, npm, runtime, tmp_path)


def run(box: Box, command: str) -> ExecResult:
    return box.exec(["bash", "-c", command], seconds=240)


def words(done: ExecResult) -> str:
    return (done.stdout + done.stderr).decode(errors="replace")


def installed(world: World, kind: str) -> str:
    """The hashes of what it leaves, but for bytecode, which has a time in it."""
    command, folders = INSTALLS[kind]
    with world.box() as box:
        done = run(box, command)
        assert done.exit_code == 0, words(done)
        used = run(box, USES[kind])
        assert used.exit_code == 0, words(used)
        assert used.stdout.decode().splitlines()[-1] == "2.31.0"
        files = "-type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum"
        found = run(box, f"find {folders} {files}")
        assert found.exit_code == 0, words(found)
        return found.stdout.decode()


@pytest.mark.parametrize("kind", INSTALLS)
def test_what_is_installed_twice_is_the_same_bytes(world: World, kind: str):
    once = installed(world, kind)
    assert len(once.splitlines()) > 10
    assert installed(world, kind) == once


CLONES = (
    "cd /srv && git clone -q https://git.example.org/toy.git whole && "
    "git clone -q --depth 1 https://git.example.org/toy.git shallow"
)
TREE = "cd /srv && find . -type f ! -path '*/.git/index' ! -path '*/.git/logs/*'"
"""Git's index and its logs have times in them."""


def test_what_was_cloned_is_cloned_again_to_the_same_bytes(world: World):
    heard, blobs = record_clones(world)
    settings = replace(
        world.settings,
        entries=heard,
        bodies={e.sha256: str(blobs / e.sha256) for e in heard},
    )
    trees = []
    for _ in range(2):
        with world.linked(settings) as (box, _link):
            done = run(box, CLONES)
            assert done.exit_code == 0, words(done)
            trees.append(run(box, f"{TREE} -print0 | LC_ALL=C sort -z | xargs -0 sha256sum").stdout)
            assert b" ./whole/file\n" in trees[-1]
            more = run(box, "git clone -q https://git.example.org/other.git /srv/other")
            assert more.exit_code == 128
            assert "403" in words(more)
    assert trees[0] == trees[1]


def record_clones(world: World) -> tuple[tuple[Entry, ...], Path]:
    """From a server of this machine, which then is gone."""
    project = world.scratch / "projects" / "toy.git"
    project.mkdir(parents=True)
    git(project, "init", "-q", "-b", "main")
    for text in ("one", "two"):
        (project / "file").write_text(text)
        commit(project)
    host = "git.example.org"
    with serving(git_backend(project.parent), world.scratch, host) as web:
        settings = replace(
            world.settings,
            mode="record",
            instead={f"{host}:443": web.place},
            ca_file=web.ca_file,
        )
        with world.linked(settings) as (box, link):
            done = run(box, CLONES)
            assert done.exit_code == 0, words(done)
            kept = world.scratch / "blobs"
            shutil.copytree(link.scratch / BLOBS, kept)
            return read_index(link.scratch / INDEX), kept


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("pip install flask", "flask is not in this box's frozen package index: index.lock.jsonl"),
        ("uv pip install --system flask", "flask was not found in the package registry"),
        (
            "cd /srv && npm install left-pad",
            "left-pad is not in this box's frozen package index: index.lock",
        ),
        ("apt-get update && apt-get install -y sl", "Unable to locate package sl"),
        ("curl -sSf https://example.org/", "403"),
    ],
)
def test_what_is_not_listed_is_refused(world: World, command: str, said: str):
    with world.box() as box:
        done = run(box, command)
        assert done.exit_code not in (0, None)
        assert said in " ".join(words(done).split())


def test_a_refusal_comes_at_once_and_names_the_lock(world: World):
    ask = "curl -s -w '%{time_total}\\n' -o /tmp/said https://pypi.org/simple/flask/"
    with world.box() as box:
        # The best of some: machines are busy.
        took = [float(run(box, ask).stdout) for _ in range(5)]
        assert min(took) < 0.1
        assert "index.lock.jsonl" in words(run(box, "cat /tmp/said"))
