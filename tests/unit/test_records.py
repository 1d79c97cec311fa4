"""JSON Lines survive a writer that died at any byte, and tell damage with file and line."""

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import SpecError
from sandbox.formats import records
from sandbox.formats.records import (
    Appender,
    read_results,
    read_submissions,
    repair,
    submission_line,
)
from sandbox.formats.shape import plain
from sandbox.model.record import Ending, FaultRecord, Rollout, VerdictRecord
from sandbox.model.task import Digest, TaskId

PASSED = Rollout(
    task=TaskId("a-1"),
    task_digest=Digest("sha256:" + "1" * 64),
    attempt=0,
    agent="nop",
    runtime="fake",
    started="2024-05-15T12:00:00Z",
    ending=Ending.SUBMITTED,
    steps=3,
    verdict=VerdictRecord(reward=0.5, resolved=False, reason="ä \u2028 \0", checks={"x": "passed"}),
    seconds={"total": 1.5},
)
VOID = replace(
    PASSED,
    attempt=1,
    verdict=None,
    ending=None,
    fault=FaultRecord(code="image", message="gone", retry=False),
)
LINE = json.dumps(plain(PASSED)).encode() + b"\n"


def written(path: Path, *rollouts: Rollout) -> bytes:
    with Appender(path) as out:
        for rollout in rollouts:
            out.append(rollout)
    return path.read_bytes()


def test_what_is_appended_is_read_again(tmp_path: Path):
    path = tmp_path / "new" / "results.jsonl"
    written(path, PASSED)
    written(path, VOID, PASSED)
    assert read_results(path) == [PASSED, VOID, PASSED]


def test_cut_at_any_byte_the_file_is_a_prefix_of_what_was_written(tmp_path: Path):
    rollouts = [replace(PASSED, attempt=i) for i in range(3)]
    whole = written(tmp_path / "whole.jsonl", *rollouts)
    cut = tmp_path / "cut.jsonl"
    for at in range(len(whole) + 1):
        cut.write_bytes(whole[:at])
        count = whole[:at].count(b"\n")
        assert read_results(cut) == rollouts[:count]
        assert repair(cut) == at - (whole[:at].rfind(b"\n") + 1)
        assert cut.read_bytes() == whole[: whole[:at].rfind(b"\n") + 1]


def test_appending_to_a_torn_file_begins_a_new_line(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    path.write_bytes(LINE + LINE[:40])
    written(path, VOID)
    assert read_results(path) == [PASSED, VOID]


@given(st.binary(max_size=300), st.integers(0, 200_000))
def test_repair_leaves_whole_lines_and_takes_nothing_else(tmp_path_factory, tail, size):
    path = tmp_path_factory.mktemp("r") / "f"
    path.write_bytes(b"x" * size + b"\n" + tail)
    removed = repair(path)
    left = path.read_bytes()
    assert left.endswith(b"\n")
    assert b"\n" not in (b"x" * size + b"\n" + tail)[len(left) :]
    assert removed + len(left) == size + 1 + len(tail)


def test_a_file_that_is_not_there_needs_no_repair_and_holds_no_results(tmp_path: Path):
    assert repair(tmp_path / "none") == 0
    assert read_results(tmp_path / "none") == []


def test_a_record_is_one_line_whatever_it_holds(tmp_path: Path):
    raw = written(tmp_path / "r", replace(PASSED, agent="a\nb\r\u2028\x85\ud800"))
    assert len(raw.splitlines()) == 1
    assert raw.isascii()


MALFORMED_RESULTS = [
    ("not JSON", b"hello\n", 2, "not valid JSON"),
    ("half a line, then more", LINE[:50] + b"\n" + LINE, 2, "not valid JSON"),
    ("two records on a line", LINE.strip() + LINE, 2, "not valid JSON"),
    ("NaN", LINE.replace(b"0.5", b"NaN"), 2, "NaN is not a JSON value"),
    ("infinity", LINE.replace(b"0.5", b"-Infinity"), 2, "-Infinity is not a JSON value"),
    ("a list", b"[1, 2]\n", 2, "should be a JSON object"),
    ("a string", b'"a"\n', 2, "should be a JSON object"),
    ("missing key", LINE.replace(b'"agent"', b'"agnt"'), 2, "unknown key `agnt`"),
    ("unknown key", LINE.replace(b'{"task"', b'{"zzz": 1, "task"'), 2, "unknown key `zzz`"),
    ("another schema", LINE.replace(b'"schema": 1', b'"schema": 9'), 2, "schema 9 is not known"),
    ("no schema", LINE.replace(b', "schema": 1', b""), 2, "schema None is not known"),
    ("schema as text", LINE.replace(b'"schema": 1', b'"schema": "1"'), 2, "schema '1'"),
    ("wrong type", LINE.replace(b'"steps": 3', b'"steps": "3"'), 2, "`steps`"),
    ("unknown ending", LINE.replace(b'"submitted"', b'"bored"'), 2, "`ending`"),
    ("unknown fault", LINE.replace(b'"fault": null', b'"fault": {"code": "x", "message": ""}'), 2,
     "`fault.code`"),
    ("not UTF-8", LINE.replace(b"nop", b"n\xff"), 2, "not UTF-8"),
    ("deep", b"[" * 100_000 + b"\n", 2, "nested too deeply"),
    ("a number of 5000 digits", LINE.replace(b"0.5", b"9" * 5000), 2, "not valid JSON"),
    ("NUL bytes", bytes(40) + b"\n", 2, "not valid JSON"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "line", "says"),
    [m[1:] for m in MALFORMED_RESULTS],
    ids=[m[0] for m in MALFORMED_RESULTS],
)
def test_a_damaged_result_is_one_error_with_its_line(tmp_path: Path, raw, line, says):
    path = tmp_path / "results.jsonl"
    path.write_bytes(LINE + raw)
    with pytest.raises(SpecError) as caught:
        read_results(path)
    assert caught.value.where.startswith(f"{path}:{line}")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "line", "says"),
    [
        (b'{"task": "a", "patch": "x"}\n{"task": "a", "attempt"', ":2", "not valid JSON"),
        (b'{"task": "a", "patch": "x"}\n{"task": "a", "patch": "y"}\n', ":2", "in line 1 already"),
        (b'{"task": "a", "patch": "x", "patch_base64": "eA=="}', ":1", "exclude each other"),
        (b'\n\n{"task": "a", "patch_base64": "e"}', ":3", "not base64"),
        (b'{"task": "a", "patch_base64": "e!A=="}', ":1", "not base64"),
        (b'{"task": "a", "patch_base64": "\xc3\xa4"}', ":1", "not base64"),
        (b'{"task": "a", "patch": "\\ud800"}', ":1", ""),
        (b'{"task": "a", "attempt": -1}', ":1", "0 or more"),
        (b'{"task": "a", "attempt": "1"}', ":1", "`attempt`"),
        (b'{"task": "a", "attempt": true}', ":1", "`attempt`"),
        (b'{"task": "a", "attempt": 1.5}', ":1", "`attempt`"),
        (b'{"task": 1}', ":1", "`task` should be a string"),
        (b'{"patch": "x"}', ":1", "`task` is missing"),
        (b'{"task": "a", "instance_id": "x"}', ":1", "unknown key `instance_id`"),
        (b'{"task": "a", "ptch": "x"}', ":1", "unknown key `ptch`"),
        (b'{"task": "a", "patch": null}', ":1", "`patch` should be a string"),
        (b"[]", ":1", "should be a JSON object"),
        (b"", "", "no submission in it"),
        (b"\n \n", "", "no submission in it"),
        (b"\xff", ":1", "not UTF-8"),
        (b"\xef\xbb\xbf{}", ":1", "not valid JSON"),
        (b'{"task": "a", "patch": NaN}', ":1", "NaN is not a JSON value"),
    ],
    ids=lambda v: str(v[:40]),
)
def test_a_bad_submission_is_one_error_with_its_line(tmp_path: Path, raw, line, says):
    path = tmp_path / "submissions.jsonl"
    path.write_bytes(raw)
    with pytest.raises(SpecError) as caught:
        read_submissions(path)
    assert caught.value.where.startswith(f"{path}{line}")
    assert says in str(caught.value)


def test_a_misspelt_key_gets_a_hint(tmp_path: Path):
    path = tmp_path / "s"
    path.write_bytes(b'{"task": "a", "ptch": "x"}')
    with pytest.raises(SpecError) as caught:
        read_submissions(path)
    assert caught.value.hint == "did you mean `patch`?"


def test_a_line_longer_than_is_read_is_told(tmp_path: Path):
    path = tmp_path / "s"
    with path.open("wb") as f:
        f.truncate(records.MAX_LINE_BYTES + 10)
    with pytest.raises(SpecError, match=r":1: a line of more than 64 MiB"):
        read_submissions(path)


def test_a_file_that_is_not_there_or_a_folder_is_told(tmp_path: Path):
    with pytest.raises(SpecError, match="no such file"):
        read_submissions(tmp_path / "none")
    with pytest.raises(SpecError, match="cannot be read"):
        read_submissions(tmp_path)
    with pytest.raises(SpecError, match="cannot be read"):
        read_results(tmp_path)


def test_the_last_line_of_submissions_needs_no_newline(tmp_path: Path):
    path = tmp_path / "s"
    path.write_bytes(b'{"task": "a", "patch": "x"}')
    assert [line.data for line in read_submissions(path)] == [b"x"]


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=5))
def test_any_patch_survives_submissions_jsonl(tmp_path_factory, patches):
    path = tmp_path_factory.mktemp("s") / "s.jsonl"
    with Appender(path, sync=False) as out:
        for i, patch in enumerate(patches):
            out.append(submission_line("t", patch, agent="a", attempt=i))
    assert [line.data for line in read_submissions(path)] == patches


def test_text_is_kept_readable_and_only_other_bytes_are_coded():
    assert submission_line("t", "ä\n".encode(), agent="", attempt=0).patch == "ä\n"
    coded = submission_line("t", b"\xff", agent="", attempt=0)
    assert (coded.patch, coded.patch_base64) == ("", base64.b64encode(b"\xff").decode())
