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
from sandbox.runtime.base import Capabilities, ExecResult
from sandbox.runtime.fake import NO_IMAGE, Call, FakeBox, FakeRuntime, said
from tests.support.homes import a_task, some_supplies
from tests.support.supervised import supervised

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
        "user": "65534:65534",
        "umask": "022",
    },
    "variables": ["HOME", "LANG", "PATH", "PWD", "TZ"],
}
ONE, TWO, GATE = (f"tests/test_a.py::test_{n}" for n in ("one", "two", "gate"))
ALL = (ONE, TWO, GATE)
MEND = b"--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"


def a_file(name: str) -> bytes:
    """A patch that makes a file of this name."""
    head = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n"
    return head.encode() + b"@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"


END = {"end": 0, "seconds": 1.5}


def records(*told: object, junk: bytes = b"") -> bytes:
    return b"".join(json.dumps(t).encode() + b"\n" for t in told) + junk


def passed(name: str, outcome: str = "passed", **more: object) -> dict[str, object]:
    return {"check": name, "outcome": outcome, **more}


GOOD = records({"probe": STILL}, *map(passed, ALL), {"probe": STILL}, END)


def told(
    stdout: bytes, exit_code: int | None = 0, stderr: bytes = b"", how: str = "exited"
) -> ExecResult:
    """By a runner that ended so, and then by who watched it; None: both were ended."""
    code = None if exit_code is None else 0
    return ExecResult(exit_code=code, stdout=supervised(stdout, exit_code, how), stderr=stderr)


class Verified:
    """A verify in a fake box, whose runner answers as it is told to."""

    def __init__(self, home: Path, runner: ExecResult) -> None:
        self.task = a_task(home)
        self.runner = runner
        self.runtime = FakeRuntime(self.reply)
        self.folder = home / "supplies"
        self.image = NO_IMAGE

    def reply(self, box: FakeBox, call: Call) -> ExecResult | None:
        return self.runner if "/verify/supervise.py" in call.argv else None

    def evidence(
        self,
        patch: bytes = b"",
        rejected: str = "",
        conditions: Conditions = USUAL,
        dropped: tuple[str, ...] = (),
    ) -> Evidence:
        made = Submission(task=self.task.id, patch=patch, rejected=rejected, dropped=dropped)
        supplies = replace(some_supplies(self.task, self.folder), image=self.image)
        return verify(
            self.task, made, self.runtime, supplies, conditions=conditions, now=lambda: 1000.0
        )


@pytest.fixture
def verified(tmp_path: Path) -> Callable[..., Verified]:
    return lambda runner: Verified(tmp_path, runner)


def test_a_run_that_passes_everything_is_resolved(verified):
    it = verified(told(GOOD, stderr=b"3 passed"))
    evidence = it.evidence()
    assert (evidence.ran, evidence.seconds, evidence.log) == (Ran.FINISHED, 1.5, "3 passed")
    assert judge(it.task.verifier, evidence).reward == 1.0


def test_the_hidden_tests_come_after_the_submission_and_replace_what_was_there(verified):
    it = verified(told(GOOD))
    it.evidence(MEND + a_file("tests/test_a.py"))
    (box,) = it.runtime.boxes
    assert [c.argv[0] for c in box.calls] == ["rm", STILL_PROGRAM, PYTHON]
    assert box.files["/work/toy/src/a.py"].data == b"a = 2\n"
    assert box.files["/work/toy/tests/test_a.py"].data == b"def test_one(): ...\n"
    assert box.files["/verify/pytest.ini"].data == b"[pytest]\nmarkers = slow\n"
    plan = json.loads(box.files["/verify/plan.json"].data)
    assert plan["environment"] == {"LEVEL": "3"}
    run = box.calls[-1]
    assert (plan["runner"], plan["user"], plan["seconds"]) == ("run_pytest.py", "65534:65534", 60)
    assert plan["sealed"] == ["/work/toy/tests"]
    run = box.calls[-1]
    assert run.seconds > 60  # so that it is the supervisor who ends what takes too long
    assert (run.env, run.user) == ({}, None)


def test_nothing_of_what_is_expected_comes_into_the_box(verified):
    it = verified(told(GOOD))
    it.evidence()
    (box,) = it.runtime.boxes
    assert not [path for path, e in box.files.items() if b"test_gate" in e.data]


def test_the_checks_run_as_the_user_who_is_asked_for(verified):
    it = verified(told(GOOD.replace(b'"65534:65534"', b'"7:8"')))
    it.evidence(conditions=Conditions(user="7:8"))
    (box,) = it.runtime.boxes
    assert json.loads(box.files["/verify/plan.json"].data)["user"] == "7:8"


class Rootless(FakeRuntime):
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), rootless=True)


def test_where_a_box_has_no_user_but_root_the_checks_are_root_s(verified):
    it = verified(told(GOOD.replace(b'"65534:65534"', b'"0:0"')))
    it.runtime = Rootless(it.reply)
    assert it.evidence().ran is Ran.FINISHED
    (box,) = it.runtime.boxes
    assert json.loads(box.files["/verify/plan.json"].data)["user"] == "0:0"


def test_a_rejected_submission_needs_no_box(verified):
    it = verified(told(GOOD))
    evidence = it.evidence(rejected="too large")
    assert (evidence.ran, evidence.detail) == (Ran.REJECTED, "too large")
    assert it.runtime.boxes == []
    assert judge(it.task.verifier, evidence).reward == 0.0


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        (b"x", "patch:1: there is no change in it"),
        (MEND[:-1], "patch:5: the patch is cut here"),
        (MEND.replace(b"-a = 1", b"-a = 3"), "patch:3: this hunk fits no place of 'src/a.py'"),
        (MEND + a_file("../x"), "patch:6: the name '../x' leads elsewhere"),
        (
            b"diff --git a/src/a.py b/tests/x\nrename from src/a.py\nrename to tests/x\n",
            "patch:1: it changes what is not declared: tests/x",
        ),
        (b"\n" * (40 << 20), "are allowed"),
    ],
)
def test_a_patch_that_does_not_fit_is_the_submission_s_doing_and_needs_no_box(
    verified, patch, says
):
    it = verified(told(GOOD))
    evidence = it.evidence(patch)
    assert evidence.ran is Ran.REJECTED
    assert says in evidence.detail
    assert it.runtime.boxes == []


def test_a_link_above_the_hidden_tests_is_rejected_and_no_fault(tmp_path: Path):
    it = Verified(tmp_path, told(GOOD))
    bundle = replace(it.task.verifier.bundle, paths=("src/toy/tests", "tests"))
    it.task = replace(it.task, verifier=replace(it.task.verifier, bundle=bundle))
    for mode in (b"100644", b"120000"):
        evidence = it.evidence(a_file("src/toy").replace(b"100644", mode))
        assert (evidence.ran, evidence.report) == (Ran.REJECTED, {})
        assert "what is no folder in place of src/toy" in evidence.detail


def test_a_patch_of_undeclared_files_only_changes_nothing_and_is_told(verified):
    it = verified(told(GOOD))
    evidence = it.evidence(a_file("tests/a") + a_file("x*[1]"))
    assert (evidence.ran, evidence.outside) == (Ran.FINISHED, ("tests/a", "x*[1]"))
    (box,) = it.runtime.boxes
    assert "/work/toy/tests/a" not in box.files


def test_what_the_collector_left_out_is_told_as_well(verified):
    it = verified(told(GOOD))
    evidence = it.evidence(a_file("tests/a"), dropped=("src/x.pth",))
    assert evidence.outside == ("src/x.pth", "tests/a")


def test_files_that_are_gone_are_taken_out_with_their_folders(verified):
    it = verified(told(GOOD))
    gone = b"--- a/src/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a = 1\n"
    it.evidence(gone + a_file("src/b/c.py"))
    (box,) = it.runtime.boxes
    assert box.files.keys() >= {"/work/toy/src/b/c.py", "/work/toy/tests/test_a.py"}
    assert "/work/toy/src/a.py" not in box.files
    rmdirs = [c.argv for c in box.calls if c.argv[0] == "rmdir"]
    assert rmdirs == []  # there is something in it again
    it.evidence(gone)
    rmdirs = [c.argv for c in it.runtime.boxes[-1].calls if c.argv[0] == "rmdir"]
    assert rmdirs == [("rmdir", "--ignore-fail-on-non-empty", "--", "/work/toy/src")]


def test_a_submission_that_cannot_be_laid_out_is_a_fault(tmp_path: Path):
    it = Verified(tmp_path, told(GOOD))
    it.runtime = FakeRuntime(lambda _, call: said("", 1) if call.argv[0] == "rmdir" else None)
    with pytest.raises(VerifierFault, match="cannot lay out"):
        it.evidence(b"--- a/src/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a = 1\n")


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


ODD: list[object] = [
    passed(ONE, "splendid"),
    passed(ONE, ""),
    passed(ONE, seconds="long"),
    passed(ONE, seconds=float("nan")),
    passed(ONE, seconds=-1),
    passed(ONE, seconds=1e999),
    passed(ONE, seconds=10**400),
    passed(ONE, message=["\ud800"]),
    passed("\ud800\0"),
    {"check": 7, "outcome": "passed"},
    {"check": ONE, "outcome": None},
    {"uncollected": "\udfff"},
    {"end": 0},
    {"end": 0, "seconds": float("inf")},
    *({"probe": {**STILL, "numbers": {"n": n}}} for n in (float("nan"), float("inf"), 10**400)),
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
    raw = records({"probe": STILL}, junk=junk + b"\n") + records(END)
    found = read_out(told(raw).stdout)
    assert (len(found.probes), found.seconds) == (1, 1.5)


def test_a_probe_of_any_depth_can_be_read():
    deep = (b'{"probe":{"variables":[%s%s]}}\n' % (b"[" * n, b"]" * n) for n in range(800, 1000))
    probes = read_out(told(records({"probe": STILL}, junk=b"".join(deep))).stdout).probes
    assert [p for p in probes if p] == probes[:1]


@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_output_cut_anywhere_can_be_read(junk, at):
    good = told(GOOD).stdout
    read_out(good[:at] + junk + b"\n" + good[at:])


@given(st.lists(st.sampled_from(ODD), max_size=5), st.integers(0, 10))
def test_only_the_checks_that_were_told_passed_have_passed(odd, place):
    lines = [{"probe": STILL}, *map(passed, ALL), END]
    mixed = [*lines[:place], *odd, *lines[place:]]
    found = read_out(told(records(*mixed)).stdout)
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
    found = it.evidence(MEND)
    assert (found.ran, found.detail) == (Ran.REJECTED, "the disk limit was reached")


@pytest.mark.parametrize(("why", "lost"), [("", False), ("the disk limit was reached", True)])
def test_a_box_that_is_gone_for_no_limit_is_a_fault(verified, monkeypatch, why, lost):
    it = verified(told(GOOD))
    it.runtime = FakeRuntime(stopping(monkeypatch, why, lost=lost))
    with pytest.raises(RuntimeFault):
        it.evidence(MEND)
