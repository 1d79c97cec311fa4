"""A submissions.jsonl is held against a suite, and all that is wrong with it is told at once."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import SpecError
from sandbox.formats.records import read_submissions
from sandbox.formats.submissionfile import Examined, examine

KNOWN = ("a-1", "b-1", "c-1", "elsewhere")
SUITE = ("c-1", "a-1", "b-1")
PATCH = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"


def looked_at(tmp_path: Path, text: str | bytes, suite: tuple[str, ...] | None = SUITE) -> Examined:
    path = tmp_path / "s.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return examine(path, KNOWN, suite, "core")


def said(found: Examined, tmp_path: Path) -> list[str]:
    told = [f"{r.where}: {r.message}" for r in found.problems]
    return [line.removeprefix(f"{tmp_path}/s.jsonl") for line in told]


def lines(*rows: dict[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_a_file_with_all_of_a_suite_is_good(tmp_path: Path):
    found = looked_at(
        tmp_path,
        lines({"task": "a-1", "patch": PATCH}, {"task": "b-1"}, {"task": "c-1", "patch": ""}),
    )
    assert found.good
    assert (found.submissions, found.tasks, found.notes) == (3, 3, ())


def test_everything_that_is_wrong_is_told_with_its_line(tmp_path: Path):
    text = (
        b"\xef\xbb\xbf"
        + lines({"task": "a-1"}).encode()
        + lines({"task": "a-1"}, {"task": "a-1"}, {"task": "a-2"}, {"task": "elsewhere"}).encode()
        + b'\r\n{"task": "b-1", "pach": ""}\n["b-1"]\n{"task": "\xff"}\n'
        + lines({"task": "b-1", "attempt": -1}, {"task": "b-1", "patch_base64": "!"}).encode()
        + b'{"task": "b-1"'
    )
    found = looked_at(tmp_path, text)
    assert [line[:58] for line in said(found, tmp_path)] == [
        ":1: not valid JSON: Unexpected UTF-8 BOM (decode using utf-8-sig)"[:58],
        ":3: `a-1` attempt 0 stands in line 2 already",
        ":4: there is no task `a-2`",
        ":5: `elsewhere` is no task of suite `core`",
        ":7: unknown key `pach`",
        ":8: a line should be a JSON object",
        ":9: not UTF-8 text",
        ":10: `attempt` should be 0 or more",
        ":11: `patch_base64` is not base64",
        ":12: not valid JSON: Expecting ',' delimiter",
    ]
    hints = {r.where.rpartition(":")[2]: r.hint for r in found.problems}
    assert (hints["4"], hints["7"]) == ("did you mean `a-1`?", "did you mean `patch`?")
    assert found.missing == ("c-1", "b-1")
    assert not found.good


def test_without_a_suite_nothing_is_missing_and_every_task_is_known(tmp_path: Path):
    assert looked_at(tmp_path, lines({"task": "elsewhere"}), None).good
    assert not looked_at(tmp_path, lines({"task": "nowhere"}), None).good


def test_who_offers_predictions_is_told_who_reads_them(tmp_path: Path):
    row: dict[str, object] = {"instance_id": "a-1", "model_patch": PATCH, "model_name_or_path": "m"}
    (problem,) = looked_at(tmp_path, lines(row), None).problems
    assert problem.message.startswith("unknown key `instance_id`")
    assert "grade FILE --dataset DATA" in problem.hint


@pytest.mark.parametrize("text", ["", "\n\r\n \n"])
def test_an_empty_file_is_not_good(tmp_path: Path, text: str):
    assert said(looked_at(tmp_path, text, None), tmp_path) == [": there is no submission in it"]


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(SpecError, match="no such file"):
        examine(tmp_path / "none", KNOWN)


def test_what_will_cost_the_reward_is_noted_and_is_no_problem(tmp_path: Path):
    rows = [{"task": "a-1", "attempt": n, "patch": PATCH} for n in range(2)]
    found = looked_at(tmp_path, lines(*rows, {"task": "b-1", "patch": "hello"}), None)
    assert found.good
    unreadable, uneven = found.notes
    assert unreadable.where.endswith(":3")
    assert "will be rejected" in unreadable.message
    assert uneven.message == "not 2 tries at each task: b-1 1"


rows = st.fixed_dictionaries(
    {"task": st.sampled_from([*KNOWN, "x"])},
    optional={
        "patch": st.sampled_from(["", PATCH, "hello"]),
        "patch_base64": st.sampled_from(["", "eA==", "!"]),
        "attempt": st.integers(-1, 2),
        "agent": st.text(max_size=3),
        "odd": st.none(),
    },
)


@given(st.lists(st.one_of(rows.map(json.dumps), st.text(max_size=10)), max_size=5))
def test_what_is_good_is_taken_and_what_is_not_is_not(tmp_path_factory, written: list[str]):
    path = tmp_path_factory.mktemp("s") / "s.jsonl"
    path.write_bytes("\n".join(written).encode("utf-8", "surrogatepass"))
    found = examine(path, [*KNOWN, "x"])
    if found.good:
        assert len(read_submissions(path)) == found.submissions
    else:
        with pytest.raises(SpecError):
            read_submissions(path)
