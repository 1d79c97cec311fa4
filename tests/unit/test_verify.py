"""Submission to evidence, in a fake box: what counts as the submission's doing, and what as ours."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import RuntimeFault, VerifierFault
from sandbox.formats import jsonfile
from sandbox.grading.judge import judge
from sandbox.grading.readout import read_out
from sandbox.grading.verify import verify
from sandbox.model.conditions import USUAL, Conditions
from sandbox.model.record import Submission
from sandbox.model.verdict import Evidence, Outcome, Ran
from sandbox.runtime.base import ExecResult
from sandbox.runtime.fake import NO_IMAGE, Call, FakeBox, FakeRuntime, said
from tests.support.homes import a_task, some_supplies

AT = 1_715_774_400
STILL_PROGRAM, PYTHON = "/.stillroom/still", "/usr/bin/python3"
STILL = {
    "clock": {"python": AT, "date": AT, "date_bare": AT},
    "interfaces": ["lo"],
    "settings": {
        "TZ": "UTC",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "hash_randomization": "0",
        "hostname": "box",
        "user": "0:0",
        "umask": "022",
    },
    "variables": ["HOME", "LANG", "PATH", "PWD", "TZ"],
}
ONE, TWO, GATE = (f"tests/test_a.py::test_{n}" for n in ("one", "two", "gate"))
ALL = (ONE, TWO, GATE)
END = {"end": 0, "seconds": 1.5}


def records(*told: object, junk: bytes = b"") -> bytes:
    return b"".join(json.dumps(t).encode() + b"\n" for t in told) + junk


def passed(name: str, outcome: str = "passed", **more: object) -> dict[str, object]:
    return {"check": name, "outcome": outcome, **more}


GOOD = records({"probe": STILL}, *map(passed, ALL), {"probe": STILL}, END)


def told(stdout: bytes, exit_code: int | None = 0, stderr: bytes = b"") -> ExecResult:
    return ExecResult(exit_code=exit_code, stdout=stdout, stderr=stderr)


class Verified:
    """A verify in a fake box, whose git and runner answer as they are told to."""

    def __init__(self, home: Path, runner: ExecResult, **gits: ExecResult) -> None:
        self.task = a_task(home)
        self.runner = runner
        self.gits = gits
        self.runtime = FakeRuntime(self.reply)
        self.folder = home / "supplies"
        self.image = NO_IMAGE

    def reply(self, box: FakeBox, call: Call) -> ExecResult | None:
        if call.argv[0] == "git":
            return self.gits.get(next(w for w in call.argv if w in ("apply", "status")), said())
        if call.argv[0] == "chown":
            return said()
        return self.runner if "/verify/runner.py" in call.argv else None

    def evidence(
        self, patch: bytes = b"", rejected: str = "", conditions: Conditions = USUAL
    ) -> Evidence:
        made = Submission(task=self.task.id, patch=patch, rejected=rejected)
        supplies = replace(some_supplies(self.task, self.folder), image=self.image)
        return verify(
            self.task, made, self.runtime, supplies, conditions=conditions, now=lambda: 1000.0
        )


@pytest.fixture
def verified(tmp_path: Path) -> Callable[..., Verified]:
    return lambda runner, **gits: Verified(tmp_path, runner, **gits)


def test_a_run_that_passes_everything_is_resolved(verified):
    it = verified(told(GOOD, stderr=b"3 passed"))
    evidence = it.evidence()
    assert (evidence.ran, evidence.seconds, evidence.log) == (Ran.FINISHED, 1.5, "3 passed")
    assert judge(it.task.verifier, evidence).reward == 1.0


def test_the_hidden_tests_come_after_the_submission_and_replace_what_was_there(verified):
    it = verified(told(GOOD), apply=said("1\t1\tsrc/a.py\0"))
    it.evidence(b"a patch")
    (box,) = it.runtime.boxes
    assert [c.argv[0] for c in box.calls] == ["git", "git", "git", "rm", STILL_PROGRAM, PYTHON]
    assert box.calls[0].input == b"a patch"
    assert box.files["/work/toy/tests/test_a.py"].data == b"def test_one(): ...\n"
    assert box.files["/verify/pytest.ini"].data == b"[pytest]\nmarkers = slow\n"
    plan = json.loads(box.files["/verify/plan.json"].data)
    assert plan["environment"] == {"LEVEL": "3"}
    run = box.calls[-1]
    assert run.seconds == 60
    assert run.env == {}


def test_another_user_is_given_the_place_where_the_checks_run(verified):
    """Else a test that writes a file there would fail for the folder's owner, not for its own."""
    it = verified(told(GOOD.replace(b'"0:0"', b'"7:8"')))
    it.evidence(conditions=Conditions(user="7:8"))
    (box,) = it.runtime.boxes
    assert ("chown", "-hR", "7:8", "--", "/work/toy") in [c.argv for c in box.calls]
    assert box.calls[-1].user == "7:8"


def test_a_rejected_submission_needs_no_box(verified):
    it = verified(told(GOOD))
    evidence = it.evidence(rejected="too large")
    assert (evidence.ran, evidence.detail) == (Ran.REJECTED, "too large")
    assert it.runtime.boxes == []
    assert judge(it.task.verifier, evidence).reward == 0.0


@pytest.mark.parametrize(
    ("gits", "says"),
    [
        ({"apply": said("", 128, errors="corrupt patch at line 3")}, "cannot be read: corrupt"),
        ({"apply": told(b"1\t1\tsrc/a\0", 1, b"does not match")}, "cannot be read"),
        (
            {"apply": said("1\t1\tsrc/a\0"), "status": said("R  tests/x\0 D src/a\0")},
            "changes what is not declared: tests/x",
        ),
        (
            {"apply": said("1\t1\tsrc/a\0" + "".join(f"1\t0\tx{i}\0" for i in range(5000)))},
            "changes 5000 files that are not declared",
        ),
        (  # more than fits into a request to the box, though few
            {
                "apply": said(
                    "1\t1\tsrc/a\0" + "".join(f"1\t0\t{'x' * 3000}{i}\0" for i in range(99))
                )
            },
            "changes 99 files that are not declared",
        ),
        ({"apply": said("1\t1\tsrc/a\0" * 2_000_000)}, "more files than can"),
        (
            {"apply": said("1\t1\tsrc/a\0"), "status": said("", 137)},
            "cannot be told: exit code 137",
        ),
        (
            {"apply": said("1\t1\tsrc/a\0"), "status": said(" M src/a\0" * 2_000_000)},
            "cannot be told",
        ),
    ],
)
def test_a_patch_that_does_not_fit_is_the_submission_s_doing(verified, gits, says):
    evidence = verified(told(GOOD), **gits).evidence(b"x")
    assert evidence.ran is Ran.REJECTED
    assert says in evidence.detail


def test_a_link_above_the_hidden_tests_is_rejected_and_no_fault(tmp_path: Path):
    it = Verified(tmp_path, told(GOOD), apply=said("1\t1\tsrc\0"))
    bundle = replace(it.task.verifier.bundle, paths=("src/toy/tests", "tests"))
    it.task = replace(it.task, verifier=replace(it.task.verifier, bundle=bundle))
    link = said("/work/toy/src\n")
    it.runtime = FakeRuntime(lambda b, c: link if c.argv[0] == "find" else it.reply(b, c))
    evidence = it.evidence(b"x")
    assert (evidence.ran, evidence.report) == (Ran.REJECTED, {})
    assert "what is no folder in place of /work/toy/src" in evidence.detail
    (box,) = it.runtime.boxes
    assert box.calls[-1].argv[1:3] == ("/work/toy/src", "/work/toy/src/toy")


def test_a_patch_of_undeclared_files_only_changes_nothing_and_is_told(verified):
    evidence = verified(told(GOOD), apply=said("1\t1\ttests/a\0")).evidence(b"x")
    assert (evidence.ran, evidence.outside) == (Ran.FINISHED, ("tests/a",))


def test_undeclared_files_are_left_out_by_name_and_not_by_pattern(verified):
    it = verified(told(GOOD), apply=said("1\t1\tsrc/a\0001\t1\tx*[1]\\\0"))
    assert it.evidence(b"x").outside == ("x*[1]\\",)
    (box,) = it.runtime.boxes
    assert "--exclude=x\\*\\[1\\]\\\\" in box.calls[1].argv


def test_a_runner_that_did_not_start_is_a_fault_that_says_why(verified):
    for runner in (told(b"", 127, b"no python3"), told(b"\n[1]\nnull\n", 1, b"no python3")):
        with pytest.raises(VerifierFault, match=r"did not start \(exit .*no python3"):
            verified(runner).evidence()


def test_room_that_cannot_be_made_for_the_tests_is_a_fault(tmp_path: Path):
    it = Verified(tmp_path, told(GOOD))
    it.runtime = FakeRuntime(lambda _, call: said("", 1) if call.argv[0] == "rm" else None)
    with pytest.raises(VerifierFault, match="cannot make room"):
        it.evidence()


@pytest.mark.parametrize(
    "probe",
    [
        {**STILL, "clock": {"python": AT + 86400}},
        {**STILL, "clock": {"date": float("nan")}},
        {**STILL, "interfaces": ["eth0", "lo"]},
        {},
        "nonsense",
        {"clock": "noon"},
        {"clock": {"date": "1"}},
    ],
    ids=str,
)
def test_a_box_that_does_not_stand_still_makes_the_verdict_void(verified, probe):
    runner = told(records({"probe": probe}, *map(passed, ALL), {"probe": STILL}, END))
    with pytest.raises(VerifierFault, match="did not stand still"):
        verified(runner).evidence()


@pytest.mark.parametrize("probe", [{**STILL, "clock": {"python": 0}}, {}, 7, {"clock": {"x": []}}])
def test_the_code_under_test_cannot_make_its_verdict_void(verified, probe):
    it = verified(told(records({"probe": STILL}, *map(passed, ALL), {"probe": probe}, END)))
    evidence = it.evidence()
    assert evidence.ran is Ran.CRASHED
    assert judge(it.task.verifier, evidence).reward == 0.0


def test_checks_that_take_too_long_are_timed_out(verified):
    it = verified(told(records({"probe": STILL}, passed(ONE)), None))
    evidence = it.evidence()
    assert (evidence.ran, evidence.detail) == (Ran.TIMED_OUT, "the checks took more than 60 s")
    assert judge(it.task.verifier, evidence).reward == 0.0  # the gate is missing


@pytest.mark.parametrize("code", [0, 1, 137])
def test_a_runner_that_ends_early_has_crashed_whatever_it_told(verified, code):
    it = verified(told(records({"probe": STILL}, *map(passed, ALL)), code))
    evidence = it.evidence()
    assert evidence.ran is Ran.CRASHED
    assert judge(it.task.verifier, evidence).reward == 0.0


def test_a_forged_record_for_an_undeclared_check_changes_nothing(verified):
    it = verified(
        told(records({"probe": STILL}, passed("mine"), passed(ONE), {"probe": STILL}, END))
    )
    verdict = judge(it.task.verifier, it.evidence())
    assert [c.spec.id for c in verdict.checks] == list(ALL)
    assert verdict.reward == 0.0


@pytest.mark.parametrize("order", [("passed", "failed"), ("failed", "passed")])
def test_a_failure_cannot_be_taken_back(verified, order):
    twice = [passed(ONE, outcome) for outcome in order]
    it = verified(told(records({"probe": STILL}, *twice, {"probe": STILL}, END)))
    assert it.evidence().report[ONE].outcome is Outcome.FAILED


def test_what_could_not_be_collected_is_told(verified):
    it = verified(
        told(records({"probe": STILL}, {"uncollected": "tests/b.py"}, {"probe": STILL}, END))
    )
    assert it.evidence().detail == "could not be collected: tests/b.py"


ODD = [
    passed(ONE, "splendid"),
    passed(ONE, ""),
    passed(ONE, seconds="long"),
    passed(ONE, seconds=float("nan")),
    passed(ONE, seconds=-1),
    passed(ONE, seconds=1e999),
    passed(ONE, message=["\ud800"]),
    passed("\ud800\0"),
    {"check": 7, "outcome": "passed"},
    {"check": ONE, "outcome": None},
    {"uncollected": "\udfff"},
    {"end": 0},
    {"end": 0, "seconds": float("inf")},
    {"end": True, "seconds": []},
    {"end": "0"},
    {"probe": STILL, "check": ONE},
    [], None, 7, "probe", {},
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_no_record_can_break_the_grading_or_its_files(verified, tmp_path: Path, odd):
    it = verified(told(records({"probe": STILL}, odd, {"probe": STILL}, END, junk=b'{"check": "x')))
    evidence = it.evidence()
    path = tmp_path / "evidence.json"
    jsonfile.write(path, jsonfile.dumps(evidence))
    again = jsonfile.load(path, Evidence)
    assert judge(it.task.verifier, again) == judge(it.task.verifier, evidence)
    assert judge(it.task.verifier, evidence).reward < 1


@pytest.mark.parametrize("junk", [b"[" * 2_000_000, b"9" * 9000, b"\xff\xfe", b'{"a":' * 9999])
def test_lines_that_are_no_records_are_passed_over(junk):
    found = read_out(records({"probe": STILL}, junk=junk + b"\n") + records(END))
    assert (len(found.probes), found.seconds) == (1, 1.5)


@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_output_cut_anywhere_can_be_read(junk, at):
    read_out(GOOD[:at] + junk + b"\n" + GOOD[at:])


@given(st.lists(st.sampled_from(ODD), max_size=5), st.integers(0, 10))
def test_only_the_checks_that_were_told_passed_have_passed(odd, place):
    lines = [{"probe": STILL}, *map(passed, ALL), END]
    mixed = [*lines[:place], *odd, *lines[place:]]
    found = read_out(records(*mixed))
    named = {str(r["check"]) for r in mixed if isinstance(r, dict) and "check" in r}
    for name, report in found.report.items():
        assert report.outcome in Outcome
        assert name in named or "\\ud800" in name


def stopping(monkeypatch, why: str, *, lost: bool) -> Callable[[FakeBox, Call], None]:
    """A reply that finds the box stopped."""
    monkeypatch.setattr(FakeBox, "reached", lambda _: why)
    monkeypatch.setattr(FakeBox, "lost", lambda _: lost)

    def reply(box: FakeBox, call: Call) -> None:
        raise RuntimeFault("the box is gone")

    return reply


def test_a_box_that_the_submission_had_stopped_is_no_fault(verified, monkeypatch):
    it = verified(told(GOOD))
    it.runtime = FakeRuntime(stopping(monkeypatch, "the disk limit was reached", lost=False))
    found = it.evidence(b"patch")
    assert (found.ran, found.detail) == (Ran.REJECTED, "the disk limit was reached")


@pytest.mark.parametrize(("why", "lost"), [("", False), ("the disk limit was reached", True)])
def test_a_box_that_is_gone_for_no_limit_is_a_fault(verified, monkeypatch, why, lost):
    it = verified(told(GOOD))
    it.runtime = FakeRuntime(stopping(monkeypatch, why, lost=lost))
    with pytest.raises(RuntimeFault):
        it.evidence(b"patch")
