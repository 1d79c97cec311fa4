"""Which files of a folder are logs, of what, and which of them belong together."""

import gzip
import json
from pathlib import Path

import pytest

from sandbox.adapters.savedlogs.regrade import RegradedAll, regrade_all, write_reports
from sandbox.cli import main

NAME, WANTED = "o__r-1", "a.py::new"
LOG = f"x\n+ : '>>>>> Start Test Output'\nPASSED {WANTED}\n+ : '>>>>> End Test Output'\n"
FAILED = LOG.replace("PASSED", "FAILED")
CTRF = json.dumps({"results": {"tests": [{"name": WANTED, "status": "passed"}]}})
PRO = json.dumps({"tests": [{"name": WANTED, "status": "PASSED"}]})


def write_dataset(tmp_path: Path, **more: str) -> Path:
    rows = [
        {"instance_id": name, "repo": "pallets/flask", "base_commit": "0" * 40,
         "FAIL_TO_PASS": json.dumps([WANTED]), "PASS_TO_PASS": "[]"} | more
        for name in (NAME, "o__r-2")
    ]  # fmt: skip
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return data


def regraded(tmp_path: Path, files: dict[str, str | bytes], **more: str) -> RegradedAll:
    for name, content in files.items():
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return regrade_all(tmp_path / "logs", write_dataset(tmp_path, **more))


def states(found: RegradedAll) -> dict[str, str]:
    return {log.run: log.result.state for log in found.logs}


@pytest.mark.parametrize(
    ("files", "runs"),
    [
        ({f"r/m/{NAME}/test_output.txt": LOG, f"r/n/{NAME}/test_output.txt": FAILED}, "r/m r/n"),
        ({f"{NAME}.m-4.1.eval.log": LOG, f"{NAME}.n.eval.log": FAILED}, "m-4.1 n"),
        ({f"a/{NAME}.log": LOG, f"b/{NAME}.log": FAILED}, "a b"),
        ({f"{NAME}/m_output.json": PRO, f"{NAME}/n_output.json": '{"tests": []}'}, "m n"),
    ],
)
def test_several_runs_of_an_instance_are_told_apart(
    tmp_path: Path, files: dict[str, str | bytes], runs: str
):
    good, bad = runs.split()
    found = regraded(tmp_path, files)
    assert states(found) == {good: "resolved", bad: "unresolved"}
    assert found.odd == ()


def test_each_run_has_reports_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    files: dict[str, str | bytes] = {
        f"m/{NAME}/test_output.txt": LOG,
        f"n/{NAME}/test_output.txt": FAILED,
        "n/o__r-2/test_output.txt": LOG,
    }
    out = tmp_path / "out"
    assert write_reports(regraded(tmp_path, files), out) == out
    resolved = {run: json.loads((out / run / "report.json").read_text()) for run in ("m", "n")}
    assert resolved["m"]["resolved_ids"] == [NAME]
    assert resolved["m"]["incomplete_ids"] == resolved["n"]["resolved_ids"] == ["o__r-2"]
    assert (out / "n" / NAME / "report.json").exists()
    logs, data = str(tmp_path / "logs"), str(tmp_path / "data.jsonl")
    assert main(["grade", "--logs", logs, "--dataset", data]) == 0
    assert f"{NAME} (n): unresolved" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("o__r-9.log", "no instance of the data set has this name"),
        ("o__r-9.txt", "no instance of the data set has this name"),
        ("o__r-9/test_output.txt", "no instance of the data set has this name"),
        (f"{NAME}/test_output.txt.gz", "it is packed: unpack it first"),
        (f"{NAME}.log.gz", "it is packed: unpack it first"),
        ("o__r-9.m.eval.log.xz", "it is packed: unpack it first"),
    ],
)
def test_what_has_the_name_of_a_log_and_is_not_graded_is_named(tmp_path: Path, name: str, why: str):
    (odd,) = regraded(tmp_path, {name: gzip.compress(LOG.encode())}).odd
    assert (odd.where, odd.why) == (str(tmp_path / "logs" / name), why)


def test_what_lies_beside_logs_is_no_log(tmp_path: Path):
    files: dict[str, str | bytes] = {
        f"m/{NAME}/{name}": LOG
        for name in ("test_output.txt", "run_instance.log", "eval.sh", "report.json", "patch.diff")
    }
    found = regraded(tmp_path, files | {"README.txt": "x", "a.tar.gz": "x"})
    assert (len(found.logs), found.odd) == (1, ())


@pytest.mark.parametrize(
    "name",
    ["target/surefire-reports/TEST-a.xml", "TEST-a.xml", "workspace/output.json", "ctrf.json"],
)
def test_results_are_found_below_the_instance(tmp_path: Path, name: str):
    xml = '<testsuite><testcase classname="a" name="new"/></testsuite>'
    content = xml if name.endswith(".xml") else PRO if "output" in name else CTRF
    (log,) = regraded(tmp_path, {f"m/{NAME}/{name}": content}).logs
    assert (log.edition, log.result.state, log.run) == ("results", "resolved", "")


def test_reports_of_several_modules_are_read_together(tmp_path: Path):
    xml = '<testsuite><testcase classname="a" name="new"/></testsuite>'
    failed = '<testsuite><testcase classname="a" name="new"><failure/></testcase></testsuite>'
    files: dict[str, str | bytes] = {
        f"{NAME}/x/target/surefire-reports/TEST-a.xml": xml,
        f"{NAME}/y/target/surefire-reports/TEST-a.xml": failed,
    }
    assert states(regraded(tmp_path, files)) == {"": "unresolved"}


def test_of_pro_the_copy_of_its_results_is_no_second_run(tmp_path: Path):
    files: dict[str, str | bytes] = {
        f"{NAME}/gold_output.json": PRO,
        f"{NAME}/workspace/output.json": PRO,
    }
    assert states(regraded(tmp_path, files)) == {"": "resolved"}


@pytest.mark.parametrize("parser", ["nobody-s", "pytest"])
def test_results_win_over_a_log_that_nobody_can_read(tmp_path: Path, parser: str):
    files: dict[str, str | bytes] = {
        f"{NAME}/test_output.txt": "no marks at all",
        f"{NAME}/ctrf.json": CTRF,
    }
    found = regraded(tmp_path, files, log_parser=parser, eval_script="x")
    assert states(found) == {"": "resolved"}


def test_results_that_are_none_are_named(tmp_path: Path):
    files: dict[str, str | bytes] = {f"{NAME}/test_output.txt": LOG, f"{NAME}/results.json": "{}"}
    (log,) = regraded(tmp_path, files).logs
    assert log.result.why.startswith("results.json: ")


def test_results_are_matched_whatever_parts_class_and_test(tmp_path: Path):
    xml = '<testsuite><testcase classname="org.a.BTest" name="c[#1]"/></testsuite>'
    asked = json.dumps(["org.a.BTest#c[#1]"])
    files: dict[str, str | bytes] = {f"{NAME}/junit.xml": xml}
    assert states(regraded(tmp_path, files, FAIL_TO_PASS=asked)) == {"": "resolved"}
