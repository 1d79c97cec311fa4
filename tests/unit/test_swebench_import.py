"""Instances become tasks: what is written, and why the others cannot be."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.adapters.swebench import Shelf, import_dataset
from sandbox.adapters.swebenchrules import task_id
from sandbox.cli import main
from sandbox.errors import VerifierFault
from sandbox.formats.digest import folder_entries
from sandbox.formats.patch import parse
from sandbox.formats.patchapply import outcome
from sandbox.formats.taskfile import TASK_ID
from sandbox.runtime.supplies import Depot
from tests.support.gits import commit, git, text
from tests.support.imports import a_shelf, imported, made, refused
from tests.support.swebenchrows import (
    FILES,
    PRO,
    ROW,
    SOLVED,
    STATEMENT,
    TASK_YAML,
    TESTED,
    a_clone,
    a_row,
    diff,
    write,
    write_lines,
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return a_clone(tmp_path / "clones" / "tester__lib")


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return a_shelf(tmp_path)


def bundle(shelf: Shelf, task: str) -> dict[str, bytes]:
    folder = shelf.home / "verifiers" / task / "bundle"
    return {e.path: e.data for e in folder_entries(folder)}


def test_an_instance_becomes_a_task(shelf: Shelf, clone: Path):
    one, task = made(shelf, a_row(clone))
    assert task.id == one.task == "tester__lib-1"
    assert task.instruction == STATEMENT
    assert "it is in lib.py" not in task.instruction
    assert [(c.id, c.gate, c.accept) for c in task.verifier.checks] == [
        ("tests/test_lib.py::test_answer", False, ("xfailed",)),
        ("tests/test_lib.py::test_name", True, ("skipped", "xfailed")),
    ]
    assert task.verifier.arguments == ("tests/test_lib.py",)
    assert task.verifier.bundle.paths == ("tests/test_lib.py",)
    assert bundle(shelf, task.id) == {"tests/test_lib.py": TESTED.encode()}
    assert task.clock.at == "2023-05-10T12:00:00Z"
    assert task.submission.takes("lib.py", FILES)
    assert not task.submission.takes("tests/test_lib.py", FILES)
    assert not task.submission.takes("tests/helper.py", FILES)
    assert task.verifier.options == {
        "python_files": "test_*.py",
        "addopts": "--import-mode=importlib",
    }
    assert "addopts -q" in " ".join(one.notes)


def test_the_reference_is_the_patch_as_it_came(shelf: Shelf, clone: Path):
    row = a_row(clone)
    _, task = made(shelf, row)
    depot = Depot(shelf.store, lambda *_: None)
    assert depot.hidden_tests(task)
    path = shelf.home / "task_specs" / task.id / "solution" / "solution.patch"
    assert path.read_text() == row["patch"]


def test_every_field_has_a_fate(shelf: Shelf, clone: Path):
    report = imported(shelf, a_row(clone, meta={"llm_score": 3}, install_config={"x": 1}))
    fates = {f.field: f.fate for f in report.fields}
    assert fates.keys() == a_row(clone).keys() | {"meta", "install_config"}
    assert fates["patch"] == fates["FAIL_TO_PASS"] == "mapped"
    assert fates["hints_text"] == fates["meta"] == "dropped"
    assert {f.why for f in report.fields if f.field == "meta"} == {"not known here"}


def test_what_was_imported_before_is_left_as_it_is(shelf: Shelf, clone: Path):
    _, task = made(shelf, a_row(clone))
    path = shelf.home / "task_specs" / task.id / "instruction.md"
    path.write_text("changed by hand\n")
    one, _ = made(shelf, a_row(clone))
    assert one.kept
    assert path.read_text() == "changed by hand\n"


def test_a_task_of_another_origin_is_not_written_over(shelf: Shelf, clone: Path):
    made(shelf, a_row(clone))
    report = imported(shelf, a_row(clone, instance_id="Tester__lib-1"))
    assert "is not of this data set" in report.not_here[0].reasons[0]


def test_two_instances_share_a_repository_s_entry(shelf: Shelf, clone: Path):
    report = imported(shelf, a_row(clone), a_row(clone, instance_id="tester__lib-2"))
    assert len(report.converted) == 2
    lock = (shelf.home / "repos" / "lock.yaml").read_text()
    assert lock.count(f"url: {clone}") == 1


def test_ids_that_were_cut_are_no_checks_and_are_told(shelf: Shelf, clone: Path):
    stay = ["tests/test_lib.py::test_name", "tests/test_lib.py::test_x[a", "tests/none.py::test_y"]
    one, task = made(shelf, a_row(clone, PASS_TO_PASS=stay))
    assert [c.id for c in task.verifier.checks if c.gate] == stay[:1]
    assert "2 ids are no checks: see `excluded` of checks.yaml" in one.notes
    assert any("1 ids were cut at a space" in note for note in one.notes)


def test_of_swe_smith_the_bug_is_put_in_and_its_reverse_is_the_solution(shelf: Shelf, clone: Path):
    write(clone, {"lib.py": SOLVED["lib.py"], "tests/test_lib.py": TESTED, "tests/__init__.py": ""})
    commit(clone)
    row = a_row(clone, instance_id="tester__lib.0123abcd.func_basic__1", repo="swesmith/lib")
    row["patch"] = diff(clone, {"lib.py": FILES["lib.py"]})
    del row["test_patch"]
    (clone.parent / "lib").symlink_to(clone)
    _, task = made(shelf, row)
    world = {e.path: e for e in folder_entries(shelf.home / "repos" / task.id)}
    assert world["lib.py"].data == FILES["lib.py"].encode()
    assert "tests/test_lib.py" not in world
    assert bundle(shelf, task.id) == {"tests/test_lib.py": TESTED.encode()}
    depot = Depot(shelf.store, lambda *_: None)
    pinned = depot._repos_of(shelf.home).ensure(task.repo)
    assert pinned.pin.commit == task.repo.commit
    solution = (shelf.home / "task_specs" / task.id / "solution/solution.patch").read_bytes()
    solved = outcome(parse(solution, max_bytes=1 << 20), world, max_bytes=1 << 20)
    assert [e.data for e in solved.files] == [SOLVED["lib.py"].encode()]


@pytest.mark.parametrize("when", ["yesterday", "1970-01-01", "9999-01-01T00:00:00Z"])
def test_a_date_that_no_clock_can_have_is_told(shelf: Shelf, clone: Path, when: str):
    one, task = made(shelf, a_row(clone, created_at=when))
    assert any(note.startswith(f"`created_at` is {when!r}") for note in one.notes)
    assert task.clock.at


@pytest.mark.parametrize("of", ["the project", "the mirror"])
def test_of_swe_smith_the_commit_need_not_be_said(shelf: Shelf, clone: Path, of: str):
    write(clone, {"lib.py": SOLVED["lib.py"], "tests/test_lib.py": TESTED})
    commit(clone)
    right = text(clone, "rev-parse", "HEAD")
    if of == "the project":  # which went on
        write(clone, {"lib.py": "x = 1\n"})
        commit(clone)
        git(clone, "reset", "--quiet", "--hard", "HEAD~")
    shas = {"the project": right[:8], "the mirror": "0123abcd"}
    row = a_row(clone, instance_id=f"tester__lib.{shas[of]}.func_basic__1", repo="tester/lib")
    row |= {"patch": diff(clone, {"lib.py": FILES["lib.py"]}), "test_patch": None}
    if of == "the project":
        git(clone, "reset", "--quiet", "--hard", "ORIG_HEAD")
    del row["base_commit"]
    one, _ = made(shelf, row)
    assert f"`base_commit` is not said: {right[:12]}" in one.notes[0]


def test_of_pro_the_folder_is_its_own(shelf: Shelf, clone: Path):
    row = a_row(clone)
    row |= {"fail_to_pass": str([*json.loads(row.pop("FAIL_TO_PASS"))]), "pass_to_pass": "[]"}
    row |= {"instance_id": PRO["instance_id"], "before_repo_set_cmd": "x"}
    del row["PASS_TO_PASS"]
    one, task = made(shelf, row)
    assert task.workdir == "/app"
    assert TASK_ID.fullmatch(one.task)
    assert len(one.task) == 100
    assert task.metadata.source.endswith(PRO["instance_id"])


def test_long_ids_stay_different():
    ids = ["instance_" + "a" * 100 + end for end in ("b", "c")]
    assert len({task_id(i) for i in ids}) == 2


def test_a_test_patch_may_create_move_and_delete(shelf: Shelf, clone: Path):
    write(
        clone, {"tests/old.py": "x = 1\n" * 20, "tests/gone.txt": "1\n", "tests/run.sh": "true\n"}
    )
    commit(clone)
    row = a_row(clone)
    (clone / "tests/old.py").rename(clone / "tests/new.py")
    (clone / "tests/gone.txt").unlink()
    (clone / "tests/run.sh").chmod(0o755)
    (clone / "tests/link.py").symlink_to("new.py")
    (clone / "tests/data.bin").write_bytes(b"\0\1\2")
    row["test_patch"] = diff(clone, {"tests/test_lib.py": TESTED})
    assert "rename from tests/old.py" in row["test_patch"]
    assert "GIT binary patch" in row["test_patch"]
    _, task = made(shelf, row)
    assert task.verifier.bundle.paths == (
        "tests/data.bin", "tests/gone.txt", "tests/link.py", "tests/new.py", "tests/old.py",
        "tests/run.sh", "tests/test_lib.py",
    )  # fmt: skip
    kinds = {e.path: e.kind for e in folder_entries(shelf.home / f"verifiers/{task.id}/bundle")}
    assert kinds == {
        "tests/data.bin": "file", "tests/link.py": "link", "tests/new.py": "file",
        "tests/run.sh": "exec", "tests/test_lib.py": "file",
    }  # fmt: skip


def test_carriage_returns_are_part_of_a_file(shelf: Shelf, clone: Path):
    write(clone, {"lib.py": FILES["lib.py"].replace("\n", "\r\n")})
    commit(clone)
    row = a_row(clone, patch=diff(clone, {"lib.py": SOLVED["lib.py"].replace("\n", "\r\n")}))
    assert "\r\n" in row["patch"]
    _, task = made(shelf, row)
    assert b"\r\n" in (shelf.home / f"task_specs/{task.id}/solution/solution.patch").read_bytes()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"repo": "no/body"}, "its repository no/body is not on this machine"),
        ({"base_commit": "9" * 40}, "has no commit 9999"),
        ({"base_commit": "main"}, "`base_commit` is 'main', and no commit of 40 hex digits"),
        ({"patch": None}, "there is no `patch`"),
        ({"problem_statement": " "}, "there is no `problem_statement`"),
        ({"FAIL_TO_PASS": "[]", "split": "deprecated"}, "(its split is `deprecated`)"),
        ({"FAIL_TO_PASS": '["test_x (app.tests.X)"]'}, "its tests are run by unittest, or"),
        ({"FAIL_TO_PASS": '["draws a chart"]', "log_parser": "karma"}, "by what `karma` reads"),
        ({"FAIL_TO_PASS": '["test_x"]', "repo": "sympy/sympy"}, "run by sympy's own runner"),
        ({"FAIL_TO_PASS": '["It is so"]', "repo": "django/django"}, "run by Django's own runner"),
        ({"FAIL_TO_PASS": "['TestX']", "repo_language": "go"}, "are run by `go test` (Go)"),
        ({"FAIL_TO_PASS": "['a | b']", "repo_language": "js"}, "run by a runner of JavaScript"),
        ({"FAIL_TO_PASS": "['a | b']", "repo_language": "ts"}, "run by a runner of TypeScript"),
        ({"FAIL_TO_PASS": "['a | b']", "repo_language": "zig"}, "run by a runner for zig"),
        ({"FAIL_TO_PASS": '["tests/test_lib.py::x[a"]'}, "was cut at a space"),
        ({"FAIL_TO_PASS": '["tests/none.py::test_x"]'}, "its file is not there"),
        ({"image_assets": {"test_patch": [{"path": "a.png"}]}}, "that its patches do not hold: a.png"),
        (
            {"patch": "--- a/lib.py\n+++ b/lib.py\n@@ -1 +1 @@\n-x\n+y\n"},
            "`patch` does not apply to `base_commit`: patch:3:",
        ),
        (
            {"test_patch": "--- a/tests/no.py\n+++ b/tests/no.py\n@@ -1 +1 @@\n-x\n+y\n"},
            "`test_patch` does not apply to `base_commit`: patch:1: 'tests/no.py' is not there",
        ),
        (
            {"test_patch": "--- a/lib.py\n+++ b/lib.py\n@@ -1 +1 @@\n-def answer():\n+def a():\n"},
            "`patch` and `test_patch` both change 'lib.py'",
        ),
        (
            {"test_patch": "diff --git a/t b/t\nnew file mode 120000\n--- /dev/null\n+++ b/t\n"
             "@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n"},
            "the link 't' leads out of the working directory",
        ),
    ],
)  # fmt: skip
def test_what_cannot_run_here_is_told_with_its_reason(
    shelf: Shelf, clone: Path, change: dict[str, Any], why: str
):
    pro = {"dockerhub_tag": "x"} if "repo_language" in change else {}
    one = refused(shelf, a_row(clone, **pro, **change))
    assert one.name == "tester__lib-1"
    assert why in "; ".join(one.reasons)


def test_all_reasons_are_told_at_once(shelf: Shelf, clone: Path):
    one = refused(shelf, a_row(clone, repo="a/b", patch="", problem_statement=""))
    assert len(one.reasons) == 3


def test_an_image_that_is_not_here_is_a_reason(shelf: Shelf, clone: Path):
    other = Shelf(home=shelf.home, store=shelf.store, folders=shelf.folders, image="python-2.7")
    assert "there is no image `python-2.7`" in refused(other, a_row(clone)).reasons[0]


def test_a_folder_that_is_no_repository_is_a_reason(shelf: Shelf, clone: Path, tmp_path: Path):
    repos = {"tester/lib": tmp_path}
    other = Shelf(home=shelf.home, store=shelf.store, repos=repos)
    assert "is no git repository" in refused(other, a_row(clone)).reasons[0]


def test_a_worktree_and_a_bare_clone_will_both_do(shelf: Shelf, clone: Path, tmp_path: Path):
    row = a_row(clone)
    bare = tmp_path / "clones" / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(clone), str(bare))
    report = imported(shelf, row, row | {"instance_id": "b-1", "repo": "x/bare"})
    assert len(report.converted) == 2


def test_what_cannot_be_read_is_exit_code_2_with_file_and_line(
    clone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """What only cannot run here is none of the data's faults."""
    good, bad = ROW, ROW | {"instance_id": "psf__requests-2", "FAIL_TO_PASS": 7}
    out, data = ["--out", str(tmp_path / "home")], tmp_path / "data.jsonl"
    for rows, status in (((good,), 0), ((good, bad), 2)):
        write_lines(data, *rows)
        assert main(["import", "swebench", str(data), *out]) == status
    assert f"{data}:2: psf__requests-2: not read" in capsys.readouterr().out
    assert main(["import", "swebench", str(data), *out, "--json"]) == 2


def test_data_sets_of_hundreds_are_told_row_by_row(shelf: Shelf, tmp_path: Path):
    """As many as Lite, Pro and a task repository have, and nothing of them is here."""
    lite = [ROW | {"instance_id": f"psf__requests-{n}", "patch": "x"} for n in range(300)]
    pro = [PRO | {"instance_id": f"{PRO['instance_id']}{n}"} for n in range(731)]
    for rows in (lite, pro):
        report = imported(shelf, *rows)
        assert report.read == len(report.not_here) == len(rows)
        assert all(one.reasons and one.name for one in report.not_here)
    for n in range(612):
        name = f"chartjs__Chart.js-{n}"
        folder = tmp_path / "repo" / "tasks" / name
        folder.mkdir(parents=True)
        (folder / "task.yaml").write_text(TASK_YAML.replace("chartjs__Chart.js-1", name))
        (folder / "tests.json").write_text('{"FAIL_TO_PASS": ["draws"], "PASS_TO_PASS": []}')
    report = import_dataset(tmp_path / "repo", shelf)
    assert report.read == len(report.not_here) == 612
    assert all("karma" in "; ".join(one.reasons) for one in report.not_here)


def test_a_folder_adds_tests_to_those_of_a_repository(shelf: Shelf, clone: Path):
    _, task = made(shelf, a_row(clone))
    depot = Depot(shelf.store, lambda *_: None)
    bundle = task.verifier.bundle
    before = {e.path: e.data for e in depot.hidden_tests(task)}
    folder = Path(task.home) / "verifiers" / task.id / "more" / "tests"
    folder.mkdir(parents=True)
    (folder / "test_more.py").write_bytes(b"# more\n")
    (folder / "test_lib.py").write_bytes(b"# in its place\n")
    assert "tests/test_lib.py" in before
    both = replace(bundle, folder="more", paths=(*bundle.paths, "tests/test_more.py"))
    both_of = replace(task, verifier=replace(task.verifier, bundle=both))
    found = {e.path: e.data for e in depot.hidden_tests(both_of)}
    more = {"tests/test_more.py": b"# more\n", "tests/test_lib.py": b"# in its place\n"}
    assert found == before | more


def test_hidden_tests_lie_within_the_paths_that_are_made_free_for_them(shelf: Shelf, clone: Path):
    """Elsewhere a file of the submission would be in their way, and that would be no verdict."""
    _, task = made(shelf, a_row(clone))
    folder = Path(task.home) / "verifiers" / task.id / "more" / "docs"
    folder.mkdir(parents=True)
    (folder / "test_docs.py").write_bytes(b"# more\n")
    both = replace(task.verifier.bundle, folder="more")
    outside = replace(task, verifier=replace(task.verifier, bundle=both))
    with pytest.raises(VerifierFault, match=r"docs/test_docs\.py of .* lies outside"):
        Depot(shelf.store, lambda *_: None).hidden_tests(outside)
