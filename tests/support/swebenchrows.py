"""Rows of SWE-bench data, made of what comes with the program or of a few lines."""

import json
from pathlib import Path
from typing import Any

from sandbox.formats.home import bundled_home
from sandbox.formats.repofile import load_repo_lock
from sandbox.model.task import RepoPin
from sandbox.runtime.repo.pins import Repos
from sandbox.runtime.store import Store
from tests.support.gits import commit, git, text

STATEMENT = "The answer is wrong\n\n`lib.answer()` returns 41, and should return 42.\n"
FILES = {
    "lib.py": "def answer():\n    return 41\n\n\ndef name():\n    return 'lib'\n",
    "tests/test_lib.py": "import lib\n\n\ndef test_name():\n    assert lib.name() == 'lib'\n",
    "setup.cfg": "[tool:pytest]\npython_files = test_*.py\naddopts = -q --import-mode=importlib\n",
}
SOLVED = FILES | {"lib.py": FILES["lib.py"].replace("41", "42")}
TESTED = FILES["tests/test_lib.py"] + "\n\ndef test_answer():\n    assert lib.answer() == 42\n"


ROW = {
    "repo": "psf/requests",
    "instance_id": "psf__requests-1",
    "base_commit": "a" * 40,
    "patch": "",
    "test_patch": "",
    "problem_statement": "It fails.\n",
    "hints_text": None,
    "created_at": "2013-01-25T05:19:16Z",
    "version": "1.1",
    "FAIL_TO_PASS": '["test_requests.py::RequestsTestCase::test_a"]',
    "PASS_TO_PASS": "[]",
    "environment_setup_commit": None,
}
SMITH = {
    "instance_id": "oauthlib__oauthlib.1fd52536.combine_file__09vlzwgc",
    "repo": "swesmith/oauthlib__oauthlib.1fd52536",
    "image_name": "jyangballin/swesmith.x86_64.oauthlib_1776_oauthlib.1fd52536",
    "patch": "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-1\n+2\n",
    "FAIL_TO_PASS": ["tests/test_x.py::test_a"],
    "PASS_TO_PASS": ["tests/test_x.py::test_b"],
    "created_at": "2025-01-01",
    "base_commit": "b" * 40,
    "problem_statement": "x",
}
PRO = {
    "repo": "ansible/ansible",
    "instance_id": "instance_ansible__ansible-" + "c" * 40 + "-v" + "d" * 40,
    "base_commit": "e" * 40,
    "fail_to_pass": """['test/units/a.py::test_x[it\\'s]', "test/units/a.py::test_y"]""",
    "pass_to_pass": "[]",
    "before_repo_set_cmd": "git reset --hard\ngit checkout abc -- test/units/a.py",
    "selected_test_files_to_run": "['test/units/a.py']",
    "dockerhub_tag": "ansible.ansible-ansible__ansible-c",
    "problem_statement": "x",
    "patch": "",
    "repo_language": "python",
}
PLACE = "swebench/sweb.eval.x86_64.chartjs_1776_chart.js-1:latest"
TASK_YAML = f"""\
instance_id: chartjs__Chart.js-1
repo: chartjs/Chart.js
version: 3.1
base_commit: {"f" * 40}
split: test
datasets: [SWE-bench_Multimodal]
image: {PLACE}
log_parser: karma
eval_type: fail_only
created_at: '2021-01-01'
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, newline="")


def a_clone(folder: Path) -> Path:
    """A repository with one commit."""
    write(folder, FILES)
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def diff(folder: Path, files: dict[str, str]) -> str:
    """What turns the clone into one with these files, as git says it; the clone stays as it is."""
    write(folder, files)
    git(folder, "add", "--all")
    said = git(folder, "diff", "--cached", "--binary", "HEAD").decode()
    git(folder, "reset", "--quiet", "--hard")
    return said


def a_row(clone: Path, **other: Any) -> dict[str, Any]:
    """An instance of a clone that `a_clone` made, as Lite has it: lists are JSON as text."""
    return {
        "repo": "tester/lib",
        "instance_id": "tester__lib-1",
        "base_commit": text(clone, "rev-parse", "HEAD"),
        "patch": diff(clone, {"lib.py": SOLVED["lib.py"]}),
        "test_patch": diff(clone, {"tests/test_lib.py": TESTED}),
        "problem_statement": STATEMENT,
        "hints_text": "it is in lib.py",
        "created_at": "2023-05-01T10:11:12Z",
        "version": "1.0",
        "FAIL_TO_PASS": json.dumps(["tests/test_lib.py::test_answer"]),
        "PASS_TO_PASS": json.dumps(["tests/test_lib.py::test_name"]),
        "environment_setup_commit": "f" * 40,
    } | other


def write_lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def shipped(store: Store, name: str, folder: Path) -> RepoPin:
    """A repository that comes with the program, fetched into a clone."""
    sources = dict(load_repo_lock(bundled_home()).repos)
    source = sources[name]
    pin = RepoPin(name=name, commit=source.commit, tree=source.tree)
    found = Repos(store, bundled_home() / "repos", sources).ensure(pin)
    git(folder, "fetch", "--quiet", str(found.folder), pin.commit)
    return pin


def h11_row(store: Store, clone: Path) -> dict[str, Any]:
    """A release of h11 and the next, as an instance; `clone` becomes its repository."""
    clone.mkdir(parents=True)
    git(clone, "init", "--quiet", "--bare")
    old, new = (shipped(store, name, clone).commit for name in ("h11-0.14.0", "h11-0.16.0"))
    git(clone, "update-ref", "refs/heads/main", old)
    patches = {
        "patch": ("--", "h11", ":!h11/tests"),
        "test_patch": ("--", "h11/tests/test_headers.py", "h11/tests/test_io.py"),
    }
    return {
        "repo": "python-hyper/h11",
        "instance_id": "python-hyper__h11-170",
        "base_commit": old,
        "problem_statement": "Chunked bodies with garbage after a chunk are accepted.\n",
        "created_at": "2025-01-10T00:00:00Z",
        "version": "0.14",
        "FAIL_TO_PASS": json.dumps([
            "h11/tests/test_headers.py::test_normalize_and_validate",
            "h11/tests/test_io.py::test_ChunkedReader",
        ]),
        "PASS_TO_PASS": json.dumps([
            "h11/tests/test_headers.py::test_get_set_comma_header",
            "h11/tests/test_io.py::test_readers_simple",
            "h11/tests/test_connection.py::test_early_detection_of_invalid_request[",
            "h11/tests/test_io.py::test_cut[a",
        ]),
        **{key: git(clone, "diff", old, new, *paths).decode() for key, paths in patches.items()},
    }  # fmt: skip
