"""A verdict's box: what holds in it, under the task's own conditions and under others."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import RuntimeFault, VerifierFault
from sandbox.grading.judge import judge
from sandbox.model.conditions import Conditions
from sandbox.model.verdict import HeldClock, Ran
from sandbox.runtime.base import ExecResult
from sandbox.runtime.fake import NO_IMAGE, FakeRuntime, Reply, said
from sandbox.runtime.fakestill import probe as a_good_box
from sandbox.runtime.spec import PATH, BoxSpec, Stillness
from tests.support.homes import with_library
from tests.unit.test_verify import (
    ALL,
    AT,
    END,
    GOOD,
    PYTHON,
    STILL,
    STILL_PROGRAM,
    Verified,
    passed,
    records,
    told,
)


@pytest.fixture
def verified(tmp_path: Path) -> Callable[..., Verified]:
    return lambda runner: Verified(tmp_path, runner)


def answering(it: Verified, program: str, answer: ExecResult) -> Reply:
    """As `it` does, but for one program."""
    return lambda box, call: answer if call.argv[0] == program else it.reply(box, call)


def test_a_verdict_s_box_holds_the_task_s_clock_and_nothing_of_this_machine(verified, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    it = verified(told(GOOD))
    evidence = it.evidence()
    (box,) = it.runtime.boxes
    assert box.spec.still == Stillness(at_ns=AT * 10**9)
    assert box.spec.environment == {
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "PATH": PATH,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "SOURCE_DATE_EPOCH": str(AT),
        "TZ": "UTC",
        "USER": "root",
    }
    assert (box.spec.hostname, box.spec.umask, box.spec.user) == ("box", 0o022, "0:0")
    assert evidence.clock == HeldClock(at="2024-05-15T12:00:00Z", mode="ticking", coverage="full")
    assert [p.by for p in evidence.probes] == ["static", "runner", "runner"]


def test_other_conditions_reach_the_box_the_runner_and_what_its_probe_has_to_tell(tmp_path: Path):
    given = Conditions(
        at="2034-05-17T12:00:00Z",
        mode="fixed",
        env={"TZ": "Asia/Kolkata", "LEVEL": "4", "PYTHONHASHSEED": "7"},
        order=5,
        cpus=1.0,
        load=2,
        user="1000:1000",
        hostname="other",
        umask=0o077,
    )
    at = 2_031_480_000
    settings = {
        "TZ": "Asia/Kolkata",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "7",
        "hash_randomization": "1",
        "hostname": "other",
        "user": "1000:1000",
        "umask": "077",
    }
    probe = {**STILL, "clock": {"python": at, "date": at}, "settings": settings}
    it = Verified(
        tmp_path, told(records({"probe": probe}, *map(passed, ALL), {"probe": probe}, END))
    )
    it.runtime = FakeRuntime(answering(it, "sh", said()))
    evidence = it.evidence(conditions=given)
    (box,) = it.runtime.boxes
    spec = box.spec
    assert evidence.ran is Ran.FINISHED
    assert evidence.clock == HeldClock(at=given.at, mode="fixed", coverage="full")
    assert spec.still == Stillness(at_ns=at * 10**9, mode="fixed")
    assert (spec.hostname, spec.umask, spec.limits.cpus) == ("other", 0o022, 1.0)
    assert spec.env["SOURCE_DATE_EPOCH"] == str(at)
    plan = json.loads(box.files["/verify/plan.json"].data)
    assert (plan["umask"], plan["order"], plan["environment"]["LEVEL"]) == (0o077, 5, "4")
    *_, probed, busy, run = box.calls
    assert probed.argv[:3] == (STILL_PROGRAM, "probe", str(at * 10**9))
    assert busy.command.count("while") == 2
    assert [c.user for c in (probed, busy, run)] == ["1000:1000", None, None]
    assert plan["user"] == "1000:1000"


def test_a_usual_verdict_s_probe_does_not_do_for_other_conditions(verified):
    for other in (Conditions(umask=0o077), Conditions(env={"TZ": "CET"}), Conditions(user="1:1")):
        with pytest.raises(VerifierFault, match="did not stand still"):
            verified(told(GOOD)).evidence(conditions=other)


def test_a_clock_that_moves_before_any_code_under_test_runs_makes_the_verdict_void(tmp_path: Path):
    it = Verified(tmp_path, told(GOOD))
    good = a_good_box(BoxSpec(image=NO_IMAGE), Stillness(at_ns=AT * 10**9))
    for probed in (said(json.dumps({**good, "raw_time": 0})), said("", 159, errors="killed")):
        it.runtime = FakeRuntime(answering(it, STILL_PROGRAM, probed))
        with pytest.raises(VerifierFault, match=r"clock of raw_time|tells nothing: killed"):
            it.evidence()
        (box,) = it.runtime.boxes
        assert PYTHON not in [c.argv[0] for c in box.calls]


def test_where_not_every_program_s_clock_can_be_held_the_evidence_says_so(tmp_path: Path):
    it = Verified(tmp_path, told(GOOD))
    it.runtime = FakeRuntime(it.reply, still="the kernel is too old")
    it.image = with_library(tmp_path / "layer")
    evidence = it.evidence()
    assert evidence.clock is not None
    assert (evidence.clock.coverage, evidence.clock.mode) == ("partial", "ticking")
    assert "too old" in evidence.clock.warning
    assert [p.by for p in evidence.probes] == ["runner", "runner"]
    assert judge(it.task.verifier, evidence).reward == 1.0
    (box,) = it.runtime.boxes
    assert box.spec.env["FAKETIME"] == f"+{AT - 1000}.000000s"
    it.task = replace(it.task, clock=replace(it.task.clock, strict=True))
    with pytest.raises(RuntimeFault, match=r"clock\.strict"):
        it.evidence()


def test_a_box_that_cannot_be_loaded_is_a_fault(tmp_path: Path):
    it = Verified(tmp_path, told(GOOD))
    it.runtime = FakeRuntime(answering(it, "sh", said("", 2)))
    with pytest.raises(VerifierFault, match="cannot load the box"):
        it.evidence(conditions=Conditions(load=1))
