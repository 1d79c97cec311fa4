"""Tasks of Harbor and Terminal-Bench, imported and run in real boxes; ours, exported and imported."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from sandbox.formats.taskfile import load_task
from tests.e2e.conftest import Stillroom
from tests.support.peertasks import BENCH, HARBOR, write

pytestmark = [pytest.mark.box, pytest.mark.network]
HARBOR_PYTHON = os.environ.get("STILLROOM_TEST_HARBOR", "")
"""A Python that has Harbor, from PyPI: its own loader is asked only where that is given."""
_LOAD = """\
import sys
from pathlib import Path
from harbor.models.task.task import Task
for name in sys.argv[1:]:
    assert Task.is_valid_dir(Path(name)), name
    task = Task(Path(name))
    print(task.name, task.config.environment.docker_image)
"""


@pytest.mark.parametrize(
    ("kind", "files", "oracle", "floor"),
    [
        ("harbor", HARBOR["part"], 1.0, 0.25),
        ("terminal-bench", BENCH["usual"], 1.0, 0.0),
        ("terminal-bench", BENCH["same-shell"], 1.0, 0.0),
    ],
    ids=["harbor", "terminal-bench", "same-shell"],
)
def test_an_imported_task_gives_all_to_its_solution_and_its_floor_to_nothing(
    stillroom: Stillroom,
    tmp_path: Path,
    kind: str,
    files: dict[str, str],
    oracle: float,
    floor: float,
):
    theirs = write(files, tmp_path / "theirs" / "one")
    done = stillroom("import", kind, str(theirs), "--json")
    assert done.status == 0, done.err
    (task,) = done.lines[0]["tasks"]
    assert (task["oracle"], task["floor"]) == (oracle, floor)
    for agent, reward in (("oracle", oracle), ("nop", floor)):
        run = stillroom("run", task["task"], "--agent", agent, "--json", "-q")
        assert run.lines[0]["verdict"]["reward"] == pytest.approx(reward), run.out
    spec = (tmp_path / "task_specs" / task["task"] / "task.yaml").read_text()
    assert ("floor:0.25" in spec) == bool(floor)


def has_harbor() -> bool:
    """Harbor's own oracle needs an engine, and `docker compose` of version 2."""
    if not HARBOR_PYTHON:
        return False
    said = subprocess.run(
        ["docker", "compose", "version", "--short"], capture_output=True, text=True, check=False
    )
    return said.returncode == 0 and said.stdout.lstrip("v").startswith("2.")


def by_harbor(folder: Path, jobs: Path, agent: str) -> float:
    """The reward that Harbor itself gives."""
    program = str(Path(HARBOR_PYTHON).parent / "harbor")
    line = [program, "run", "-p", str(folder), "-a", agent, "-o", str(jobs), "--job-name", agent]
    done = subprocess.run(
        [*line, "-q", "-y", "-n", "1"],
        env={**os.environ, "HARBOR_TELEMETRY": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = list((jobs / agent).glob("*/verifier/reward.json"))
    assert len(found) == 1, done.stdout + done.stderr
    reward = json.loads(found[0].read_text())["reward"]
    assert isinstance(reward, float)
    return reward


@pytest.mark.skipif(not has_harbor(), reason="needs STILLROOM_TEST_HARBOR and docker compose 2")
@pytest.mark.parametrize(
    ("files", "floor"), [(None, 0.0), (HARBOR["part"], 0.25)], ids=["ours", "converted"]
)
def test_harbor_itself_rewards_an_exported_task_as_we_do(
    stillroom: Stillroom, tmp_path: Path, files: dict[str, str] | None, floor: float
):
    if files is None:
        assert stillroom("new", "part").status == 0
    else:
        assert stillroom("import", "harbor", str(write(files, tmp_path / "given"))).status == 0
    done = stillroom(
        "export", "harbor", "part", "--out", "theirs", "--images", "images",
        "--network", "public", "--image-prefix", "stillroom-test/", "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    (archive,) = (tmp_path / "images").iterdir()
    subprocess.run(["docker", "load", "-q", "-i", str(archive)], capture_output=True, check=True)
    try:
        folder = tmp_path / "theirs" / "part"
        assert by_harbor(folder, tmp_path / "jobs", "oracle") == 1.0
        assert by_harbor(folder, tmp_path / "jobs", "nop") == floor
    finally:
        name = done.lines[0]["image"]
        subprocess.run(["docker", "image", "rm", name], capture_output=True, check=True)


def test_an_exported_task_is_the_same_when_it_comes_back(stillroom: Stillroom, tmp_path: Path):
    assert stillroom("new", "mine").status == 0
    done = stillroom("export", "harbor", "mine", "--out", "theirs", "--json")
    assert done.status == 0, done.err
    assert {"clock", "verifier"} <= {row["field"] for row in done.lines[0]["rows"]}
    folder = tmp_path / "theirs" / "mine"
    names = {p.name for p in folder.iterdir()}
    assert names == {"task.toml", "instruction.md", "environment", "tests", "solution"}
    if HARBOR_PYTHON:
        loaded = subprocess.run(
            [HARBOR_PYTHON, "-c", _LOAD, str(folder)],
            env={**os.environ, "HARBOR_TELEMETRY": "0"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert loaded.stdout.startswith("stillroom/mine stillroom/python-3.11:")
    back = stillroom("import", "harbor", str(folder), "--out", "back", "--json")
    assert back.status == 0, back.err + back.out
    (task,) = back.lines[0]["tasks"]
    assert (task["oracle"], task["floor"]) == (1.0, 0.0)
    record = json.loads((tmp_path / "back/task_specs/mine/import.json").read_text())
    assert record["format"] == "harbor"
    ours, again = (load_task(tmp_path / at, "mine") for at in ("", "back"))
    assert again.instruction == ours.instruction
    assert again.workdir == ours.workdir
    kept = ("wall_seconds", "cpus", "memory_mib", "disk_mib")
    assert [getattr(again.limits, k) for k in kept] == [getattr(ours.limits, k) for k in kept]
    assert again.repo.tree == ours.repo.tree
