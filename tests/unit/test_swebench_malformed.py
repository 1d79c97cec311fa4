"""Malformed data, one after the other: each is refused by name, and nothing crashes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sandbox.adapters.swebenchrules import obstacles
from sandbox.errors import SpecError
from sandbox.formats import rowsfile
from sandbox.formats.swebench import read_dataset, read_instances, read_predictions
from tests.support.swebenchrows import PRO, ROW, TASK_YAML, write_lines

HALF = "\\ud800"
GIT = "diff --git a/x b/x\n"
FILES: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "there is nothing in it"),
    ("only white space", b" \n\t\n", "there is nothing in it"),
    ("only a BOM", b"\xef\xbb\xbf", "there is nothing in it"),
    ("a number", b"7", "neither JSON nor JSON Lines"),
    ("CSV", b"instance_id,patch\na,b\n", "neither JSON nor JSON Lines"),
    ("YAML", b"- instance_id: a\n", "neither JSON nor JSON Lines"),
    ("parquet", b"PAR1\x15\x04\x15", "parquet is not read here"),
    ("UTF-16", json.dumps([ROW]).encode("utf-16"), "UTF-16 text, not UTF-8"),
    ("a cut list", json.dumps([ROW, ROW])[:-200].encode(), "not valid JSON"),
    ("a list of Latin-1", b'[{"instance_id": "caf\xe9"}]', "not UTF-8 text"),
    ("brackets without end", b"[" * 100_000, "nested too deeply"),
    ("two lists", b"[]\n[]\n", "not valid JSON: Extra data"),
    ("a list of nothing", b"[]", "there is nothing in it"),
    ("a map of nothing", b"{}\n", "there is nothing in it"),
    ("objects over many lines", b'{\n "a": 1\n}\n{\n "a": 2\n}\n', "4: not valid JSON: Extra data"),
    ("gzip", b"\x1f\x8b\x08\x00", "gzip is not read here"),
    ("zip", b"PK\x03\x04", "zip is not read here"),
    ("zstd", b"\x28\xb5\x2f\xfd\x00", "zstd is not read here"),
]
LINES: list[tuple[str, bytes, str]] = [
    ("a cut line", b'{"instance_id": "a', "not valid JSON"),
    ("a list in a line", b"[1]", "a row should be a JSON object"),
    ("text in a line", b'"x"', "a row should be a JSON object"),
    ("two objects in a line", b'{"a": 1} {"b": 2}', "not valid JSON: Extra data"),
    ("Python's quotes", b"{'instance_id': 'a'}", "not valid JSON"),
    ("NaN", b'{"instance_id": "a", "version": NaN}', "NaN is not a JSON value"),
    (
        "a key twice",
        b'{"instance_id": "a", "instance_id": "b"}',
        "`instance_id` stands there twice",
    ),
    ("Latin-1", b'{"instance_id": "caf\xe9"}', "not UTF-8 text"),
    ("a NUL", b'{"instance_id": "a\0"}', "not valid JSON"),
    ("a number of 5000 digits", b'{"version": ' + b"9" * 5000 + b"}", "not valid JSON"),
    ("braces without end", b'{"a":' * 100_000, "nested too deeply"),
]
ROWS: list[tuple[str, dict[str, Any], str]] = [
    ("no id", {"instance_id": None}, "there is no `instance_id`"),
    ("an empty id", {"instance_id": ""}, "there is no `instance_id`"),
    ("an id that is a number", {"instance_id": 7}, "`instance_id` should be text, and is a number"),
    ("an id that leads elsewhere", {"instance_id": "../../etc/x"}, "is no id"),
    ("an id with a slash", {"instance_id": "a/b"}, "is no id"),
    ("an id with a NUL", {"instance_id": "a\0"}, "is no id"),
    ("an id of 300 letters", {"instance_id": "a" * 300}, "is no id"),
    ("a hidden id", {"instance_id": ".git"}, "is no id"),
    ("no repository", {"repo": ""}, "there is no `repo`"),
    ("a repository that leads elsewhere", {"repo": "../.."}, "should be owner/name"),
    ("a repository that is a link", {"repo": "https://x/y/z"}, "should be owner/name"),
    ("a patch that is a list", {"patch": ["x"]}, "`patch` should be text, and is a list"),
    ("a patch that is true", {"patch": True}, "`patch` should be text, and is true or false"),
    ("half a character", {"patch": "\ud800"}, "half a character"),
    ("half a character in a test", {"FAIL_TO_PASS": ["a.py::\ud800"]}, "half a character"),
    ("no tests", {"FAIL_TO_PASS": 7}, "should be a list of test ids, and is a number"),
    ("tests by name", {"FAIL_TO_PASS": {"a": 1}}, "should be a list of test ids, and is an object"),
    ("tests that are numbers", {"PASS_TO_PASS": "[1]"}, "holds a number where a test id should be"),
    ("tests that are null", {"PASS_TO_PASS": [None]}, "holds null where a test id should be"),
    ("a cut list of tests", {"FAIL_TO_PASS": '["a.py::b'}, "`FAIL_TO_PASS` is no JSON list"),
    ("a Python list", {"FAIL_TO_PASS": "['a.py::b']"}, "`FAIL_TO_PASS` is no JSON list"),
    ("lists in lists", {"FAIL_TO_PASS": "[" * 100_000}, "`FAIL_TO_PASS` is no JSON list"),
    ("a version that is a list", {"version": []}, "`version` should be text, and is a list"),
    ("assets that are a list", {"image_assets": [1]}, "`image_assets` should be an object"),
    (
        "assets by number",
        {"image_assets": {"patch": 5}},
        "`image_assets.patch` should be a list, and",
    ),
    (
        "assets that are text",
        {"image_assets": '{"test_patch": "a.png"}'},
        "should be a list, and is text",
    ),
    ("a table by columns", {"instance_id": ["a", "b"]}, "a table by columns: write it by rows"),
    ("a table of pandas", {"instance_id": {"0": "a"}}, "a table by columns: write it by rows"),
    ("assets that are no JSON", {"image_assets": "{"}, "`image_assets` is text, and no JSON"),
    ("another data set", {"fix_patch": "x"}, "a row of Multi-SWE-bench"),
    ("yet another data set", {"expected_output_json": "{}"}, "a row of R2E-Gym"),
]
PATCHES: list[tuple[str, str, str]] = [
    ("no patch at all", "I changed the file.\n", "there is no change in it"),
    ("one that is cut", "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n", "cut here"),
    ("other counts", "--- a/x\n+++ b/x\n@@ -1 +1,3 @@\n-a\n+b\n+c\n", "the patch is cut here"),
    ("a way out", "--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n", "leads elsewhere"),
    ("an absolute name", "--- /etc/x\n+++ /etc/x\n@@ -1 +1 @@\n-a\n+b\n", "is absolute"),
    ("git's own", "--- a/.git/config\n+++ b/.git/config\n@@ -1 +1 @@\n-a\n+b\n", "is git's own"),
    ("a submodule", GIT + "new file mode 160000\n", "a submodule is no part of a submission"),
    ("a device", GIT + "new file mode 020000\n", "a device is no part of a submission"),
    ("a setuid mode", GIT + "old mode 100644\nnew mode 104755\n", "is no mode that a file can have"),
    ("a binary file left out", GIT + "Binary files a/x and b/x differ\n", "not told to what"),
    ("DOS line ends", "--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n", "in a carriage return"),
    ("a rename of half", GIT + "rename from x\n", "`rename to` is missing"),
    ("one file twice", 2 * "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "changed in line 1 already"),
]  # fmt: skip
TASKS: list[tuple[str, dict[str, str | None], str]] = [
    ("no task.yaml", {"task.yaml": None}, "task.yaml: no such file"),
    ("an empty task.yaml", {"task.yaml": ""}, "task.yaml: the file is empty"),
    ("broken YAML", {"task.yaml": "a: ["}, "not valid YAML"),
    ("a list", {"task.yaml": "- a"}, "should hold keys and values"),
    ("another id", {"task.yaml": TASK_YAML.replace("js-1", "js-2")}, "folder's name another"),
    ("no tests.json", {"tests.json": None}, "tests.json: no such file"),
    ("a list of tests", {"tests.json": "[]"}, "an object with FAIL_TO_PASS"),
    ("a cut tests.json", {"tests.json": '{"FAIL'}, "not valid JSON"),
    ("no FAIL_TO_PASS", {"tests.json": "{}"}, "there is no `FAIL_TO_PASS`"),
    ("a patch of bytes", {"gold.patch": "\udcff"}, "not UTF-8 text"),
    ("a link", {"gold.patch": "-> /etc/passwd"}, "a link, where a file should be"),
]


def by_name(cases: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("name", "given", "why"), cases, ids=[c[0] for c in cases])


@by_name(FILES)
def test_a_file_that_is_no_data_set_is_refused(tmp_path: Path, name: str, given: bytes, why: str):
    path = tmp_path / "data.jsonl"
    path.write_bytes(given)
    for read in (read_dataset, read_predictions):
        with pytest.raises(SpecError, match=r"data\.jsonl") as caught:
            read(path)
        assert why in str(caught.value), name


@by_name(LINES)
def test_a_line_that_is_no_row_is_refused_alone(tmp_path: Path, name: str, given: bytes, why: str):
    path = tmp_path / "data.jsonl"
    good = json.dumps(ROW | {"model_patch": ""}).encode() + b"\n"
    path.write_bytes(good + given + b"\n" + good.replace(b"requests-1", b"requests-2"))
    for read, kept in ((read_dataset, "instances"), (read_predictions, "read")):
        found: Any = read(path)
        assert len(getattr(found, kept)) == 2, name
        (bad,) = found.refused
        assert why in bad.why
        assert bad.where == f"{path}:2"


@by_name(ROWS)
def test_a_row_that_is_wrong_is_refused(tmp_path: Path, name: str, given: dict[str, Any], why: str):
    found = read_dataset(write_lines(tmp_path / "data.jsonl", ROW | given))
    assert found.instances == (), name
    assert why in found.refused[0].why


@by_name(PATCHES)
def test_a_patch_that_cannot_be_is_an_obstacle(tmp_path: Path, name: str, given: str, why: str):
    for key in ("patch", "test_patch"):
        (one,) = read_instances(write_lines(tmp_path / "data.jsonl", ROW | {key: given}))
        said = [s for s in obstacles(one, tried=False) if s.startswith(f"`{key}` is refused")]
        assert len(said) == 1, name
        assert why in said[0]


@by_name(TASKS)
def test_a_folder_that_is_no_task_is_refused_alone(
    tmp_path: Path, name: str, given: dict[str, str | None], why: str
):
    files = {"task.yaml": TASK_YAML, "tests.json": '{"FAIL_TO_PASS": [], "PASS_TO_PASS": []}'}
    folder = tmp_path / "tasks" / "chartjs__Chart.js-1"
    folder.mkdir(parents=True)
    for file, text in (files | given).items():
        if text is not None and text.startswith("-> "):
            (folder / file).symlink_to(text[3:])
        elif text is not None:
            (folder / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    (bad,) = read_dataset(tmp_path).refused
    assert why in bad.why, name


def test_a_file_among_the_tasks_is_refused(tmp_path: Path):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "README.md").write_text("x")
    (tmp_path / "tasks" / "link").symlink_to("/etc")
    assert [r.why for r in read_dataset(tmp_path).refused] == ["not a folder"] * 2


def test_a_folder_without_tasks_is_refused(tmp_path: Path):
    with pytest.raises(SpecError, match="neither a file nor a task repository"):
        read_dataset(tmp_path)
    (tmp_path / "tasks").mkdir()
    with pytest.raises(SpecError, match="there is no task in it"):
        read_dataset(tmp_path)


def test_what_is_not_a_file_is_refused(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(SpecError, match="not a file"):
        read_instances(tmp_path / "pipe.jsonl")
    with pytest.raises(SpecError, match="no such file"):
        read_instances(tmp_path / "none.jsonl")


def test_an_id_that_stands_twice_is_refused_the_second_time(tmp_path: Path):
    (bad,) = read_dataset(write_lines(tmp_path / "d.jsonl", ROW, ROW)).refused
    assert bad.why == f"`psf__requests-1` stands at {tmp_path / 'd.jsonl'}:1 already"


def test_a_file_of_a_gigabyte_is_refused_by_its_size(tmp_path: Path):
    """It is sparse: were it read, the test would not end soon, nor fit into memory."""
    path = tmp_path / "preds.json"
    path.write_bytes(b'[{"instance_id": "a", "model_patch": "')
    os.truncate(path, 1 << 40)
    with pytest.raises(SpecError, match="1048576 MiB at once: 512 are allowed"):
        read_predictions(path)


def test_a_line_that_is_too_long_is_passed_over_and_not_held(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(rowsfile, "MOST_ROW_BYTES", 5000)
    path = tmp_path / "preds.jsonl"
    rows = [{"instance_id": f"x-{n}", "model_patch": "x" * (9000 * (n == 2))} for n in range(4)]
    found = read_predictions(write_lines(path, *rows))
    assert [p.instance_id for p in found.read] == ["x-0", "x-1", "x-3"]
    assert [(r.where, r.why) for r in found.refused] == [(f"{path}:3", "a line of more than 0 MiB")]


def test_what_is_no_list_of_texts_in_python_is_refused(tmp_path: Path):
    for text in ("[" * 50_000, "['a'" + "+'b'" * 50_000 + "]", "['a' 'b']", "['a', 'b]", "{'a'}"):
        row = PRO | {"fail_to_pass": text}
        (bad,) = read_dataset(write_lines(tmp_path / "d.jsonl", row)).refused
        assert "no JSON list nor a Python literal" in bad.why


def test_what_is_packed_says_how_it_is_unpacked(tmp_path: Path):
    path = tmp_path / "lite.jsonl.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00")
    with pytest.raises(SpecError) as caught:
        read_dataset(path)
    assert caught.value.hint == "gunzip -k lite.jsonl.gz"


def test_half_a_character_in_a_line_is_refused(tmp_path: Path):
    (tmp_path / "p.jsonl").write_text(f'{{"instance_id": "a", "model_patch": "{HALF}"}}\n')
    (bad,) = read_predictions(tmp_path / "p.jsonl").refused
    assert bad.why == "`model_patch` holds half a character (a lone surrogate)"
