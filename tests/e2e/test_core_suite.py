"""The twelve tasks: the reference solutions resolve them, doing nothing does not, anywhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Stillroom

pytestmark = [pytest.mark.box, pytest.mark.network, pytest.mark.timeout(900)]
TASKS = 12


def verdicts(path: Path) -> dict[str, Any]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {line["task"]: line["verdict"] for line in lines}


@pytest.fixture(scope="module")
def by_runtime() -> dict[str, dict[str, Any]]:
    return {}


@pytest.mark.parametrize("runtime", ["embedded", pytest.param("docker", marks=pytest.mark.docker)])
def test_every_task_is_sound_and_the_runtime_makes_no_difference(
    runtime: str, stillroom: Stillroom, tmp_path: Path, by_runtime: dict[str, dict[str, Any]]
):
    """Both runtimes in one test file: whichever comes second is held against the first."""
    done = stillroom(
        "check",
        "--suite",
        "core",
        "--quick",
        "-j",
        "2",
        "--runtime",
        runtime,
        "--out",
        "out",
        seconds=850,
    )
    assert done.status == 0, done.out + done.err
    assert done.out.count(": sound\n") == TASKS
    found = {
        agent: verdicts(tmp_path / "out" / agent / "results.jsonl") for agent in ("oracle", "nop")
    }
    assert [v["resolved"] for v in found["oracle"].values()] == [True] * TASKS
    assert [v["resolved"] for v in found["nop"].values()] == [False] * TASKS
    for other in by_runtime.values():
        assert found == other
    by_runtime[runtime] = found
