"""Certificates: the same bytes each time, and no longer true once anything they are about changes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.audit.certify import shelf
from sandbox.audit.certify.certificate import Certificate, certificate, flake_rate, signed
from sandbox.audit.certify.execute import (
    Trial,
    manifest,
    now,
    reference_sha256,
    runner_digest,
    submissions,
    trial,
)
from sandbox.audit.certify.findings import NOP, ORACLE, Finding, examine
from sandbox.audit.certify.quarantine import move
from sandbox.audit.certify.shifts import all_shifts
from sandbox.errors import SpecError, UserError
from sandbox.formats import yamlfile
from sandbox.formats.checksfile import ChecksFile, check_lines, load_checks
from sandbox.formats.records import SubmissionLine
from sandbox.formats.shape import plain
from sandbox.formats.taskfile import load_task
from sandbox.model.task import NetworkSpec, TaskSpec
from sandbox.model.verdict import CheckReport, Evidence, HeldClock, Outcome, Ran
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot
from tests.support.homes import CHECKS, write_home

ONE, TWO, GATE = (f"tests/test_a.py::test_{n}" for n in ("one", "two", "gate"))


@pytest.fixture
def task(tmp_path: Path) -> TaskSpec:
    return load_task(write_home(tmp_path), "toy-1")


def seen(*failed: str) -> Evidence:
    return Evidence(
        ran=Ran.FINISHED,
        clock=HeldClock(at="", mode="ticking", coverage="full"),
        report={
            c: CheckReport(outcome=Outcome.FAILED if c in failed else Outcome.PASSED)
            for c in (ONE, TWO, GATE)
        },
    )


def finding(task: TaskSpec, **moved: Evidence) -> Finding:
    """Of a task that stands still, but for what its solution does under some shifts."""
    under = {name.replace("_", "-"): evidence for name, evidence in moved.items()}
    shifts = all_shifts(task.clock)
    runs = {
        ORACLE: {s.name: under.get(s.name, seen()) for s in shifts},
        NOP: {s.name: seen(ONE, TWO) for s in shifts},
    }
    return examine(task, shifts, runs, {ORACLE: reference_sha256(task), NOP: "0"})


def the_trial(task: TaskSpec) -> Trial:
    return trial(task, (), ())


def made(task: TaskSpec, **moved: Evidence) -> Certificate:
    shifts = all_shifts(task.clock)
    return certificate(task, shifts, finding(task, **moved), runner_digest(task))


def objections(task: TaskSpec, folder: Path | None = None) -> tuple[str, ...]:
    return shelf.hold(task, folder).objections


def settled(task: TaskSpec, *, exclude: bool = False, **moved: Evidence) -> shelf.Settled:
    return shelf.settle(the_trial(task), finding(task, **moved), None, exclude=exclude)


def test_a_certificate_is_the_same_bytes_each_time_and_holds(task: TaskSpec):
    done = settled(task)
    path = Path(done.certificate)
    assert path == Path(task.home) / "certificates" / "toy-1.json"
    before = path.read_bytes()
    settled(task)
    assert path.read_bytes() == before
    assert objections(task) == ()


def test_it_says_what_was_moved_and_what_came_of_it(task: TaskSpec):
    told = plain(made(task))
    assert told["certified"] is True
    assert told["clock"] == {"at": task.clock.at, "mode": "ticking", "coverage": "full"}
    by_name = {s["name"]: s["conditions"] for s in told["shifts"]}
    assert by_name["repeat-1"] == {}
    assert by_name["year-later"] == {"at": "2025-05-15T12:00:00Z"}
    assert by_name["umask"] == {"umask": 0o077}
    assert by_name["one-cpu-load"] == {"cpus": 1.0, "load": 2}
    assert [(s["name"], s["resolved"], s["runs"]) for s in told["submissions"]] == [
        ("oracle", True, len(by_name)),
        ("nop", False, len(by_name)),
    ]
    assert (told["repeats"], told["flake_rate_below"], told["confidence"]) == (10, 0.2589, 0.95)


@pytest.mark.parametrize(("repeats", "bound"), [(10, 0.2589), (30, 0.095), (300, 0.0099)])
def test_the_rule_of_three(repeats: int, bound: float):
    assert flake_rate(repeats) == bound
    assert bound == pytest.approx(3 / repeats, rel=0.15)


def test_what_varies_is_quarantined_and_nothing_is_certified(task: TaskSpec):
    told = made(task, user=seen(TWO))
    assert not told.certified
    assert [(q.check, q.why) for q in told.quarantined] == [(TWO, "varies with user")]
    assert told.flake_rate_below == 0.2589
    assert made(task, repeat_4=seen(TWO)).flake_rate_below is None, "it was seen to differ"


def test_a_certificate_of_what_varies_does_not_hold(task: TaskSpec):
    settled(task, user=seen(TWO))
    assert objections(task) == ("it says what varies, not that nothing does",)


def test_none_is_written_of_what_was_void_or_a_part(task: TaskSpec):
    part = trial(task, (), ("user",))
    assert shelf.settle(part, finding(task), None, exclude=False).certificate == ""
    void = Finding(task=task.id, void=("the machine",))
    assert shelf.settle(the_trial(task), void, None, exclude=False).certificate == ""
    assert objections(task) == ("there is none",)


STALE = {
    "the task changed since": ("task_specs/toy-1/task.yaml", "seconds: 60", "seconds: 61"),
    "the image changed since": ("task_specs/toy-1/task.yaml", "sha256:000", "sha256:222"),
    "the hidden tests changed since": ("task_specs/toy-1/task.yaml", "sha256:111", "sha256:222"),
    "the reference solution changed since": ("task_specs/toy-1/solution.patch", "", "x"),
}


@pytest.mark.parametrize("why", STALE)
def test_a_change_of_the_task_ends_its_certificate(task: TaskSpec, why: str):
    settled(task)
    name, old, new = STALE[why]
    path = Path(task.home) / name
    text = path.read_text()
    path.write_text(text.replace(old, new) if old else new)
    assert why in objections(load_task(Path(task.home), "toy-1"))


def test_another_runner_and_another_stored_submission_end_it(task: TaskSpec):
    settled(task)
    runner = Path(task.home) / "verifiers" / "_runners" / "run_pytest.py"
    runner.parent.mkdir()
    runner.write_text("# another one\n")
    assert objections(task) == ("the runner changed since",)
    stored = Path(task.home) / "task_specs" / "toy-1" / "submissions.jsonl"
    stored.write_text('{"task": "toy-1", "patch": "x"}\n')
    assert objections(task) == (
        "the runner changed since",
        "a submission that comes with the task is not in it",
    )


def test_a_certificate_for_other_shifts_does_not_hold(task: TaskSpec):
    whole = made(task)
    part = signed(replace(whole, shifts=whole.shifts[:-1]))
    shelf.write(part, shelf.certificate_path(task, None))
    assert objections(task) == ("what is moved changed since",)


def walk(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    return [at, *(p for k, v in inner for p in walk(v, (*at, k)))] if inner else [at]


@given(st.data())
def test_any_change_by_hand_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
):
    home = tmp_path_factory.mktemp("home")
    task = load_task(write_home(home), "toy-1")
    path = Path(settled(task).certificate)
    told = json.loads(path.read_text())
    leaves = [p for p in walk(told) if p]
    *place, key = data.draw(st.sampled_from(leaves))
    inside = told
    for step in place:
        inside = inside[step]
    inside[key] = data.draw(
        st.sampled_from(["x", 7, True, None]).filter(lambda v: v != inside[key])
    )
    path.write_text(json.dumps(told))
    assert objections(task)


def test_what_is_no_certificate_is_told(task: TaskSpec):
    path = shelf.certificate_path(task, None)
    path.parent.mkdir()
    path.write_text("{")
    (said,) = objections(task)
    assert said.startswith(f"it cannot be read: {path}:1: not valid JSON")


def test_a_folder_that_cannot_be_written_to_is_the_users_to_choose(task: TaskSpec, tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write") as refused:
        shelf.settle(the_trial(task), finding(task), tmp_path / "file", exclude=False)
    assert refused.value.hint == "name a folder: --certificates DIR"


def test_quarantine_moves_what_varied_and_keeps_the_rest_as_it_was(task: TaskSpec):
    done = settled(task, exclude=True, user=seen(TWO, GATE))
    path = Path(done.changed)
    assert path.read_text() == (
        "schema: 1\n"
        "scored:\n"
        "  - tests/test_a.py::test_one\n"
        "gates: []\n"
        "excluded:\n"
        f'  - id: "{GATE}"\n    reason: "varies with user"\n'
        f'  - id: "{TWO}"\n    reason: "varies with user"\n'
        "  - id: tests/test_a.py::test_flaky\n"
        "    reason: asks the network\n"
    )
    assert [c.id for c in load_task(Path(task.home), "toy-1").verifier.checks] == [ONE]
    assert objections(load_task(Path(task.home), "toy-1"))[0] == "the task changed since"


def test_quarantine_never_leaves_a_task_with_nothing_to_score(task: TaskSpec):
    with pytest.raises(UserError, match="every scored check of `toy-1` varies"):
        settled(task, exclude=True, user=seen(ONE, TWO))
    assert (Path(task.home) / "verifiers/toy-1/checks.yaml").read_text() == CHECKS


TEXT = """\
# Ours.
schema: 1
scored:   # what the task is about
  - "a::one[\\"x\\"]"   # why it is one
  # about two
  - 'a::it''s two'
  - id: a::three
    # heavier
    weight: 3

  - a::four # plain
gates:
- a::five
"""


@pytest.mark.parametrize("name", ['a::one["x"]', "a::it's two", "a::three", "a::four", "a::five"])
def test_a_check_is_moved_however_it_is_written(tmp_path: Path, name: str):
    path = tmp_path / "checks.yaml"
    path.write_text(TEXT)
    before = {c.id for c in load_checks(path)}
    path.write_text(move(TEXT, check_lines(path), {name: 'varies: "x"'}))
    assert {c.id for c in load_checks(path)} == before - {name}
    assert path.read_text().startswith("# Ours.\n")
    assert "# about two\n" in path.read_text()


def test_a_check_that_has_no_line_of_its_own_is_moved_by_hand(tmp_path: Path):
    path = tmp_path / "checks.yaml"
    path.write_text("schema: 1\nscored: [a::one, a::two]\n")
    with pytest.raises(UserError, match="no line of its own for a::one") as refused:
        move(path.read_text(), check_lines(path), {"a::one": "varies"})
    assert refused.value.hint == 'move it by hand:\n  - id: "a::one"\n    reason: "varies"\n'


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@pytest.mark.parametrize("odd", ["\x85", "\u2028", "\u2029", "\r", "\n"])
def test_a_name_with_any_line_break_is_read_as_it_was_written(tmp_path: Path, odd: str):
    path, names = tmp_path / "checks.yaml", {"0", f"0{odd}", f"{odd}0", f"0{odd}0"}
    path.write_text(yamlfile.dumps({"schema": 1, "scored": sorted(names)}), newline="")
    assert {c.id for c in load_checks(path)} == names


@given(st.sets(NAMES, min_size=2, max_size=6), st.data())
def test_moving_loses_no_check_whatever_its_name(
    tmp_path_factory: pytest.TempPathFactory, names: set[str], data: st.DataObject
):
    path = tmp_path_factory.mktemp("checks") / "checks.yaml"
    ordered = sorted(names)
    path.write_text(yamlfile.dumps({"schema": 1, "scored": ordered}))
    gone = data.draw(st.sets(st.sampled_from(ordered), min_size=1, max_size=len(ordered) - 1))
    path.write_text(move(path.read_text(), check_lines(path), dict.fromkeys(gone, "why")))
    assert {c.id for c in load_checks(path)} == names - gone
    assert {e.id for e in yamlfile.load(path, ChecksFile).excluded} == gone


def test_a_task_with_the_open_network_is_refused(task: TaskSpec):
    with pytest.raises(UserError, match="reaches the open network"):
        trial(replace(task, network=NetworkSpec(mode="open")), (), ())


def test_stored_and_given_submissions_are_judged_too_each_once(task: TaskSpec):
    stored = Path(task.home) / "task_specs" / "toy-1" / "submissions.jsonl"
    stored.write_text('{"task": "toy-1", "patch": "x"}\n')
    lines = [
        SubmissionLine(task="toy-1", patch="x", attempt=3),
        SubmissionLine(task="toy-1", patch="y"),
        SubmissionLine(task="other", patch="z"),
    ]
    found = submissions(task, lines)
    assert list(found.values()) == [None, b"", b"x", b"y"]
    assert list(found)[2] == "submission-2d711642b726"
    stored.write_text('\n{"task": "other", "patch": "x"}\n')
    with pytest.raises(SpecError, match="a submission to `other`"):
        submissions(task, ())


def test_a_folder_of_runs_is_of_its_shifts_and_submissions_only(task: TaskSpec, tmp_path: Path):
    """Else a number would mean one thing to the run that began it, and another to the next."""
    whole, part = trial(task, (), ()), trial(task, (), ("user",))
    more = trial(task, (SubmissionLine(task="toy-1", patch="x"),), ())
    assert len({manifest([t], "embedded").graded for t in (whole, part, more)}) == 3
    assert manifest([whole], "embedded") == manifest([trial(task, (), ())], "embedded")
    before = manifest([whole], "embedded")
    (Path(task.home) / "task_specs/toy-1/solution.patch").write_text("another")
    assert manifest([whole], "embedded") != before
    depot = Depot(Store(tmp_path / "store"), lambda *_: None)
    cases = list(part.cases(depot))
    assert [(c.attempt, c.agent) for c in cases] == [
        (0, "oracle with repeat-1"),
        (1, "nop with repeat-1"),
        (2, "oracle with user"),
        (3, "nop with user"),
    ]
    assert cases[3].conditions.user == "1000:1000"


@pytest.mark.parametrize(("findings", "code"), [("s", 0), ("sx", 1), ("sv", 3), ("xv", 1), ("", 0)])
def test_the_exit_code_says_whether_anything_varied(task: TaskSpec, findings: str, code: int):
    kinds = {
        "s": Finding(task=task.id),
        "x": Finding(task=task.id, problems=("x",)),
        "v": Finding(task=task.id, void=("v",)),
    }
    assert shelf.exit_code([kinds[k] for k in findings]) == code


def test_now_is_what_comes_with_the_task(task: TaskSpec):
    assert now(task).submissions == {"oracle", "nop"}
