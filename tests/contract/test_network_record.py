"""Recorded once from a server, a clone gives the same bytes ever after, without that server."""

import os
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.formats import jsonfile
from sandbox.model.image import ImageLock
from sandbox.model.task import Limits
from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.freeze.build import programs
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.network import cassette
from sandbox.runtime.network.attach import Link, connected
from sandbox.runtime.network.merge import merged
from sandbox.runtime.network.settings import Settings
from sandbox.runtime.spec import BoxSpec, Image
from sandbox.runtime.store import Store, default_store
from tests.support.gits import git
from tests.support.webs import REMEDY, git_backend, serving

DATA = Path(__file__).parents[1] / "data"
CLONE = "git clone -q https://git.test/project.git /tmp/p && cd /tmp/p"
SUMS = "git rev-parse HEAD && find . -name '*.txt' -type f | sort | xargs sha256sum"
PACKS = "sha256sum .git/objects/pack/*.pack"
pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def shelf() -> Store:
    return default_store(os.environ)


@pytest.fixture(scope="module")
def with_git(shelf: Store) -> Image:
    pinned = jsonfile.load(DATA / "images" / "packages.lock.json", ImageLock)
    return ensure(shelf, pinned, lambda *_: None)


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    """project.git with enough in it that a clone asks more than once, and at length."""
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    for n in range(30):
        (work / f"{n}.txt").write_text(f"{n}\n" * n)
        git(work, "add", ".")
        git(work, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", f"{n}")
        git(work, "branch", f"branch-{n}")
    git(tmp_path, "clone", "-q", "--bare", str(work), str(tmp_path / "projects" / "project.git"))
    return tmp_path / "projects"


class Boxes:
    """Boxes of an image, one after the other, each on its own network."""

    def __init__(self, shelf: Store, image: Image, runtime: Runtime, log: Path) -> None:
        self._shelf, self._runtime, self._log = shelf, runtime, log
        self._spec = BoxSpec(image=image, limits=Limits(memory_mib=512, pids=128))

    def run(self, settings: Settings, *scripts: str) -> tuple[list[str], Link]:
        wire = programs(self._shelf).program("wire")
        with ExitStack() as stack:
            link = stack.enter_context(connected(self._shelf, wire, settings))
            box = stack.enter_context(self._runtime.create(link.joined(self._spec)))
            link.start(box)
            said = [said_by(box, script) for script in scripts]
            link.check()
            if settings.mode == "record":
                self.tape(link)
            return said, link

    def tape(self, link: Link) -> None:
        heard = cassette.read_index(link.scratch / "index.jsonl")
        cassette.write(self._log.parent / "tape", merged((), heard), [link.scratch / "blobs"])

    def replay(self) -> Settings:
        found = cassette.load(self._log.parent / "tape", self._shelf, lambda *_: None)
        return Settings(
            mode="replay",
            log=str(self._log),
            cassette="toy-1/cassette",
            remedy=REMEDY,
            entries=found.entries,
            bodies={name: str(path) for name, path in found.bodies.items()},
        )


def said_by(box: Box, script: str) -> str:
    done = box.exec(["bash", "-c", script], seconds=120)
    assert done.exit_code == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


@pytest.fixture
def boxes(shelf: Store, with_git: Image, runtime: Runtime, tmp_path: Path) -> Boxes:
    return Boxes(shelf, with_git, runtime, tmp_path / "network.jsonl")


def test_a_clone_is_the_same_bytes_each_time_without_its_server(
    boxes: Boxes, projects: Path, tmp_path: Path
):
    with serving(git_backend(projects), tmp_path, "git.test") as web:
        settings = Settings(
            mode="record",
            log=str(tmp_path / "network.jsonl"),
            instead={"git.test:443": web.place},
            ca_file=web.ca_file,
        )
        (live,), _ = boxes.run(settings, f"{CLONE} && {SUMS} && {PACKS}")
    script = f"{CLONE} && {SUMS} && {PACKS}"
    first, second = (boxes.run(boxes.replay(), script)[0][0] for _ in range(2))
    assert first == second == live
    assert live.count(".txt") == 30


def test_what_of_a_repository_was_not_recorded_says_so_in_gits_own_words(boxes: Boxes):
    settings = replace(boxes_settings(), log=str(boxes._log))
    (said,), _ = boxes.run(settings, "git clone https://git.test/other.git 2>&1 || true")
    assert "stillroom: refused: GET https://git.test/other.git/info/refs" in said
    assert "cassette: toy-1/cassette" in said
    (said,), _ = boxes.run(
        settings,
        "curl -sSw '%{http_code} %{time_total}' https://a.test/x; curl -sS http://a.test/y",
    )
    assert "403 0." in said
    assert "GET http://a.test/y is not recorded" in said


def boxes_settings() -> Settings:
    return Settings(mode="replay", log="", cassette="toy-1/cassette", remedy=REMEDY)


def test_this_machine_has_gits_server():
    done = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True)
    assert (Path(done.stdout.strip()) / "git-http-backend").exists()
