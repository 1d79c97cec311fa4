"""A finished run: judged again without a box, explained, and graded again by somebody else."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from sandbox.formats import jsonfile
from sandbox.formats.layerfile import CANARIES, file_digest, layer_path
from sandbox.formats.taskfile import load_task
from sandbox.model.layers import Canaries, Edit, Unit
from tests.e2e.conftest import Stillroom, command

pytestmark = [pytest.mark.box, pytest.mark.network, pytest.mark.timeout(900)]


CASES = {
    "test_words_are_counted": [('"a b"', "a b", 2, 4), ('"one"', "one", 1, 3)],
    "test_white_space_is_no_word": [
        ('""', "", 0, 5),
        ('"a  b"', "a  b", 2, 7),
        (r'" a\n"', r" a\n", 1, 9),
    ],
}
"""Test → what it is told, that in its id, what is expected, and what no solution returns."""
FORGED = """\
--- a/words.py
+++ b/words.py
@@ -3,4 +3,7 @@

 def count_words(text: str) -> int:
     \"\"\"The number of words in the text.\"\"\"
-    return len(text.split(" "))
+    class Any(int):
+        __hash__ = int.__hash__
+        __eq__ = lambda self, other: True
+    return Any(len(text.split(" ")))
"""


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def put(path: Path, told: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in told))


def with_canaries(home: Path) -> None:
    """Each of its two tests expects other numbers in one of the two boxes."""
    tests = home / "verifiers" / "my-task" / "bundle" / "tests" / "test_words.py"
    lines = tests.read_text().splitlines()
    task = load_task(home, "my-task")
    units = []
    for name, cases in CASES.items():
        number = next(n for n, line in enumerate(lines) if name in line) - 1
        edits = tuple(
            Edit(
                path="tests/test_words.py",
                line=number + 1,
                column=lines[number].index(f"{told}, {old})"),
                old=f"{told}, {old}",
                new=f"{told}, {new}",
            )
            for told, _, old, new in cases
        )
        checks = {
            f"tests/test_words.py::{name}[{case}-{old}]": f"tests/test_words.py::{name}[{case}-{new}]"
            for _, case, old, new in cases
        }
        units.append(Unit(name=name, edits=edits, checks=checks))
    path = layer_path(task, CANARIES)
    made = Canaries(bundle=task.verifier.bundle.digest, units=tuple(units))
    path.write_text(jsonfile.dumps(made))
    spec = home / "task_specs" / "my-task" / "task.yaml"
    pins = f"  layers: [canary]\n  canaries: {file_digest(path)}\n  seconds: 120\n"
    spec.write_text(spec.read_text().replace("  seconds: 120\n", pins, 1))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a task, and a run: a good submission, none at all, and one that is equal to anything."""
    home = tmp_path_factory.mktemp("made")

    def do(*arguments: str) -> None:
        argv = command(*arguments)
        done = subprocess.run(argv, cwd=home, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    do("new", "my-task")
    with_canaries(home)
    patch = home / "task_specs" / "my-task" / "solution" / "solution.patch"
    given: list[dict[str, object]] = [
        {"task": "my-task", "patch": patch.read_text(), "agent": "good"},
        {"task": "my-task", "patch": "", "agent": "idle", "attempt": 1},
        {"task": "my-task", "patch": FORGED, "agent": "forger", "attempt": 2},
    ]
    put(home / "s.jsonl", given)
    do("grade", "s.jsonl", "--out", "run")
    return home


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy of it, where `stillroom` works."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"


def test_a_run_is_judged_again_explained_and_verified(
    stillroom: Stillroom, run: Path, tmp_path: Path
):
    again = stillroom("grade", "--from-evidence", "run", "--out", "again")
    assert again.status == 0, again.err
    assert "no verdict is another one" in again.out
    assert "stillroom grade --verify run" in again.err
    results = (run / "results.jsonl").read_bytes()
    assert (tmp_path / "again" / "results.jsonl").read_bytes() == results

    explained = stillroom("explain", "again", "my-task", "--attempt", "1")
    assert explained.status == 0, explained.err
    assert "my-task, attempt 1: not resolved, reward" in explained.out
    assert "does not count" in explained.out
    assert "evidence.json: what the boxes showed" in explained.out
    assert max(map(len, explained.out.split("\nFiles\n")[0].splitlines())) <= 80
    (told,) = stillroom("explain", "run", "my-task", "--json").lines
    assert (told["reward"], told["doubts"]) == (1.0, [])
    assert [box["box"] for box in told["boxes"]][:2] == ["first", "second"]
    assert {s["form"] for c in told["checks"] for s in c["sights"]} == {"as it is", "as a canary"}
    unknown = stillroom("explain", "run", "my-task", "--check", "nothing")
    assert unknown.status == 2

    forged = stillroom("explain", "run", "my-task", "--attempt", "2")
    assert "not resolved, reward 0 (forged)" in forged.out
    assert "and so did its canary" in " ".join(forged.out.split())

    verified = stillroom("grade", "--verify", "run", "--out", "verified")
    assert verified.status == 0, verified.err
    assert "no verdict is another one" in verified.out
    once_more = stillroom("grade", "--verify", "run", "--out", "verified")
    assert "1 forged" in verified.out
    assert "3 of 3 had ended before" in once_more.err


def test_results_that_were_written_by_hand_are_found_out(
    stillroom: Stillroom, run: Path, tmp_path: Path
):
    """Evidence is taken at its word; boxes are not."""
    results = lines(run / "results.jsonl")
    by = {line["attempt"]: line for line in results}
    by[1]["verdict"] = by[0]["verdict"]
    put(run / "results.jsonl", results)
    good, idle = (run / "rollouts" / "my-task" / n / "evidence.json" for n in "01")
    pins = json.loads(idle.read_text())["pins"]
    idle.write_text(json.dumps(json.loads(good.read_text()) | {"pins": pins}))
    assert stillroom("grade", "--from-evidence", "run").status == 0
    done = stillroom("grade", "--verify", "run", "--json")
    assert done.status == 1, done.err
    told = {line["what"]: line for line in done.lines if "what" in line}
    assert told["resolved"] == {
        "task": "my-task",
        "attempt": 1,
        "what": "resolved",
        "theirs": "yes",
        "ours": "no",
    }


def test_weights_may_change_and_hidden_tests_may_not(
    stillroom: Stillroom, run: Path, tmp_path: Path
):
    checks = tmp_path / "verifiers" / "my-task" / "checks.yaml"
    first = next(line for line in checks.read_text().splitlines() if line.startswith("  - "))
    name = first.removeprefix("  - ")
    checks.write_text(checks.read_text().replace(first, f"  - id: {name}\n    weight: 9", 1))
    done = stillroom("grade", "--from-evidence", "run", "--json")
    assert done.status == 0, done.err
    digests = {line["task_digest"] for line in done.lines if "task_digest" in line}
    assert digests.isdisjoint(line["task_digest"] for line in lines(run / "results.jsonl"))
    assert len(digests) == 1
    before = shutil.copytree(run, tmp_path / "before")
    tests = tmp_path / "verifiers" / "my-task" / "bundle" / "tests" / "test_words.py"
    tests.write_text(tests.read_text() + "\n")
    refused = stillroom("grade", "--from-evidence", "run")
    assert refused.status == 2
    assert "the hidden tests of `my-task` are" in refused.err
    assert stillroom("lock", "task", "my-task").status == 0
    refused = stillroom("grade", "--from-evidence", "run")
    assert refused.status == 2
    assert "changed since: hidden tests (verifier.bundle)" in refused.err
    refused = stillroom("grade", "--verify", "run")
    assert refused.status == 2
    assert "is about task" in refused.err
    assert lines(before / "results.jsonl") == lines(run / "results.jsonl")
