"""Why a reward is what it is, in words that fit eighty columns and obey nobody."""

from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import UserError
from sandbox.formats import jsonfile
from sandbox.formats.layerfile import load_layers
from sandbox.formats.taskfile import load_task
from sandbox.model.layers import BARE
from sandbox.model.task import TaskSpec
from sandbox.model.verdict import CheckReport, Evidence, Ran, Seen
from sandbox.report.explain import COLUMNS, matching, tell
from sandbox.report.reading import read_story
from sandbox.report.story import story, void
from tests.support.evidences import (
    FAILED,
    GATE,
    GOOD,
    ONE,
    PASSED,
    TWO,
    a_layered_task,
    a_record,
    a_void,
    an_evidence,
    layered_home,
    reports,
    write_run,
)


@pytest.fixture
def task(tmp_path: Path) -> TaskSpec:
    return a_layered_task(layered_home(tmp_path / "home"))


def words(task: TaskSpec, evidence: Evidence, *only: str) -> str:
    lines = tell(story(task, evidence, load_layers(task), a_record(task, evidence)), only)
    assert max(map(len, lines)) <= COLUMNS
    return "\n".join(lines)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_full_reward_says_what_it_rests_on(task: TaskSpec):
    told = flat(words(task, an_evidence(task)))
    assert told.startswith("toy-1, attempt 0: resolved, reward 1 agent somebody, runtime fake")
    assert "ended: submitted, after 7 steps" in told
    assert "first: finished; 3 reports in 1.5 s second: finished" in told
    assert "3 count; 2 of them have a canary, and it failed as it must; 1 have none" in told
    assert "every one of 3 checks passed, and nothing speaks against it: 1" in told


def test_a_part_of_it_says_what_failed_where_and_how_it_is_added_up(task: TaskSpec):
    told = flat(words(task, an_evidence(task, GOOD | {TWO: FAILED})))
    assert "not resolved, reward 0.25" in told
    assert f"{TWO}: failed, does not count (weight 3)" in told
    assert "as a canary, in the first box: failed (as it must)" in told
    assert f"as it is, in the second box: failed | AssertionError: {TWO}" in told
    assert "all 1 gates passed 2 of 3 checks passed 1 of 4 in weights = 0.250000" in told
    assert f"in short: 1 check did not pass, first {TWO} (failed)" in told


def test_a_gate_that_is_shut_is_the_whole_story(task: TaskSpec):
    told = flat(words(task, an_evidence(task, GOOD | {GATE: FAILED})))
    assert f"{GATE}: failed, does not count (gate)" in told
    assert "no canary: it has no literal" in told
    assert "1 of 1 gates did not pass: 0, whatever else did" in told
    assert "plain: not run: a plain run is made where there is a reward" in told


def test_a_forgery_shows_both_boxes_and_what_it_means(task: TaskSpec):
    all_pass = {name: CheckReport(outcome=PASSED) for name in reports(GOOD, (TWO,), second=False)}
    told = flat(words(task, replace(an_evidence(task), report=all_pass)))
    assert "not resolved, reward 0 (forged)" in told
    assert "as a canary, in the first box: passed" in told
    assert "because it passed, and so did its canary, which nothing right passes" in told
    assert "forged: 0, whatever passed" in told
    assert "its outcome does not depend on what is expected" in told


def test_canaries_that_pass_alone_are_counted(task: TaskSpec):
    """What two boxes that guess which one they are would show, and a wrong answer now and then."""
    swapped = {f"{TWO}[canary]": CheckReport(outcome=PASSED), ONE: CheckReport(outcome=PASSED)}
    evidence = an_evidence(task, GOOD | {TWO: FAILED})
    told = flat(words(task, replace(evidence, report={**evidence.report, **swapped})))
    assert "1 passed as a canary only: a wrong answer may be what one expects" in told
    assert "(forged)" not in told


def test_what_the_plain_run_showed_otherwise_is_told(task: TaskSpec):
    evidence = an_evidence(task)
    assert evidence.plain
    told = words(
        task, replace(evidence, plain=replace(evidence.plain, observed={"k1": ("7",)})), ONE
    )
    assert "(test-dependent)" in told
    assert "without the test runner: tests/test_a.py:1: `one()` is 7, not 1" in flat(told)


def test_further_pairs_are_told_and_what_was_otherwise_in_one(task: TaskSpec):
    evidence = an_evidence(task)
    told = flat(words(task, evidence, ONE))
    assert "3 further pairs of boxes: the reward rests on few units" in told
    assert "first of pair 2: finished" in told
    assert "box of pair" not in told
    pair = evidence.further[1]
    failed = {**pair.first.report, ONE: CheckReport(outcome=FAILED)}
    other = replace(pair, first=replace(pair.first, report=failed))
    further = (evidence.further[0], other, evidence.further[2])
    told = flat(words(task, replace(evidence, further=further), ONE))
    assert "as it is, in the first box of pair 3: failed" in told
    assert "because it passed, but was failed in pair 3 of boxes" in told


def test_a_rejected_submission_ran_nothing(task: TaskSpec):
    evidence = replace(
        an_evidence(task),
        ran=Ran.REJECTED,
        detail="it does not apply",
        report={},
        second=Seen(ran=Ran.REJECTED, detail="it does not apply"),
        plain=None,
        outside=("setup.py",),
    )
    told = flat(words(task, evidence))
    assert "first: rejected: it does not apply" in told
    assert "all 3 missing: nothing was run" in told
    assert "left out of it, since the task does not declare it: setup.py (1)" in told


def test_many_alike_are_counted_and_one_can_be_asked_for(task: TaskSpec):
    names = [f"tests/test_a.py::test_{n:02}" for n in range(30)]
    checks = tuple(replace(task.verifier.checks[0], id=n) for n in names)
    many = replace(task, verifier=replace(task.verifier, checks=checks))
    evidence = replace(
        an_evidence(task), report={}, swapped=(), second=None, further=(), plain=None
    )
    made = story(many, evidence, BARE, a_record(task, evidence))
    told = flat("\n".join(tell(made)))
    assert told.count("does not count") == 3
    assert "and 27 more that ended like one of these" in told
    assert [c.id for c in matching(made, ["*_0[12]"])] == names[1:3]
    one = flat("\n".join(tell(made, ["*_07"])))
    assert one.count("does not count") == 1


def test_nothing_that_a_test_said_can_be_obeyed(task: TaskSpec):
    evil = "\x1b[2J\x1b]0;owned\x07" + "x" * 200 + "\n" * 50 + "last"
    evidence = replace(
        an_evidence(task, GOOD | {GATE: FAILED}),
        outside=("\x1b[31m",),
        report={GATE: CheckReport(outcome=FAILED, message=evil)},
    )
    told = words(task, evidence)
    assert "\x1b" not in told
    assert "\x07" not in told
    assert "more lines in evidence.json" in told


def test_what_does_not_fit_together_comes_first(task: TaskSpec):
    evidence = an_evidence(task)
    record = a_record(task, an_evidence(task, GOOD | {ONE: FAILED}))
    moved = replace(task, workdir="/elsewhere", digest=task.image.digest)
    told = flat("\n".join(tell(story(moved, evidence, load_layers(task), record))))
    assert "CAREFUL: the task has changed since (workdir): what follows may not fit it" in told
    assert "CAREFUL: results.jsonl has a reward of 0.75; by its evidence" in told


def test_a_void_one_is_no_zero(task: TaskSpec):
    lines = tell(void(a_void(task, 2)))
    assert lines[0] == "toy-1, attempt 2: void, no reward"
    told = flat("\n".join(lines))
    assert "void: runtime: the box was lost hint: look at it" in told
    assert "it is no 0, and a second try makes sense" in told


def test_it_is_read_from_a_runs_folder(tmp_path: Path, task: TaskSpec):
    run = write_run(tmp_path / "run", task, an_evidence(task))

    def load(name: str) -> TaskSpec:
        return load_task(Path(task.home), name)

    found, files = read_story(run, "toy-1", None, load)
    assert (found.reward, found.doubts) == (1.0, ())
    assert [f.split(":")[0].rpartition("/")[2] for f in files] == [
        "evidence.json",
        "submission.patch",
    ]
    assert jsonfile.dumps(found).startswith("{")
    assert read_story(run, "toy-1", 1, load)[0].reward is None
    with pytest.raises(UserError, match="there is no attempt 7"):
        read_story(run, "toy-1", 7, load)
    (run / "results.jsonl").write_text("")
    with pytest.raises(UserError, match="has not ended"):
        read_story(run, "toy-1", 0, load)


def test_a_layer_that_cannot_be_had_is_a_doubt(tmp_path: Path, task: TaskSpec):
    run = write_run(tmp_path / "run", task, an_evidence(task))
    path = Path(task.home) / "verifiers" / "toy-1" / "plain.json"
    path.write_text(path.read_text() + " ")
    found, _ = read_story(run, "toy-1", 0, lambda name: load_task(Path(task.home), name))
    assert "told as if the tests were all there is" in found.doubts[0]
