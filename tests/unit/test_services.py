"""Services of a verdict's box: whose doing it is when they do not come up."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import VerifierFault
from sandbox.grading.apply import Applied
from sandbox.grading.plan import Job
from sandbox.grading.services import start_services
from sandbox.grading.setting import setting
from sandbox.grading.verify import verify
from sandbox.model.conditions import USUAL
from sandbox.model.record import Submission
from sandbox.model.task import ReadySpec, ServiceSpec
from sandbox.model.verdict import Evidence, Ran
from sandbox.runtime.base import ExecResult
from sandbox.runtime.fake import Call, FakeBox, FakeRuntime, said
from tests.support.homes import a_task, some_supplies

WEB = ServiceSpec(
    name="web", run="exec web", ready=ReadySpec(port=80), seconds=7, writable=("data",)
)
STARTING = {"starting": "web"}


class Started:
    """What comes of services in a fake box, where our program answers as it is told to."""

    def __init__(self, home: Path, *said: object, code: int | None = 0, **more: str) -> None:
        self.answer = ExecResult(
            exit_code=code,
            stdout=b"".join(json.dumps(line).encode() + b"\n" for line in said),
            stderr=more.get("stderr", "").encode(),
            limit=more.get("limit", ""),
        )
        self.task = a_task(home)
        self.supplies = some_supplies(self.task, home / "supplies")
        self.box: FakeBox

    def why(self, *services: ServiceSpec, program: bool = True, user: str | None = None) -> str:
        task = replace(self.task, verifier=replace(self.task.verifier, services=services))
        runners = {"services.py": b"# ours\n"} if program else {}
        supplies = replace(self.supplies, runners=runners)
        plan = setting(task, supplies, replace(USUAL, user=user))
        job = Job(task=task, plan=plan, made=Applied(), tests=(), runner="run_shell")
        with FakeRuntime(self.reply).create(plan.box) as self.box:
            return start_services(self.box, job, supplies, "/verify")

    def reply(self, box: FakeBox, call: Call) -> ExecResult:
        del box, call
        return self.answer


def test_nothing_is_run_for_a_task_without_services(tmp_path: Path):
    it = Started(tmp_path)
    assert (it.why(), it.box.calls) == ("", [])


def test_they_are_another_user_than_the_checks_and_have_the_time_that_they_are_given(
    tmp_path: Path,
):
    it = Started(tmp_path, STARTING, {"up": True})
    assert it.why(WEB, replace(WEB, name="more")) == ""
    plan = json.loads(it.box.files["/verify/services.json"].data)
    assert plan["user"] == "65531:65531"
    assert plan["environment"] == {"LEVEL": "3"}
    assert plan["services"][0]["ready"] == {"port": 80, "path": None, "seconds": None}
    assert plan["services"][0]["writable"] == ["data"]
    (call,) = it.box.calls
    assert call.argv[:4] == ("/usr/bin/python3", "-I", "-B", "-S")
    assert (call.seconds or 0) > 14


def test_where_there_is_only_root_they_are_root(tmp_path: Path):
    it = Started(tmp_path, STARTING, {"up": True})
    it.why(WEB, user="0:0")
    assert json.loads(it.box.files["/verify/services.json"].data)["user"] == "0:0"


@pytest.mark.parametrize(
    ("said", "code", "limit", "why"),
    [
        ([STARTING, {"down": "it is down"}], 0, "", "it is down"),
        ([STARTING, {"down": "it is down"}], 0, "no memory left", "it is down (no memory left)"),
        ([STARTING], 137, "", "service `web` did not come up"),
        ([STARTING], None, "too many", "service `web` did not come up: too many"),
    ],
)
def test_once_a_service_was_started_it_is_the_submissions_doing(
    tmp_path: Path, said: list[object], code: int | None, limit: str, why: str
):
    assert Started(tmp_path, *said, code=code, limit=limit).why(WEB) == why


@pytest.mark.parametrize("said", [[], ["odd"], [{"up": False}], [[1]]])
def test_before_it_is_ours(tmp_path: Path, said: list[object]):
    with pytest.raises(VerifierFault, match="oh dear"):
        Started(tmp_path, *said, code=1, stderr="oh dear").why(WEB)


def test_runners_without_our_program_are_no_runners_for_it(tmp_path: Path):
    with pytest.raises(VerifierFault, match=r"no verifiers/_runners/services\.py"):
        Started(tmp_path).why(WEB, program=False)


def verified(home: Path, *services: ServiceSpec) -> tuple[Evidence, FakeBox]:
    """Where the services come up and the runner does not."""
    task = a_task(home)
    task = replace(task, verifier=replace(task.verifier, services=services))
    supplies = some_supplies(task, home / "supplies")
    supplies = replace(supplies, runners={**supplies.runners, "services.py": b"# ours\n"})

    def reply(box: FakeBox, call: Call) -> ExecResult | None:
        if "/verify/services.py" in call.argv:
            assert "/work/toy/tests/test_a.py" not in box.files
            return said(json.dumps({"up": True}))
        return (
            ExecResult(exit_code=1, stdout=b"", stderr=b"") if "python3" in call.argv[0] else None
        )

    runtime = FakeRuntime(reply)
    made = Submission(task=task.id, patch=b"")
    evidence = verify(task, made, runtime, supplies, now=lambda: 1000.0)
    return evidence, runtime.boxes[0]


def test_they_are_started_after_the_box_was_measured_and_before_the_tests_are_put(tmp_path: Path):
    _, box = verified(tmp_path, WEB)
    called = [call.argv[0] for call in box.calls]
    assert called[0] == "/.stillroom/still"
    assert called.index("/usr/bin/python3") < called.index("rm")
    assert "/work/toy/tests/test_a.py" in box.files


def test_what_fails_beside_them_is_the_submissions_doing_and_never_void(tmp_path: Path):
    """A service can fork until no runner can be started: that must be no way to another try."""
    evidence, _ = verified(tmp_path, WEB)
    assert evidence.ran is Ran.CRASHED
    assert "beside the services: the runner did not start" in evidence.detail
    with pytest.raises(VerifierFault, match="the runner did not start"):
        verified(tmp_path / "without")
