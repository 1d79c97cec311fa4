"""Data sets of the SWE-bench family, in each shape in which they are found."""

import json
from pathlib import Path

import pytest

from sandbox.errors import SpecError
from sandbox.formats.swebench import Instance, read_dataset, read_instances
from tests.support.swebenchrows import PLACE, PRO, ROW, SMITH, TASK_YAML, write_lines


def only(path: Path) -> Instance:
    (found,) = read_instances(path)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.jsonl"


def test_a_row_of_lite_has_its_lists_as_text(file: Path):
    one = only(write_lines(file, ROW))
    assert one.shape == "4.x"
    assert one.fail_to_pass == ("test_requests.py::RequestsTestCase::test_a",)
    assert one.pass_to_pass == ()
    assert one.hints == one.environment_setup_commit == ""
    assert one.where == f"{file}:1"
    assert "hints_text" not in one.given


def test_real_lists_are_taken_as_well(file: Path):
    assert only(write_lines(file, ROW | {"PASS_TO_PASS": ["a.py::b"]})).pass_to_pass == ("a.py::b",)


def test_a_row_of_verified_says_how_hard_it_is(file: Path):
    assert only(write_lines(file, ROW | {"difficulty": "<15 min fix"})).difficulty == "<15 min fix"


def test_a_row_of_5_x_brings_image_and_script(file: Path):
    more = {"image": PLACE, "eval_script": "x", "log_parser": "pytest", "eval_type": "fail_only"}
    one = only(write_lines(file, ROW | more))
    assert (one.shape, one.image, one.log_parser) == ("5.x", PLACE, "pytest")
    assert (one.eval_script, one.eval_type) == ("x", "fail_only")


def test_files_that_only_a_link_tells_of_are_named(file: Path):
    assets = {
        "problem_statement": [{"path": "shot.png", "url": "https://x"}],
        "test_patch": [{"path": "test/fixtures/a.png", "url": "https://x"}],
        "patch": None,
    }
    for told in (assets, json.dumps(assets)):
        assert only(write_lines(file, ROW | {"image_assets": told})).assets == (
            "test/fixtures/a.png",
        )


def test_a_row_of_swe_smith_tells_the_bug_and_not_its_solution(file: Path):
    one = only(write_lines(file, SMITH))
    assert (one.shape, one.inverted) == ("smith", True)
    assert one.patch == SMITH["patch"]
    assert one.image == SMITH["image_name"]


@pytest.mark.parametrize("nothing", [None, ""])
def test_a_row_of_swe_smith_may_have_the_empty_columns_of_others(file: Path, nothing: object):
    one = only(write_lines(file, SMITH | {"test_patch": nothing, "version": nothing}))
    assert one.inverted, "its patch still brings the bug"


def test_a_row_of_swe_smith_may_leave_out_its_repository(file: Path):
    row = {key: value for key, value in SMITH.items() if key != "repo"}
    assert only(write_lines(file, row)).repo == "oauthlib/oauthlib"


def test_a_row_of_pro_has_python_lists_and_nothing_of_them_is_run(file: Path, tmp_path: Path):
    one = only(write_lines(file, PRO))
    assert (one.shape, one.language) == ("pro", "python")
    assert one.fail_to_pass == ("test/units/a.py::test_x[it's]", "test/units/a.py::test_y")
    shown = r"""[ 'a\n\u00e9', "b'", 'c"\'' , ]"""
    assert only(write_lines(file, PRO | {"pass_to_pass": shown})).pass_to_pass == (
        "a\n\u00e9", "b'", "c\"'",
    )  # fmt: skip
    evil = f"[open({str(tmp_path / 'run')!r}, 'w').name]"
    found = read_dataset(write_lines(file, PRO | {"fail_to_pass": evil}))
    assert "no JSON list nor a Python literal" in found.refused[0].why
    assert not (tmp_path / "run").exists()


def test_a_folder_of_tasks_is_read_file_by_file(tmp_path: Path):
    folder = tmp_path / "tasks" / "chartjs__Chart.js-1"
    (folder / "test_assets" / "test" / "fixtures").mkdir(parents=True)
    (folder / "test_assets" / "test" / "fixtures" / "a.png").write_bytes(b"\x89PNG")
    texts = {
        "task.yaml": TASK_YAML,
        "tests.json": '\ufeff{"FAIL_TO_PASS": ["a b"], "PASS_TO_PASS": []}',
        "problem_statement.md": "It fails.\r\n",
        "gold.patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\r\n",
        "test.patch": "",
        "eval.sh": "#!/bin/bash\n",
        "Dockerfile": "FROM ubuntu:22.04\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, newline="")
    one = only(tmp_path)
    assert (one.shape, one.version, one.split) == ("repository", "3.1", "test")
    assert (one.dockerfile, one.eval_script) == (texts["Dockerfile"], texts["eval.sh"])
    assert one.problem_statement == "It fails.\r\n"
    assert one.patch == texts["gold.patch"]
    assert one.assets == ("test/fixtures/a.png",)
    assert one.hints == ""
    assert one.fail_to_pass == ("a b",)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ["data.json", "data.jsonl"])
@pytest.mark.parametrize("head", ["", "\ufeff"], ids=["plain", "bom"])
def test_a_list_is_read_whatever_it_is_called(tmp_path: Path, indent: int | None, name: str, head):
    path = tmp_path / name
    path.write_text(head + json.dumps([ROW, ROW | {"instance_id": "x-2"}], indent=indent))
    assert [i.instance_id for i in read_instances(path)] == ["psf__requests-1", "x-2"]


@pytest.mark.parametrize("name", ["data.json", "data.jsonl", "data"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("head", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_lines_are_read_whatever_they_are_called(tmp_path: Path, name: str, end: str, head: bytes):
    path = tmp_path / name
    rows = [json.dumps(row) + end for row in (ROW, ROW | {"instance_id": "x-2"})]
    path.write_bytes(head + "".join(rows).encode())
    assert [i.instance_id for i in read_instances(path)] == ["psf__requests-1", "x-2"]


def test_one_map_over_many_lines_is_read_whatever_it_is_called(file: Path):
    file.write_text(json.dumps({ROW["instance_id"]: ROW}, indent=1))
    assert only(file).instance_id == ROW["instance_id"]
    file.write_text(json.dumps(ROW, indent=1))
    assert only(file).instance_id == ROW["instance_id"]


def test_in_a_map_the_id_need_not_be_said_again(file: Path):
    row = {key: value for key, value in ROW.items() if key != "instance_id"}
    file.write_text(json.dumps({"a-1": row, "b-1": ROW}))
    found = read_dataset(file)
    assert [one.instance_id for one in found.instances] == ["a-1"]
    assert found.refused[0].why == "`instance_id` is 'psf__requests-1', and it stands under 'b-1'"


def test_one_bad_row_does_not_hide_the_others(file: Path):
    write_lines(file, ROW, ROW | {"instance_id": "x-2", "repo": 7}, ROW | {"instance_id": "x-3"})
    found = read_dataset(file)
    assert [i.instance_id for i in found.instances] == ["psf__requests-1", "x-3"]
    (bad,) = found.refused
    assert (bad.where, bad.instance_id) == (f"{file}:2", "x-2")
    assert bad.why == "`repo` should be text, and is a number"
    with pytest.raises(SpecError, match=r"data\.jsonl:2: `repo` should be text"):
        read_instances(file)


def test_what_is_odd_about_a_list_is_noted(file: Path):
    before = ["a.py::t[x", "a.py::t[x", " ", "a.py::u"]
    one = only(write_lines(file, ROW | {"FAIL_TO_PASS": before, "PASS_TO_PASS": ["a.py::u"]}))
    assert one.fail_to_pass == ("a.py::t[x", "a.py::u")
    assert one.pass_to_pass == ()
    assert one.notes == (
        "`FAIL_TO_PASS`: 1 empty ids were left out",
        "`FAIL_TO_PASS`: 1 ids that stand twice count once",
        "`FAIL_TO_PASS`: 1 ids were cut at a space, e.g. a.py::t[x",
        "1 ids stand in both lists: they count as FAIL_TO_PASS",
    )


def test_a_patch_whose_last_line_was_stripped_gets_its_end_again(file: Path):
    assert only(write_lines(file, ROW | {"patch": "a\nb"})).patch == "a\nb\n"
