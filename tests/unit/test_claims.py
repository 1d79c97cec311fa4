"""Another's results: what is graded again, and what counts as a difference."""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import UserError
from sandbox.formats.taskfile import load_task
from sandbox.model.record import Rollout, VerdictRecord
from sandbox.model.task import TaskSpec
from sandbox.rollout.claims import Claims, compared, read_claims
from sandbox.rollout.compare import differences
from tests.support.evidences import (
    FAILED,
    GOOD,
    ONE,
    PATCH,
    TWO,
    a_layered_task,
    a_record,
    an_evidence,
    layered_home,
    write_run,
)


@pytest.fixture
def task(tmp_path: Path) -> TaskSpec:
    return a_layered_task(layered_home(tmp_path / "home"))


@pytest.fixture
def run(tmp_path: Path, task: TaskSpec) -> Path:
    return write_run(
        tmp_path / "run", task, an_evidence(task), an_evidence(task, GOOD | {ONE: FAILED})
    )


def claims(run: Path, task: TaskSpec) -> Claims:
    return read_claims(run, lambda name: load_task(Path(task.home), name))


def rewrite(run: Path, number: int, **changes: object) -> None:
    path = run / "results.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[number] |= changes
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_every_verdict_has_its_submission_and_void_ones_are_told(run: Path, task: TaskSpec):
    found = claims(run, task)
    assert [
        (r.attempt, line.data) for r, line in zip(found.rollouts, found.lines, strict=True)
    ] == [
        (0, PATCH),
        (1, PATCH),
    ]
    assert found.notes == ("1 void: there is nothing to compare",)
    assert list(compared(found, found.rollouts)) == []


def test_a_submission_may_be_in_the_rollouts_folder_or_in_the_file_only(run: Path, task: TaskSpec):
    (run / "submissions.jsonl").write_text("")
    (run / "rollouts" / "toy-1" / "0" / "submission.patch").unlink()
    found = claims(run, task)
    assert [r.attempt for r in found.rollouts] == [1]
    (lacks,) = compared(found, [])
    assert (lacks.attempt, lacks.what, lacks.ours) == (0, "submission", "there is none")


def test_a_submission_that_was_exchanged_is_a_difference_and_is_graded(run: Path, task: TaskSpec):
    (run / "rollouts" / "toy-1" / "1" / "submission.patch").write_bytes(b"another")
    found = claims(run, task)
    assert [line.data for line in found.lines] == [PATCH, b"another"]
    (other,) = compared(found, [])
    assert other.ours == hashlib.sha256(b"another").hexdigest()


def test_no_link_is_followed_and_nothing_waits(run: Path, task: TaskSpec, tmp_path: Path):
    first, second = ((run / "rollouts" / "toy-1" / n / "submission.patch") for n in "01")
    (tmp_path / "secret").write_text("of this machine")
    first.unlink()
    first.symlink_to(tmp_path / "secret")
    assert claims(run, task).lines[0].data == PATCH
    second.unlink()
    os.mkfifo(second)
    with pytest.raises(UserError, match="is no submission"):
        claims(run, task)


def test_what_could_be_no_submission_is_told_and_not_graded(run: Path, task: TaskSpec):
    nothing = hashlib.sha256(b"").hexdigest()
    verdict = {"reward": 0.0, "resolved": False, "reason": "rejected: too large", "checks": {}}
    rewrite(run, 0, verdict=verdict, patch_sha256=nothing)
    found = claims(run, task)
    assert [r.attempt for r in found.rollouts] == [1]
    assert "nothing to grade again" in found.notes[1]
    rewrite(run, 0, verdict=verdict | {"reward": 1.0})
    assert [r.attempt for r in claims(run, task).rollouts] == [0, 1]


def test_results_about_another_task_are_refused(run: Path, task: TaskSpec):
    rewrite(run, 0, task_digest="sha256:" + "9" * 64)
    with pytest.raises(UserError, match=r"is about task sha256:9{64}; here it is") as refused:
        claims(run, task)
    assert refused.value.exit_status == 2


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda run: (run / "results.jsonl").write_text(""), "there is no verdict"),
        (lambda run: (run / "results.jsonl").write_text("{\n"), "not valid JSON"),
        (lambda run: rewrite(run, 0, task="../../etc"), "no task"),
    ],
)
def test_bad_results_are_refused(run: Path, task: TaskSpec, spoil, says: str):
    spoil(run)

    def load(name: str) -> TaskSpec:
        if name != "toy-1":
            raise UserError(f"there is no task `{name}`")
        return task

    with pytest.raises(UserError) as refused:
        read_claims(run, load)
    assert says in str(refused.value)


def verdict(**changes: Any) -> VerdictRecord:
    made = VerdictRecord(reward=0.0, resolved=False, reason="x", checks={ONE: "failed"})
    return replace(made, **changes)


def both(task: TaskSpec, theirs: VerdictRecord, ours: VerdictRecord) -> list[tuple[str, str, str]]:
    record: Rollout = a_record(task, an_evidence(task))
    pairs = differences(replace(record, verdict=theirs), replace(record, verdict=ours))
    return [(d.what, d.theirs, d.ours) for d in pairs]


def test_each_outcome_is_compared_and_words_are_not(task: TaskSpec):
    ours = verdict(reason="y", checks={ONE: "missing", TWO: "passed"})
    assert both(task, verdict(), verdict(reason="y")) == []
    assert both(task, verdict(), ours) == [
        (ONE, "failed", "missing"),
        (TWO, "absent", "passed"),
    ]


def test_a_claim_of_more_than_there_is_is_told(task: TaskSpec):
    claim = verdict(reward=1.0, resolved=True, checks={ONE: "passed"})
    assert both(task, claim, verdict(flags=("forged",))) == [
        ("reward", "1.000000", "0.000000"),
        ("resolved", "yes", "no"),
        ("flags", "none", "forged"),
        (ONE, "passed", "failed"),
    ]


def test_two_that_are_forged_differ_by_their_coins_only(task: TaskSpec):
    theirs = verdict(flags=("forged",), checks={ONE: "missing"})
    assert both(task, theirs, verdict(flags=("forged",))) == []
