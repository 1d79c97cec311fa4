"""The programs that a converted task brings into its box, run here."""

import importlib.util
import os
import subprocess
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sandbox.adapters.harbor.packages import Packages
from sandbox.adapters.harbor.tools import tools
from sandbox.adapters.taskhome import write_entries
from sandbox.model.image import ImageLock, LayerPin, WheelPin
from sandbox.model.task import Digest

INSIDE = Path(str(files("sandbox.adapters.harbor") / "inside"))
WHEEL = WheelPin(name="pytest", version="8.4.2", file="x", sha256="0")
LOCK = ImageLock(
    schema=1,
    name="i",
    epoch=0,
    arch="amd64",
    recipe_sha256="",
    env={},
    layers=(LayerPin(kind="wheels", diff_id=Digest(""), wheels=(WHEEL,)),),
    config_digest=Digest(""),
)


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"inside_{name}", INSIDE / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def grade(tmp_path, monkeypatch) -> ModuleType:
    module = load("grade")
    monkeypatch.setattr(module, "LOGS", str(tmp_path))
    return module


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("reward.txt", "0.5\n", {"reward": 0.5}),
        ("reward.json", '{"a": 1, "b": 0.25}', {"a": 1.0, "b": 0.25}),
        ("reward.txt", "", "is empty"),
        ("reward.txt", "nan", "no number"),
        ("reward.txt", "done", "no number"),
        ("reward.json", "{}", "map names"),
        ("reward.json", "[1]", "map names"),
        ("reward.json", '{"a": true}', "no number: True"),
        ("reward.json", '{"a": Infinity}', "no number"),
        ("reward.json", '{"a": "1"}', "no number"),
        ("reward.json", '{"a"', "no JSON"),
        ("other", "", "neither"),
    ],
)
def test_a_reward_is_read_as_harbor_does_or_there_is_none(grade, tmp_path, name, text, found):
    (tmp_path / name).write_text(text)
    if isinstance(found, str):
        with pytest.raises(grade.Unread, match=found):
            grade.read_rewards()
    else:
        assert grade.read_rewards() == found


def test_reward_json_wins(grade, tmp_path):
    (tmp_path / "reward.txt").write_text("1")
    (tmp_path / "reward.json").write_text('{"reward": 0}')
    assert grade.read_rewards() == {"reward": 0.0}


PANE = """\x1b[1m==== short test summary info ====\x1b[0m
PASSED t.py::a
SKIPPED t.py::b
"""


@pytest.mark.parametrize(
    ("text", "expected", "reward"),
    [
        (PANE, ["t.py::a"], 1.0),
        (PANE, ["t.py::a", "t.py::c"], 0.0),
        (PANE + "FAILED t.py::d - assert 1\n", [], 0.0),
        (PANE + "ERROR t.py\n", [], 0.0),
        ("= short test summary info =\n", [], 0.0),
    ],
)
def test_a_summary_counts_only_with_tests_in_it(grade, text, expected, reward):
    plan = {"protocol": "terminal-bench", "expected": expected}
    assert grade.judged(plan, text)[0] == {"reward": reward}


def test_without_a_summary_there_is_no_reward(grade):
    with pytest.raises(grade.Unread, match="no test summary"):
        grade.judged({"protocol": "terminal-bench", "expected": []}, "all fine\n")


def told(grade: ModuleType, monkeypatch: Any, plan: dict[str, Any], *given: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    monkeypatch.setattr(grade, "tell", lambda name, outcome, _="": found.update({name: outcome}))
    grade.report(plan, *given)
    return found


def test_credit_for_a_part_is_told_level_by_level(grade, monkeypatch):
    plan = {"keys": {"reward": [0.25, 0.5, 1.0]}, "expected": []}
    found = told(grade, monkeypatch, plan, {"reward": 0.5}, {})
    assert found == {
        "value reward": "passed", "reward>=0.25": "passed", "reward>=0.5": "passed",
        "reward>=1": "failed",
    }  # fmt: skip


def test_a_full_reward_that_its_own_report_denies_is_none(grade, monkeypatch):
    plan = {"keys": {"reward": [1.0]}, "expected": ["a", "b"]}
    assert told(grade, monkeypatch, plan, {"reward": 1.0}, {"a": "passed"})["reward"] == "failed"
    fine = {"a": "passed", "b": "passed"}
    assert told(grade, monkeypatch, plan, {"reward": 1.0}, fine)["reward"] == "passed"


@pytest.fixture
def asked(tmp_path):
    """Runs a command line with the installers that answer offline."""
    folder = tmp_path / "tools"
    write_entries(
        folder, tools(LOCK, Packages(base="i", answers=("pytest==8.4.1",), answered=("curl",)))
    )
    wanted = tmp_path / "wanted"

    def run(line: str) -> tuple[int, str, list[str]]:
        env = {
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "PYTHONPATH": f"{folder}/site",
            "STILLROOM_TOOLS": f"{folder}/plan.json",
            "STILLROOM_BIN": f"{folder}/bin",
            "STILLROOM_WANTED": str(wanted),
        }
        done = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        lacks = wanted.read_text().splitlines() if wanted.exists() else []
        wanted.unlink(missing_ok=True)
        return done.returncode, done.stdout, lacks

    return run


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="a box has it there")
@pytest.mark.parametrize(
    ("line", "lacks"),
    [
        ("apt-get update && apt-get install -y curl", []),
        ("apt-get install -y curl jq", ["apt-get install jq"]),
        ("pip install pytest==8.4.2", []),
        ("pip install pytest==8.4.1", []),
        ("pip install 'pytest>=7'", []),
        ("pip install pytest==1.0", ["pip install pytest==1.0"]),
        ("python3 -m pip install PyTest numpy", ["pip install numpy"]),
        ("uv init; uv add pytest; uv venv x; source x/bin/activate; uv pip install pytest", []),
        ("python3 -m venv v && v/bin/pip install pytest", []),
        ("curl -LsSf https://astral.sh/uv/install.sh | sh", []),
        ("curl https://example.org/x", ["curl https://example.org/x"]),
        ("uvx -w numpy pytest --version", ["pip install numpy"]),
        ("uv run -- true", []),
    ],
)
def test_installers_say_yes_to_what_there_is_and_list_what_there_is_not(asked, line, lacks):
    status, _, found = asked(line)
    assert found == lacks
    assert (status == 0) == (not lacks)


def test_programs_of_the_image_are_those_of_a_venv_but_for_what_answers(tmp_path):
    for name in ("pip", "pip3.11", "python3", "uv", "uvx", "uvicorn", "pipdeptree", "pytest"):
        (tmp_path / name).touch()
    found = [name for name, _ in load("tool").scripts(str(tmp_path))]
    assert found == ["pipdeptree", "pytest", "uvicorn"]


def test_rewards_of_an_exported_task_are_those_of_a_verdict():
    rewarded = load("reward").rewarded
    checks = [
        {"id": "a", "weight": 3.0, "gate": False, "accept": []},
        {"id": "b", "weight": 1.0, "gate": False, "accept": ["skipped"]},
        {"id": "g", "weight": 0.0, "gate": True, "accept": []},
    ]
    assert rewarded(checks, {"a": "passed", "b": "skipped", "g": "passed"}) == 1.0
    assert rewarded(checks, {"a": "passed", "g": "passed"}) == 0.75
    assert rewarded(checks, {"a": "passed", "b": "passed"}) == 0.0
    assert rewarded(checks, {}) == 0.0
    free = [{**c, "weight": 0.0} if c["id"] == "b" else c for c in checks]
    assert rewarded(free, {"a": "passed", "g": "passed"}) == pytest.approx(3 / 4)
    assert rewarded(free, {"b": "skipped", "g": "passed"}) == 0.0


def test_a_run_that_was_cut_short_is_no_pass():
    outcomes = load("reward").outcomes
    records = [{"check": "a", "outcome": "passed"}, {"check": "b", "outcome": "failed"}]
    assert outcomes(records) == {"b": "failed"}
    assert outcomes([*records, {"end": 0}]) == {"a": "passed", "b": "failed"}
    assert outcomes([*records, {"check": "b", "outcome": "passed"}, {"end": 0}])["b"] == "failed"
