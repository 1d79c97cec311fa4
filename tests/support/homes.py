"""A small task, as files of a home and as a value."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from sandbox.formats.digest import Entry, folder_entries, tree_digest
from sandbox.formats.taskfile import load_task
from sandbox.model.task import CheckSpec, Digest, Limits, TaskSpec
from sandbox.runtime.fake import NO_IMAGE
from sandbox.runtime.freeze.preload import LIBRARY
from sandbox.runtime.repo.pins import Pinned
from sandbox.runtime.spec import Image, ImageLayer, Seed
from sandbox.runtime.supplies import Depot, Supplies
from sandbox.runtime.tarball import pack

TASK = """\
schema: 1
id: toy-1
instruction: instruction.md
repo:
  name: toy
  commit: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
  tree: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
image:
  name: none
  digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
workdir: /work/toy
env:
  LEVEL: "3"
submission:
  paths: [src]
solution:
  patch: solution.patch
verifier:
  bundle:
    folder: bundle
    paths: [tests]
    digest: sha256:1111111111111111111111111111111111111111111111111111111111111111
  runner: pytest
  run: [tests]
  options:
    markers: slow
  seconds: 60
clock:
  at: 2024-05-15T12:00:00Z
limits:
  turns: 5
metadata:
  category: bug-fix
  difficulty: easy
  licence: MIT
  source: made for tests
"""
CHECKS = """\
schema: 1
scored:
  - tests/test_a.py::test_one
  - id: tests/test_a.py::test_two
    weight: 3
gates:
  - tests/test_a.py::test_gate
excluded:
  - id: tests/test_a.py::test_flaky
    reason: asks the network
"""
RUNNER = b"# what would run the hidden tests\n"


def write_home(home: Path, task: str = TASK, checks: str = CHECKS, *, name: str = "toy-1") -> Path:
    """A home with one task, which is valid unless it is told otherwise."""
    files = {
        f"task_specs/{name}/task.yaml": task,
        f"task_specs/{name}/instruction.md": "Mend it.\n",
        f"task_specs/{name}/solution.patch": "",
        f"verifiers/{name}/checks.yaml": checks,
        f"verifiers/{name}/bundle/tests/test_a.py": "def test_one(): ...\n",
        "repos/lock.yaml": "schema: 1\nrepos: {}\n",
    }
    for path, text in files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    return home


def bundle_digest(home: Path, name: str = "toy-1") -> Digest:
    return tree_digest(folder_entries(home / "verifiers" / name / "bundle"))


def a_task(
    home: Path, *, checks: tuple[CheckSpec, ...] = (), limits: Limits | None = None, **more: Any
) -> TaskSpec:
    task = load_task(write_home(home), "toy-1")
    verifier = replace(task.verifier, checks=checks or task.verifier.checks)
    return replace(task, verifier=verifier, limits=limits or task.limits, **more)


def a_seed(folder: Path, entries: dict[str, bytes]) -> Seed:
    """Files of a box, as the runtime gets them."""
    folder.mkdir(parents=True, exist_ok=True)
    tar = folder / "seed.tar"
    tar.write_bytes(pack(Entry(path, "file", data) for path, data in entries.items()))
    return Seed(tar=tar, folder=folder)


def some_supplies(task: TaskSpec, folder: Path) -> Supplies:
    """What a depot would hand out for a task whose repository holds one file."""
    seed = a_seed(folder, {"work/toy/src/a.py": b"a = 1\n"})
    return Supplies(
        image=NO_IMAGE,
        repo=Pinned(folder / "none.git", task.repo),
        seed=seed,
        base=(Entry("src/a.py", "file", b"a = 1\n"),),
        tests=(Entry("tests/test_a.py", "file", b"def test_one(): ...\n"),),
        runners={"run_pytest.py": RUNNER, "run_plain.py": RUNNER},
    )


def with_library(folder: Path) -> Image:
    """An image that has libfaketime, in one layer that is `folder`."""
    path = folder / LIBRARY.lstrip("/")
    path.parent.mkdir(parents=True)
    path.symlink_to("/elsewhere/in/the/image.so")
    layer = ImageLayer(diff_id=NO_IMAGE.digest, tar=folder / "tar", folder=folder)
    return replace(NO_IMAGE, layers=(layer,))


class GivenDepot(Depot):
    """Hands out what it was given: no image is built, nothing is fetched."""

    given: Supplies

    def supply(self, task: TaskSpec) -> Supplies:
        del task
        return self.given
