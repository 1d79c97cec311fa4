"""stillroom export and submit, as a person runs them."""

import json
from pathlib import Path

from tests.e2e.conftest import Stillroom
from tests.support.toldrun import write_run


def test_a_run_is_exported_and_what_is_left_out_is_told(stillroom: Stillroom, tmp_path: Path):
    write_run(tmp_path / "run", tmp_path / "home")
    done = stillroom("export", "atif", "run", "--out", "out")
    assert done.status == 0, done.err
    assert "b-1 try 0: left out: it was graded" in done.out
    assert "2 written to" in done.out
    assert (tmp_path / "out" / "a-1" / "1" / "trajectory.json").is_file()
    told = stillroom("export", "asciicast", "run", "a-1", "--cast", "3", "--out", "o", "--json")
    assert [(line["task"], line["attempt"]) for line in told.lines] == [("a-1", 0), ("a-1", 1)]


def test_nothing_to_export_is_an_error(stillroom: Stillroom, tmp_path: Path):
    write_run(tmp_path / "run", tmp_path / "home")
    done = stillroom("export", "chat", "run", "c-1", "--out", "out")
    assert (done.status, "has anything to tell" in done.err) == (2, True)


def test_a_submissions_file_is_checked_before_it_is_graded(stillroom: Stillroom, tmp_path: Path):
    rows = [{"task": "h11-0.14.0"}, {"task": "h11-0.14"}]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = stillroom("submit", "--check", "s.jsonl", "--suite", "core")
    assert done.status == 2
    assert "s.jsonl:2: there is no task `h11-0.14`\n  hint: did you mean" in done.out
    assert "no submission for `click-8.1.3`" in done.out
    (tmp_path / "s.jsonl").write_text(json.dumps(rows[0]) + "\n")
    good = stillroom("submit", "--check", "s.jsonl", "--json")
    assert (good.status, good.lines[0]["problems"], good.lines[0]["submissions"]) == (0, [], 1)
