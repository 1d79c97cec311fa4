"""Predictions: which of them are graded, and the answer to each of the others."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.adapters.evaluation import evaluated, write_reports
from sandbox.adapters.leaderboard import Entry, export_leaderboard
from sandbox.adapters.predictions import (
    ANSWERS,
    SortedOut,
    read_answers,
    sort_out,
    write_answers,
)
from sandbox.cli import main
from sandbox.errors import SpecError, UserError
from sandbox.formats import yamlfile
from sandbox.formats.swebench import read_predictions
from sandbox.formats.swebenchreport import (
    Result,
    Sides,
    folder_name,
    folder_names,
    instance_report,
    run_report,
)
from sandbox.formats.taskfile import load_task
from sandbox.model.record import Ending, FaultRecord, Rollout, VerdictRecord
from sandbox.model.task import TaskId
from sandbox.rollout.folder import RolloutFolder
from sandbox.rollout.outdir import Manifest, OutFolder
from tests.support.homes import write_home
from tests.support.swebenchrows import ROW, write_lines
from tests.support.toldrun import LOOKED, write_events

PATCH = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"
TASK = TaskId("toy-1")
NAME = "Toy-1"


def a_prediction(name: str = NAME, patch: Any = PATCH, model: Any = "m") -> dict[str, Any]:
    return {"instance_id": name, "model_name_or_path": model, "model_patch": patch}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With one task that came from a data set."""
    home = write_home(tmp_path / "home")
    origin = home / "task_specs" / TASK / "origin.json"
    origin.write_text(json.dumps({"instance_id": NAME}))
    return home


@pytest.fixture
def data(tmp_path: Path) -> Path:
    names = (NAME, "other-2", "third-3")
    return write_lines(tmp_path / "data.jsonl", *(ROW | {"instance_id": n} for n in names))


def sorted_out(home: Path, data: Path, *predictions: Any) -> SortedOut:
    path = write_lines(data.with_name("preds.jsonl"), *predictions)
    return sort_out(path, data, {TASK: home}, lambda name: load_task(home, name))


def only(home: Path, data: Path, prediction: dict[str, Any]) -> tuple[str, str]:
    found = sorted_out(home, data, prediction)
    assert found.lines == ()
    assert found.tasks == {}
    (answer,) = found.answers.answers
    return answer.kind, answer.why


def test_a_patch_for_an_imported_instance_is_to_be_graded(home: Path, data: Path):
    found = sorted_out(home, data, a_prediction(), a_prediction(model="org/n"))
    assert [(line.task, line.agent, line.attempt, line.patch) for line in found.lines] == [
        ("toy-1", "m", 0, PATCH),
        ("toy-1", "org/n", 1, PATCH),
    ]
    assert list(found.tasks) == [TASK]
    assert found.answers.instances == (NAME, "other-2", "third-3")


@pytest.mark.parametrize(
    ("prediction", "kind", "why"),
    [
        (a_prediction(patch=""), "empty", "the patch is empty"),
        (a_prediction(patch=" \n"), "empty", "the patch is empty"),
        (a_prediction(patch=None), "empty", "there is no patch"),
        (a_prediction(patch="done"), "malformed", "patch:1: there is no change in it"),
        (a_prediction(patch=PATCH[:-8]), "malformed", "patch:5: the patch is cut here"),
        (a_prediction(name="none-1"), "unknown", "`none-1` is not in the data set"),
        (a_prediction(name="other-2"), "not here", "it is no task here"),
        (a_prediction(name=""), "unreadable", "there is no `instance_id`"),
        (a_prediction(patch=1), "unreadable", "`model_patch` should be text, and is a number"),
        (a_prediction(model=[]), "unreadable", "should be text, and is a list"),
        (a_prediction(model="m" * 300), "unreadable", "more than 200 characters"),
        ({"instance_id": NAME}, "unreadable", "there is no `model_patch`"),
    ],
)
def test_each_of_the_others_gets_an_answer(
    home: Path, data: Path, prediction: dict[str, Any], kind: str, why: str
):
    found, said = only(home, data, prediction)
    assert found == kind
    assert why in said


def test_a_task_of_another_origin_is_not_the_instance(home: Path, data: Path):
    (home / "task_specs" / TASK / "origin.json").unlink()
    assert only(home, data, a_prediction())[0] == "not here"


def test_who_says_the_same_twice_is_read_once(home: Path, data: Path):
    assert len(sorted_out(home, data, a_prediction(), a_prediction()).lines) == 1


def test_who_says_two_things_is_graded_for_neither(home: Path, data: Path):
    found = sorted_out(home, data, a_prediction(), a_prediction(patch=""), a_prediction(model="n"))
    assert [line.agent for line in found.lines] == ["n"]
    first, second = found.answers.answers
    for answer, here, there in ((first, 1, 2), (second, 2, 1)):
        assert answer.where.endswith(f"preds.jsonl:{here}")
        assert "has another patch at" in answer.why
        assert f"preds.jsonl:{there}: neither is graded" in answer.why


def test_each_prediction_is_counted_in_one_place(home: Path, data: Path):
    found = sorted_out(
        home,
        data,
        a_prediction(), a_prediction(),
        a_prediction(model="n", patch=""), a_prediction(model="n", patch=None),
        a_prediction(model="o"), a_prediction(model="o", patch="x"), a_prediction(model="o"),
        a_prediction(name="none-1"), 7,
    )  # fmt: skip
    assert found.counts == {
        "predictions": 9, "graded": 1, "unreadable": 3, "empty": 1, "unknown": 1, "said twice": 3
    }  # fmt: skip


def test_a_map_by_id_is_read(tmp_path: Path):
    """As mini-swe-agent writes it; the id need not be said again."""
    path = tmp_path / "preds.json"
    one = a_prediction()
    rows = {NAME: one, "b": {"model_patch": "", "model_name_or_path": "m"}, "c": one}
    for text in (json.dumps(rows), json.dumps(rows, indent=2)):
        path.write_text(text)
        found = read_predictions(path)
        assert [p.instance_id for p in found.read] == [NAME, "b"]
        (bad,) = found.refused
        assert bad.why == f"`instance_id` is {NAME!r}, and it stands under 'c'"


def test_a_map_that_has_an_id_twice_is_told(tmp_path: Path):
    path = tmp_path / "preds.json"
    one = json.dumps({"model_patch": ""})
    path.write_text(f'{{"a-1": {one}, "b-1": {one}, "a-1": {{"model_patch": "x"}}}}')
    found = read_predictions(path)
    assert [p.instance_id for p in found.read] == ["b-1"]
    assert [(r.instance_id, r.why) for r in found.refused] == [("a-1", "`a-1` stands there twice")]


def test_a_list_of_pro_s_is_read(tmp_path: Path):
    path = tmp_path / "preds.json"
    path.write_text(json.dumps([{"instance_id": "a-1", "patch": "x", "prefix": "mine"}]))
    (one,) = read_predictions(path).read
    assert (one.model, one.patch) == ("mine", "x\n")


def test_gold_is_the_data_set_s_own(home: Path, data: Path):
    write_lines(data, ROW | {"instance_id": NAME, "patch": PATCH})
    found = sort_out(Path("gold"), data, {TASK: home}, lambda name: load_task(home, name))
    assert [(line.agent, line.patch) for line in found.lines] == [("gold", PATCH)]


def test_what_is_not_graded_costs_no_box_no_image_and_no_repository(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The task's image and repository are nowhere: whoever asked for them would fail."""
    names = [f"x-{n}" for n in range(500)]
    data = write_lines(tmp_path / "data.jsonl", *(ROW | {"instance_id": n} for n in [*names, NAME]))
    rows = [a_prediction(n, ["", None, "done", "--- a/x\n"][i % 4]) for i, n in enumerate(names)]
    preds = write_lines(tmp_path / "p.jsonl", *rows, a_prediction(patch=""))
    monkeypatch.chdir(home)
    monkeypatch.setenv("STILLROOM_STORE", str(tmp_path / "no" / "store"))
    out = tmp_path / "out"
    asked = ["grade", str(preds), "--dataset", str(data), "--out", str(out)]
    assert main([*asked, "--runtime", "none-such"]) == 0
    said = capsys.readouterr().out
    assert "p.jsonl:501: empty: Toy-1: the patch is empty" in said
    assert "501 predictions: 251 empty, 250 malformed" in said
    report = json.loads((out / "m.out.json").read_text())
    assert report["total_instances"] == report["submitted_instances"] == 501
    assert report["empty_patch_instances"] == 251
    assert report["error_instances"] == 250
    assert report["failure_reasons"]["x-2"] == "patch:1: there is no change in it"
    assert not (tmp_path / "no").exists()


def test_what_is_wrong_in_the_file_is_exit_code_2(
    home: Path, data: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(home)
    preds = write_lines(data.with_name("p.jsonl"), a_prediction(name="none-1", patch=""))
    assert main(["grade", str(preds), "--dataset", str(data)]) == 2
    assert main(["grade", str(preds.with_name("no.jsonl")), "--dataset", str(data)]) == 2


STARTED = "2026-01-01T00:00:00Z"


def a_rollout(home: Path, agent: str, attempt: int, **more: Any) -> Rollout:
    task = load_task(home, TASK)
    return Rollout(
        task=task.id, task_digest=task.digest, attempt=attempt, agent=agent, runtime="fake",
        started=STARTED, ending=Ending.GRADED, patch_bytes=9, **more,
    )  # fmt: skip


def verdict(*, resolved: bool, reason: str = "", gate: str = "passed") -> VerdictRecord:
    checks = {
        "tests/test_a.py::test_one": "passed",
        "tests/test_a.py::test_two": "passed" if resolved else "failed",
        "tests/test_a.py::test_gate": gate,
    }
    reward = float(resolved)
    return VerdictRecord(reward=reward, resolved=resolved, reason=reason, checks=checks)


@pytest.fixture
def run(home: Path, data: Path) -> Path:
    """Of five models, of which each said something to the same instance."""
    path = data.with_name("run-1")
    task = load_task(home, TASK)
    manifest = Manifest(agent="graded", runtime="fake", tasks={TASK: task.digest}, attempts=4)
    fault = FaultRecord(code="image", message="it is gone")
    rollouts = (
        a_rollout(home, "org/good", 0, verdict=verdict(resolved=True)),
        a_rollout(home, "bad", 1, verdict=verdict(resolved=False, reason="1 check did not pass")),
        a_rollout(home, "no", 2, verdict=verdict(resolved=False, reason="rejected: patch:1: x")),
        a_rollout(home, "lost", 3, fault=fault),
    )
    with OutFolder(path, manifest) as out:
        for one in rollouts:
            out.rollout(TASK, one.attempt).write_patch(PATCH.encode())
            out.add(one)
    said = sorted_out(home, data, a_prediction(patch=None, model="lazy"))
    write_answers(path, said.answers)
    return path


def test_a_run_is_told_model_by_model(home: Path, run: Path):
    found = evaluated(run, lambda name: load_task(home, name))
    states = {model: [(r.instance_id, r.state) for r in g.results] for model, g in found.items()}
    assert states == {
        "org/good": [(NAME, "resolved")],
        "bad": [(NAME, "unresolved")],
        "no": [(NAME, "error")],
        "lost": [(NAME, "void")],
        "lazy": [(NAME, "empty")],
    }
    (bad,) = found["bad"].results
    assert bad.tests == {
        "FAIL_TO_PASS": Sides(
            success=("tests/test_a.py::test_one",), failure=("tests/test_a.py::test_two",)
        ),
        "PASS_TO_PASS": Sides(success=("tests/test_a.py::test_gate",)),
    }


def test_its_reports_are_those_of_the_family(home: Path, run: Path):
    paths = write_reports(run, lambda name: load_task(home, name))
    assert [p.name for p in paths] == [
        "org__good.run-1.json", "bad.run-1.json", "no.run-1.json", "lost.run-1.json",
        "lazy.run-1.json",
    ]  # fmt: skip
    good = json.loads(paths[0].read_text())
    assert good["schema_version"] == 2
    assert good["resolved_ids"] == good["completed_ids"] == [NAME]
    assert good["incomplete_ids"] == ["other-2", "third-3"]
    place = run / "logs" / "run_evaluation" / "run-1" / "org__good" / NAME
    assert (place / "patch.diff").read_text() == PATCH
    report = json.loads((place / "report.json").read_text())[NAME]
    assert report["resolved"] is report["patch_successfully_applied"] is True
    assert report["tests_status"]["FAIL_TO_PASS"]["failure"] == []
    lost = json.loads(paths[3].read_text())
    assert lost["error_ids"] == lost["infra_failure_ids"] == [NAME]
    assert lost["failure_reasons"] == {NAME: "it is gone"}


def test_every_submitted_instance_is_in_one_place_of_the_report():
    states = ("resolved", "unresolved", "empty", "error", "void")
    results = [Result(instance_id=s, state=s) for s in states]  # type: ignore[arg-type]
    report = run_report(results, ["resolved", "not tried"])
    parts = [report[f"{p}_ids"] for p in ("resolved", "unresolved", "empty_patch", "error")]
    assert sorted(i for part in parts for i in part) == report["submitted_ids"] == sorted(states)
    assert report["incomplete_ids"] == ["not tried"]
    assert report["total_instances"] == 6
    for name in ("submitted", "completed", "resolved", "unresolved", "empty_patch", "error"):
        assert report[f"{name}_instances"] == len(report[f"{name}_ids"])


def test_an_empty_patch_is_reported_as_such():
    report = instance_report(Result(instance_id="a", state="empty", null=True))["a"]
    assert report["patch_is_None"] is True
    assert report["patch_exists"] is report["resolved"] is False
    assert "tests_status" not in report


@pytest.mark.parametrize(
    ("model", "folder"),
    [
        ("a/b", "a__b"),
        ("../../x", "_..__..__x"),
        (" ..", "_.."),
        ("  .hidden ", "_.hidden"),
        ("x" * 119 + " y", "x" * 119),
        ("", "unnamed"),
        ("é x\0", "é x_"),
        ("open:gpt 4 (2024)", "open:gpt 4 (2024)"),
        ("\u202e\x1b[31m", "__[31m"),
        ("\N{GRINNING FACE}" * 200, "\N{GRINNING FACE}" * 30),
    ],
)
def test_a_model_s_name_becomes_that_of_a_folder(model: str, folder: str):
    assert folder_name(model) == folder


def test_models_that_come_out_alike_keep_folders_apart():
    names = folder_names(["a/b", "a__b", "x" * 150 + "1", "x" * 150 + "2"])
    assert len({*names.values()}) == 4
    assert names["a/b"] == "a__b"


def test_a_leaderboard_s_entry_is_complete(home: Path, run: Path, tmp_path: Path):
    out = tmp_path / "entry"
    folder = RolloutFolder(run / "rollouts" / TASK / "0")
    write_events(folder, tmp_path / "told", LOOKED, STARTED)
    folder.write_patch(PATCH.encode())
    entry = Entry(name="Mine", site="https://x", model="org/good")
    done = export_leaderboard(run, out, entry, lambda name: load_task(home, name))
    assert [p.name for p in done.written] == [
        "README.md", "all_preds.jsonl", "logs", "metadata.yaml", "results", "trajs"
    ]  # fmt: skip
    head = yamlfile.open_document(out / "metadata.yaml").data
    assert head == {"name": "Mine", "oss": False, "site": "https://x", "verified": False}
    (one,) = read_predictions(out / "all_preds.jsonl").read
    assert (one.instance_id, one.model, one.patch) == (NAME, "org/good", PATCH)
    results = json.loads((out / "results" / "results.json").read_text())
    assert results["resolved"] == results["resolved_ids"] == [NAME]
    assert {p.name for p in (out / "logs" / NAME).iterdir()} == {"patch.diff", "report.json"}
    told = json.loads((out / "trajs" / f"{NAME}.traj").read_text())
    assert told["info"]["submission"] == PATCH
    assert [turn["action"] for turn in told["trajectory"]] == ["ls -l", "submit"]
    assert (dict(done.untold), done.lacks) == ({}, [])
    with pytest.raises(UserError, match="is there already, and not empty"):
        export_leaderboard(run, out, entry, lambda name: load_task(home, name))
    (folder.path / "events.jsonl").write_text("}{\n")
    with pytest.raises(SpecError, match="events"):  # half an entry does not stay
        export_leaderboard(run, tmp_path / "half", entry, lambda name: load_task(home, name))
    assert not (tmp_path / "half").exists()


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("bad", "it was graded: there was no agent here"),
        ("lazy", "it was never run: there is no rollout"),
    ],
)
def test_of_what_there_is_no_trajectory_is_said(
    home: Path, run: Path, tmp_path: Path, model: str, why: str
):
    out, entry = tmp_path / "entry", Entry(name="Mine", model=model)
    done = export_leaderboard(run, out, entry, lambda name: load_task(home, name))
    assert dict(done.untold) == {NAME: why}
    assert f"no trajectory (1): {why}" in (out / "README.md").read_text()
    assert list((out / "trajs").iterdir()) == []


def test_whose_entry_it_is_has_to_be_said(home: Path, run: Path, tmp_path: Path):
    with pytest.raises(UserError, match="of models, it has") as caught:
        export_leaderboard(run, tmp_path / "e", Entry(name="x"), lambda name: load_task(home, name))
    assert "bad, lazy, lost, no, org/good" in caught.value.hint


def test_what_was_said_stays_with_the_run(run: Path, tmp_path: Path):
    assert (run / ANSWERS).exists()
    found = read_answers(run)
    assert found is not None
    assert [a.kind for a in found.answers] == ["empty"]
    assert read_answers(tmp_path) is None
