"""A finished run judged again from its evidence: the same bytes, or what changed, by name."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import UserError
from sandbox.formats import jsonfile
from sandbox.formats.digest import digest_of
from sandbox.formats.layerfile import load_layers
from sandbox.formats.shape import plain
from sandbox.formats.taskfile import load_task
from sandbox.grading.judge import judge, judge_as_asked
from sandbox.grading.unlike import unlike
from sandbox.model.layers import BARE
from sandbox.model.task import TaskId, TaskSpec
from sandbox.model.verdict import CheckReport, Evidence, Outcome, Ran, Seen
from sandbox.rollout.outdir import rollout_folder
from sandbox.rollout.rejudge import Rejudged, rejudge, write_again
from tests.support.evidences import (
    ERROR,
    FAILED,
    GATE,
    GOOD,
    ONE,
    PASSED,
    TWO,
    a_layered_task,
    an_evidence,
    edit_evidence,
    layered_home,
    write_run,
)

PARTIAL = GOOD | {ONE: FAILED}


@pytest.fixture
def task(tmp_path: Path) -> TaskSpec:
    return a_layered_task(layered_home(tmp_path / "home"))


@pytest.fixture
def run(tmp_path: Path, task: TaskSpec) -> Path:
    """A resolved one, a partial one, and a void one."""
    return write_run(tmp_path / "run", task, an_evidence(task), an_evidence(task, PARTIAL))


def again(run: Path, task: TaskSpec) -> list[Rejudged]:
    return rejudge(run, lambda name: load_task(Path(task.home), name))


def change(task: TaskSpec, file: str, old: str, new: str) -> None:
    path = Path(task.home) / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_where_nothing_changed_the_results_are_the_same_bytes(run: Path, task: TaskSpec):
    out = run.parent / "again"
    results = write_again(run, out, again(run, task))
    assert results.read_bytes() == (run / "results.jsonl").read_bytes()
    assert (out / "submissions.jsonl").read_bytes() == (run / "submissions.jsonl").read_bytes()
    assert [r.now.reward for r in again(out, task)] == [1.0, 0.75, None]


def test_results_that_a_newer_version_would_write_otherwise_stay_as_they_are(
    run: Path, task: TaskSpec
):
    path = run / "results.jsonl"
    compact = [
        json.dumps(json.loads(line), separators=(",", ":"))
        for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(compact) + "\n")
    results = write_again(run, run.parent / "again", again(run, task))
    assert results.read_bytes() == path.read_bytes()


def test_another_weight_is_another_verdict_and_is_told(run: Path, task: TaskSpec):
    change(task, "verifiers/toy-1/checks.yaml", "weight: 3", "weight: 1")
    found = again(run, task)
    assert [r.now.reward for r in found] == [1.0, 0.5, None]
    (told,) = [d for r in found for d in r.differences]
    assert (told.what, told.theirs, told.ours) == ("reward", "0.750000", "0.500000")
    results = write_again(run, run.parent / "again", found)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    now = load_task(Path(task.home), "toy-1").digest
    assert [line["task_digest"] for line in lines] == [now, now, task.digest]
    assert [line["seconds"] for line in lines] == [{"total": 3.25}] * 3
    assert json.loads((results.parent / "run.json").read_text())["tasks"] == {"toy-1": now}


def test_an_outcome_that_is_accepted_now_counts_now(run: Path, task: TaskSpec):
    write_run(run.parent / "other", task, an_evidence(task, GOOD | {ONE: Outcome.XFAILED}))
    change(
        task,
        "verifiers/toy-1/checks.yaml",
        f"  - {ONE}\n",
        f"  - id: {ONE}\n    accept: [xfailed]\n",
    )
    (line, _) = again(run.parent / "other", task)
    # The canary of a test that is expected to fail proves nothing, and nothing is claimed of it.
    assert line.now.verdict is not None
    assert line.now.verdict.checks[ONE] == "xfailed"
    assert line.now.verdict.flags == ()


CHANGES = {
    "a hidden test": (
        "verifiers/toy-1/bundle/tests/test_a.py",
        "def test_one",
        "def test_0ne",
        "the hidden tests of `toy-1` are sha256:",
    ),
    "canaries": ("verifiers/toy-1/canaries.json", "no literal", "no number", "canaries.json is"),
    "the clock": ("task_specs/toy-1/task.yaml", "2024-05-15", "2024-05-16", "changed since: clock"),
    "a limit": ("task_specs/toy-1/task.yaml", "turns: 5", "turns: 6", "changed since: limits"),
    "the image": ("task_specs/toy-1/task.yaml", "sha256:0000", "sha256:0001", "since: image"),
    "the tests' time": ("task_specs/toy-1/task.yaml", "seconds: 60", "seconds: 61", "verifier"),
    "the instruction": ("task_specs/toy-1/instruction.md", "Mend", "Break", "since: instruction"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_evidence_of_something_else_is_refused_by_name(run: Path, task: TaskSpec, name: str):
    file, old, new, says = CHANGES[name]
    change(task, file, old, new)
    with pytest.raises(UserError) as refused:
        again(run, task)
    assert says in str(refused.value)
    assert refused.value.exit_status == 2


def test_hidden_tests_that_were_pinned_anew_are_named(task: TaskSpec):
    other = replace(task.verifier, bundle=replace(task.verifier.bundle, digest=digest_of("x")))
    changed = replace(task, verifier=other, digest=digest_of("y"))
    assert list(unlike(an_evidence(task).pins, changed)) == ["hidden tests (verifier.bundle)"]


def test_metadata_and_the_reference_solution_change_nothing(run: Path, task: TaskSpec):
    change(task, "task_specs/toy-1/task.yaml", "made for tests", "made by us")
    change(task, "task_specs/toy-1/task.yaml", "patch: solution.patch", "patch: instruction.md")
    assert [d for r in again(run, task) for d in r.differences] == []


def test_another_runner_is_told_and_the_evidence_judged(run: Path, task: TaskSpec):
    change(task, "verifiers/_runners/run_pytest.py", "runs", "runs otherwise")
    found = again(run, task)
    assert found[0].notes == ("toy-1: what ran the tests then is not what would run them now",)
    assert found[0].now == found[0].before


def test_evidence_is_taken_at_its_word(run: Path, task: TaskSpec):
    """Whoever doubts it grades the submissions again."""
    good = plain(an_evidence(task))
    parts = ("report", "second", "further", "plain")
    edit_evidence(run, 1, **{part: good[part] for part in parts})
    assert [r.now.reward for r in again(run, task)] == [1.0, 1.0, None]


def test_evidence_without_its_further_pairs_is_read_and_proves_nothing(run: Path, task: TaskSpec):
    path = rollout_folder(run, task.id, 0).path / "evidence.json"
    kept = json.loads(path.read_text())
    pairs = kept.pop("further")
    path.write_text(json.dumps(kept))
    assert [r.now.verdict.flags for r in again(run, task)[:1] if r.now.verdict] == [("unproved",)]
    for few in (pairs[:2], [pairs[0] | {"paths": ["tests/test_b.py"]}, *pairs[1:]]):
        edit_evidence(run, 0, further=few)
        assert again(run, task)[0].now.reward == 0.0
    edit_evidence(run, 0, further=pairs)
    assert again(run, task)[0].now.reward == 1.0


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text[: len(text) // 2], "not valid JSON"),
        (lambda _: "", "JSON"),
        (lambda text: text.replace('"ran"', '"rann"', 1), "`ran` is missing"),
        (lambda text: text.replace('"passed"', '"perfect"', 1), "outcome"),
        (lambda text: text.replace('"patch_sha256": "', '"patch_sha256": "0', 1), "submission 0"),
        (lambda text: text.replace('"task": "sha256:', '"task": "sha256:0', 1), "it is of task"),
    ],
)
def test_damaged_evidence_is_an_error_with_its_place(run: Path, task: TaskSpec, damage, says):
    path = run / "rollouts" / "toy-1" / "0" / "evidence.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(UserError, match=r"evidence\.json") as refused:
        again(run, task)
    assert says in str(refused.value)
    path.unlink()
    with pytest.raises(UserError, match="no such file"):
        again(run, task)


def test_a_folder_that_is_no_run_and_one_that_is_taken_are_refused(run: Path, task: TaskSpec):
    with pytest.raises(UserError, match="is not the folder of a run"):
        again(run.parent / "nothing", task)
    with pytest.raises(UserError, match="is there already"):
        write_again(run, run, again(run, task))


def test_only_the_last_line_about_a_rollout_has_its_evidence(run: Path, task: TaskSpec):
    """A void one that was run again stands above its verdict."""
    path = run / "results.jsonl"
    first, *rest = path.read_text().splitlines(keepends=True)
    old = json.loads(first) | {"task_digest": "sha256:" + "9" * 64}
    path.write_text("".join([json.dumps(old) + "\n", first, *rest]))
    results = write_again(run, run.parent / "again", again(run, task))
    assert results.read_bytes() == path.read_bytes()


def test_what_was_asked_for_is_what_it_is_judged_by(task: TaskSpec):
    """Of a certificate's run there is one box, in which some tests ran as canaries."""
    layers = load_layers(task)
    one = replace(an_evidence(task), second=None, plain=None, asked="mixed")
    assert judge_as_asked(task.verifier, one, layers).resolved
    assert judge(task.verifier, one, layers).flags == ("unproved",)
    assert not judge(task.verifier, one, layers).resolved
    alone = replace(
        one, asked="none", swapped=(), report=dict.fromkeys(GOOD, CheckReport(outcome=PASSED))
    )
    assert judge_as_asked(task.verifier, alone, layers).resolved


names = st.sampled_from([ONE, TWO, GATE, f"{ONE}[canary]", f"{TWO}[canary]", "another"])
texts = st.text(max_size=20)
told = st.builds(CheckReport, outcome=st.sampled_from(Outcome), message=texts)
boxes = {
    "ran": st.sampled_from(Ran),
    "detail": texts,
    "report": st.dictionaries(names, told, max_size=6),
    "observed": st.dictionaries(st.just("k1"), st.lists(texts, max_size=2).map(tuple)),
    "log": texts,
}
seens = st.builds(Seen, **boxes)
evidences = st.builds(
    Evidence,
    **boxes,
    asked=st.sampled_from(["all", "none", "mixed"]),
    swapped=st.lists(st.sampled_from([ONE, TWO]), unique=True).map(tuple),
    second=st.none() | seens,
    plain=st.none() | seens,
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> TaskSpec:
    return a_layered_task(layered_home(tmp_path_factory.mktemp("home")))


@given(evidence=evidences)
def test_evidence_that_was_written_and_read_is_judged_the_same(kept: TaskSpec, evidence: Evidence):
    path = Path(kept.home) / "evidence.json"
    jsonfile.write(path, jsonfile.dumps(evidence))
    read = jsonfile.load(path, Evidence)
    assert read == evidence
    for layers in (load_layers(kept), BARE):
        before, after = (judge_as_asked(kept.verifier, e, layers) for e in (evidence, read))
        assert before == after
        assert before.reward == after.reward


outcomes = st.fixed_dictionaries({name: st.sampled_from(Outcome) for name in (ONE, TWO, GATE)})


@given(told=outcomes, swapped=st.sampled_from([(), (ONE,), (TWO,), (ONE, TWO)]))
def test_an_honest_submission_does_not_notice_the_coins(
    kept: TaskSpec, told: dict[str, Outcome], swapped: tuple[str, ...]
):
    """Nor the canaries: partial credit is what the tests alone would give."""
    verdict = judge_as_asked(
        kept.verifier, an_evidence(kept, told, swapped=swapped), load_layers(kept)
    )
    plainly = {name: CheckReport(outcome=outcome) for name, outcome in told.items()}
    alone = judge(kept.verifier, Evidence(ran=Ran.FINISHED, report=plainly))
    assert (verdict.reward, verdict.flags) == (alone.reward, ())
    assert [c.outcome for c in verdict.checks] == [c.outcome for c in alone.checks]


def test_an_unknown_task_is_told(run: Path):
    def load(name: TaskId) -> TaskSpec:
        raise UserError(f"there is no task `{name}`")

    with pytest.raises(UserError, match="no task `toy-1`"):
        rejudge(run, load)


def test_a_check_that_erred_is_no_pass_again(run: Path, task: TaskSpec):
    other = write_run(run.parent / "other", task, an_evidence(task, GOOD | {GATE: ERROR}))
    assert again(other, task)[0].now.reward == 0.0
