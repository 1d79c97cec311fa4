"""Bad input: one clear error with its place, exit code 2, no traceback, and nothing is lost."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.cli import main
from sandbox.formats.home import bundled_home

TASK = "h11-0.14.0"
GOOD = {"task": TASK, "patch": ""}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one good task of its own."""
    bundled = bundled_home()
    shutil.copytree(bundled / "task_specs" / TASK, tmp_path / "task_specs" / TASK)
    shutil.copytree(bundled / "verifiers" / TASK, tmp_path / "verifiers" / TASK)
    (tmp_path / "repos").mkdir()
    shutil.copy(bundled / "repos" / "lock.yaml", tmp_path / "repos")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error[")
    assert said.err.count("error[") == 1
    assert "Traceback" not in said.err
    return said.err


def replace(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


SPECS: dict[str, tuple[str, Callable[[str], str], str]] = {
    # name: (file, change, what has to be said)
    "a misspelt key": ("task", replace("verifier:", "verifer:"), "did you mean `verifier`?"),
    "a key too many": ("task", lambda t: t + "colour: red\n", "unknown key `colour`"),
    "a nested key": ("task", replace("  runner:", "  rnner:"), "did you mean `runner`?"),
    "a missing key": ("task", replace("workdir: /workspace/h11\n", ""), "`workdir` is missing"),
    "another schema": ("task", replace("schema: 1", "schema: 2"), "schema"),
    "another id": ("task", replace(f"id: {TASK}", "id: other"), "not the folder's name"),
    "a branch for a commit": ("task", lambda t: _commit(t, "main"), "not a commit id"),
    "a short commit": ("task", lambda t: _commit(t, "abc123"), "not a commit id"),
    "a bare digest": ("task", replace("digest: sha256:", "digest: "), "not a digest"),
    "a relative workdir": ("task", replace("/workspace/h11\n", "h11\n"), "plain absolute path"),
    "a way out": ("task", replace("paths: [h11]", "paths: [../etc]"), "does not stay within"),
    "no paths": ("task", replace("paths: [h11]", "paths: []"), "nothing would be submitted"),
    "a number for a list": ("task", replace("paths: [h11]", "paths: 3"), "array"),
    "no solution": ("task", replace("solution:\n  repo:", "solution:\n  paths: [h11]\n  rpo:"), "rpo"),
    "a local time": ("task", replace("T12:00:00Z", "T12:00:00"), "write it in UTC"),
    "no such day": ("task", replace("2022-10-12", "2022-13-12"), "no day of the calendar"),
    "no seconds": ("task", replace("seconds: 300", "seconds: 0"), "between 0 and 86400"),
    "an unknown runner": ("task", replace("runner: pytest", "runner: nose"), "pytest"),
    "an open network": ("task", lambda t: t + "network: open\n", "network"),
    "a bad limit": ("task", lambda t: t + "limits: {pids: -1}\n", "more than 0"),
    "a tab": ("task", replace("  runner", "\trunner"), "not valid YAML"),
    "a key twice": ("task", lambda t: t + f"id: {TASK}\n", "stands here twice"),
    "an alias": ("task", lambda t: t + "x: &a [1]\ny: *a\n", "aliases are not supported"),
    "an empty spec": ("task", lambda _: "", "the file is empty"),
    "a list": ("task", lambda _: "- 1\n", "task.yaml"),
    "an empty instruction": ("instruction", lambda _: "\n", "the instruction is empty"),
    "no scored check": ("checks", lambda _: "schema: 1\nscored: []\n", "has to be scored"),
    "a check twice": ("checks", lambda _: "schema: 1\nscored: [a, a]\n", "already"),
    "a bad weight": ("checks", lambda _: "schema: 1\nscored: [{id: a, weight: -1}]\n", "weight"),
    "a NaN weight": ("checks", lambda _: "schema: 1\nscored: [{id: a, weight: .nan}]\n", ""),
}  # fmt: skip


def _commit(text: str, value: str) -> str:
    return re.sub(r'commit: "\w{40}"', f'commit: "{value}"', text, count=1)


@pytest.mark.parametrize("name", SPECS)
def test_a_malformed_spec(name: str, home: Path, capsys: pytest.CaptureFixture[str]):
    which, change, said = SPECS[name]
    folder = home / ("verifiers" if which == "checks" else "task_specs") / TASK
    path = folder / {"task": "task.yaml", "checks": "checks.yaml"}.get(which, "instruction.md")
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    error = refused(capsys, "run", TASK, "--agent", "nop", "--out", "out")
    assert said in error
    assert str(path) in error
    assert not (home / "out" / "results.jsonl").exists()


SUBMISSIONS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "there is no submission"),
    "not JSON": (b"{task: 1}\n", ":1"),
    "a torn line": (json.dumps(GOOD).encode() + b'\n{"task": "h1', ":2"),
    "an array": (b"[]\n", "JSON object"),
    "no task": (b'{"patch": ""}\n', "`task` is missing"),
    "an unknown key": (b'{"task": "h11-0.14.0", "ptach": ""}\n', "did you mean `patch`?"),
    "a peer's key": (b'{"task": "h11-0.14.0", "model_patch": ""}\n', "unknown key"),
    "an unknown task": (b'{"task": "h11-0.14.1", "patch": ""}\n', "did you mean `h11-0.14.0`?"),
    "a number": (b'{"task": "h11-0.14.0", "patch": 3}\n', "should be a string"),
    "the same twice": ((json.dumps(GOOD) + "\n").encode() * 2, "line 1 already"),
    "not UTF-8": (b'{"task": "h11-0.14.0", "patch": "\xff"}\n', "not UTF-8"),
    "a negative attempt": (b'{"task": "h11-0.14.0", "patch": "", "attempt": -1}\n', "attempt"),
    "bad base64": (b'{"task": "h11-0.14.0", "patch_base64": "?"}\n', "base64"),
}  # fmt: skip


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_a_malformed_submissions_file(name: str, home: Path, capsys: pytest.CaptureFixture[str]):
    data, said = SUBMISSIONS[name]
    (home / "s.jsonl").write_bytes(data)
    error = refused(capsys, "grade", "s.jsonl")
    assert said in error
    assert "s.jsonl" in error


RESULTS: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"nonsense\n", ":1"),
    "another schema": (b'{"schema": 9}\n', "schema 9 is not known"),
    "no schema": (b'{"task": "x"}\n', "schema None"),
    "an array": (b"[1]\n", "JSON object"),
    "not UTF-8": (b"\xff\n", "not UTF-8"),
    "keys missing": (b'{"schema": 1}\n', "is missing"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_malformed_results_file_is_not_written_over(
    name: str, home: Path, capsys: pytest.CaptureFixture[str]
):
    data, said = RESULTS[name]
    run = ("run", TASK, "--agent", "nop", "--out", "out")
    manifest = {"agent": "nop", "runtime": "embedded", "tasks": {}, "attempts": 1}
    (home / "out").mkdir()
    (home / "out" / "run.json").write_text(json.dumps(manifest))
    (home / "out" / "results.jsonl").write_bytes(data)
    assert said in refused(capsys, *run)
    assert (home / "out" / "results.jsonl").read_bytes() == data


OTHERS: dict[str, tuple[tuple[str, ...], str]] = {
    "an unknown verb": (("rnu",), "Did you mean"),
    "an unknown option": (("run", "--agnet", "nop"), "--agent"),
    "no agent": (("run", TASK), "--agent"),
    "an unknown agent": (("run", TASK, "--agent", "oracl"), "known: "),
    "an unknown runtime": (("run", TASK, "--agent", "nop", "--runtime", "dockr"), "known: "),
    "an unknown suite": (("run", "--suite", "croe", "--agent", "nop"), "known: core"),
    "no script": (("run", TASK, "--agent", "script:none.txt"), "no such file"),
    "no jobs": (("run", TASK, "--agent", "nop", "-j", "0"), "0 is not in the range"),
    "no submissions": (("grade", "none.jsonl"), "no such file"),
    "nothing to grade": (
        ("grade",),
        "name a submissions.jsonl, --logs DIR, --from-evidence RUN or --verify RUN",
    ),
    "two things to grade": (("grade", "s.jsonl", "--verify", "runs/x"), "one of the four"),
    "no run to judge again": (("grade", "--from-evidence", "none"), "is not the folder of a run"),
    "no run to verify": (("grade", "--verify", "none"), "is not the folder of a run"),
    "no run to explain": (("explain", "none", TASK), "is not the folder of a run"),
    "a bad task name": (("new", "My Task"), "is not a task id"),
    "an unknown schema": (("schema", "tsak"), "task"),
    "an unknown repository": (("lock", "repo", "nothing"), "there is no `nothing`"),
    "an unknown image": (("lock", "image", "nothing"), "no such file"),
    "canaries of a file, and none": (
        ("lock", "checks", TASK, "--only", "plain", "--file", "t.py"),
        "--file is for canaries",
    ),
    "a class that is not there": (("run", TASK, "--agent", "json:Nothing"), "cannot load"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_bad_command_line(name: str, home: Path, capsys: pytest.CaptureFixture[str]):
    arguments, said = OTHERS[name]
    assert said in refused(capsys, *arguments)


def test_nothing_selected_has_an_exit_code_of_its_own(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["run", "--agent", "nop"]) == 4
    assert main(["run", "zzz-*", "--agent", "nop", "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "nothing-selected"


def test_a_full_disk_and_no_descriptors_are_told_without_a_traceback(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    for number in ("ENOSPC", "EMFILE"):
        lines = f"import errno\ndef agent():\n    raise OSError(errno.{number}, 'out of it')\n"
        (home / f"{number.lower()}.py").write_text(lines)
        monkeypatch.syspath_prepend(home)
        assert main(["run", TASK, "--agent", f"{number.lower()}:agent"]) == 3
        said = capsys.readouterr().err
        assert "error[machine]" in said
        assert "run the same command again" in said
        assert "Traceback" not in said


def test_a_folder_that_is_gone_is_told(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    gone = home / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["list"]) == 2
    assert "the current folder is gone" in capsys.readouterr().err
    monkeypatch.chdir(home)


def test_an_unknown_error_is_our_bug_and_loud(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    (home / "broken.py").write_text("def agent():\n    raise ZeroDivisionError('ours')\n")
    monkeypatch.syspath_prepend(home)
    assert main(["run", TASK, "--agent", "broken:agent"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_clones_that_are_not_there_are_named(home: Path, capsys: pytest.CaptureFixture[str]):
    (home / "data.jsonl").write_text("{}\n")
    for given in ("clones", "psf/requests=clones"):
        said = refused(capsys, "import", "swebench", "data.jsonl", "--repos", given)
        assert "--repos clones: no such folder" in said
