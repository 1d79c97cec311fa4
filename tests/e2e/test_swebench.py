"""From a row of SWE-bench data to verdicts, and from verdicts to the files its tools read."""

import json
from pathlib import Path

import pytest

from sandbox.runtime.store import Store
from tests.e2e.conftest import Stillroom
from tests.support.swebenchrows import h11_row, write_lines

pytestmark = [pytest.mark.box, pytest.mark.network, pytest.mark.timeout(900)]
NAME = "python-hyper__h11-170"


def test_an_instance_is_imported_locked_run_graded_and_exported(
    stillroom: Stillroom, store: Store, tmp_path: Path
):
    row = h11_row(store, tmp_path / "clones" / "python-hyper__h11")
    strange = row | {"instance_id": "django__django-1", "repo": "django/django"}
    data = write_lines(tmp_path / "data.jsonl", row, strange)

    done = stillroom("import", "swebench", str(data), "--repos", "clones", "--try", "--json")
    assert done.status == 0, done.err
    converted, missing, end = done.lines
    assert converted["task"] == NAME
    assert "its reference resolves it here" in converted["notes"]
    checks = (tmp_path / "verifiers" / NAME / "checks.yaml").read_text()
    assert checks.count("test_early_detection_of_invalid_request[") == 3, "whole ids for a cut one"
    assert checks.count("cut at a space") == 1
    assert "django/django is not on this machine" in missing["reasons"][0]
    assert end["summary"] == {"read": 2, "imported": 1, "not_here": 1}
    assert json.loads((tmp_path / "imports" / "data.json").read_text())["read"] == 2

    spec = tmp_path / "task_specs" / NAME / "task.yaml"
    before = spec.read_bytes()
    for what in (("task", NAME), ("repo", f"python-hyper__h11-{row['base_commit'][:12]}")):
        locked = stillroom("lock", *what)
        assert locked.status == 0, locked.err
    assert spec.read_bytes() == before

    rewards = {}
    for agent in ("oracle", "nop"):
        ran = stillroom("run", NAME, "--agent", agent, "--json", "--out", agent)
        assert ran.status == 0, ran.err
        rewards[agent] = ran.lines[0]["verdict"]["reward"]
    assert rewards == {"oracle": 1.0, "nop": 0.0}

    patch = {"instance_id": NAME, "model_patch": row["patch"], "model_name_or_path": "org/m"}
    preds = write_lines(tmp_path / "preds.jsonl", patch, patch | {"instance_id": "none-1"})
    graded = stillroom("grade", str(preds), "--dataset", str(data), "--out", "graded")
    assert graded.status == 2, graded.err
    assert "preds.jsonl:2: unknown: none-1" in graded.out
    report = json.loads((tmp_path / "graded" / "org__m.graded.json").read_text())
    assert report["resolved_ids"] == [NAME]
    assert report["incomplete_ids"] == ["django__django-1"]

    left = stillroom("export", "leaderboard", "oracle", "--name", "Oracle", "--out", "entry")
    assert left.status == 0, left.err
    told = json.loads((tmp_path / "entry" / "logs" / NAME / "report.json").read_text())[NAME]
    assert told["resolved"]
    assert len(told["tests_status"]["FAIL_TO_PASS"]["success"]) == 2
    traj = json.loads((tmp_path / "entry" / "trajs" / f"{NAME}.traj").read_text())
    assert (
        traj["info"]["submission"]
        == (tmp_path / "oracle" / "rollouts" / NAME / "0" / "submission.patch").read_text()
    )
