"""A finished run in a folder, whose task has every layer, as if boxes had been there."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sandbox.formats import jsonfile
from sandbox.formats.layerfile import file_digest, load_layers
from sandbox.formats.records import Appender, submission_line
from sandbox.formats.taskfile import load_task, task_parts
from sandbox.model.layers import Canaries, Edit, Plain, Site, Unit
from sandbox.model.record import Ending, FaultRecord, Rollout
from sandbox.model.task import TaskId, TaskSpec
from sandbox.model.verdict import CheckReport, Evidence, Outcome, Pair, Pins, Ran, Seen
from sandbox.rollout.outdir import Manifest, rollout_folder
from sandbox.rollout.run import verdict_record
from sandbox.runtime.supplies import runner_digest
from tests.support.homes import TASK, bundle_digest, write_home

ONE, TWO, GATE = (f"tests/test_a.py::test_{n}" for n in ("one", "two", "gate"))
PASSED, FAILED, ERROR = Outcome.PASSED, Outcome.FAILED, Outcome.ERROR
PATCH = b"--- a/src/a.py\n+++ b/src/a.py\n"
GOOD = {ONE: PASSED, TWO: PASSED, GATE: PASSED}


def layered_home(home: Path) -> Path:
    """toy-1: test_one and test_two have canaries, the gate has none; a plain run takes test_one."""
    write_home(home)
    digest = bundle_digest(home)
    units = tuple(
        Unit(
            name=check,
            edits=(Edit(path="tests/test_a.py", line=1, column=0, old="def", new="def"),),
            checks={check: f"{check}[canary]"},
        )
        for check in (ONE, TWO)
    )
    canaries = Canaries(bundle=digest, units=units, uncovered={GATE: "it has no literal"})
    site = Site(
        key="k1",
        path="tests/test_a.py",
        line=1,
        column=0,
        end_line=1,
        end_column=9,
        source="one()",
        expected="1",
    )
    found = Plain(bundle=digest, checks={ONE: ("k1",)}, sites=(site,), left={TWO: "a fixture"})
    verifier = home / "verifiers" / "toy-1"
    for name, value in (("canaries.json", canaries), ("plain.json", found)):
        (verifier / name).write_text(jsonfile.dumps(value))
    runners = home / "verifiers" / "_runners"
    runners.mkdir(exist_ok=True)
    (runners / "run_pytest.py").write_text("# runs\n")
    pins = (
        "  layers: [canary, withheld, plain]\n"
        f"  canaries: {file_digest(verifier / 'canaries.json')}\n"
        f"  plain: {file_digest(verifier / 'plain.json')}\n"
    )
    text = TASK.replace("sha256:" + "1" * 64, digest).replace(
        "  seconds: 60\n", f"  seconds: 60\n{pins}"
    )
    (home / "task_specs" / "toy-1" / "task.yaml").write_text(text)
    return home


def a_layered_task(home: Path) -> TaskSpec:
    return load_task(home, "toy-1")


def reports(
    outcomes: Mapping[str, Outcome], swapped: tuple[str, ...], *, second: bool
) -> dict[str, CheckReport]:
    """Of an honest box: canaries fail, and the tests end as they are said to."""
    found = {}
    for check, outcome in outcomes.items():
        as_canary = check in (ONE, TWO) and (check in swapped) != second
        name = f"{check}[canary]" if as_canary else check
        told = FAILED if as_canary else outcome
        said = "" if told is PASSED else f"AssertionError: {check}"
        found[name] = CheckReport(outcome=told, seconds=0.5, message=said)
    return found


def an_evidence(
    task: TaskSpec,
    outcomes: Mapping[str, Outcome] = GOOD,
    patch: bytes = PATCH,
    swapped: tuple[str, ...] = (TWO,),
) -> Evidence:
    """Honest; with further pairs and a plain run where there is a reward."""
    plain = Seen(
        ran=Ran.FINISHED,
        report={ONE: CheckReport(outcome=outcomes.get(ONE, Outcome.MISSING))},
        observed={"k1": ("1",)},
    )
    further = tuple(
        Pair(
            first=Seen(ran=Ran.FINISHED, report=reports(outcomes, coins, second=False)),
            second=Seen(ran=Ran.FINISHED, report=reports(outcomes, coins, second=True)),
            swapped=coins,
            paths=("tests/test_a.py",),
        )
        for coins in ((ONE,), (), (ONE, TWO))
    )
    rewarded = outcomes.get(GATE) is PASSED and PASSED in (outcomes.get(ONE), outcomes.get(TWO))
    return Evidence(
        ran=Ran.FINISHED,
        report=reports(outcomes, swapped, second=False),
        log="said by the tests\n",
        seconds=1.5,
        pins=Pins(
            task=task.digest,
            image=task.image.digest,
            bundle=task.verifier.bundle.digest,
            runner=runner_digest(Path(task.home)),
            patch_sha256=hashlib.sha256(patch).hexdigest(),
            canaries=task.verifier.canaries or "",
            plain=task.verifier.plain or "",
            parts=task_parts(task),
        ),
        swapped=swapped,
        second=Seen(ran=Ran.FINISHED, report=reports(outcomes, swapped, second=True)),
        further=further if rewarded else (),
        plain=plain if rewarded else None,
    )


def a_record(task: TaskSpec, evidence: Evidence, attempt: int = 0, patch: bytes = PATCH) -> Rollout:
    return Rollout(
        task=task.id,
        task_digest=task.digest,
        attempt=attempt,
        agent="somebody",
        runtime="fake",
        started="2024-05-15T12:00:00Z",
        ending=Ending.SUBMITTED,
        steps=7,
        patch_sha256=hashlib.sha256(patch).hexdigest(),
        patch_bytes=len(patch),
        verdict=verdict_record(task, evidence, load_layers(task)),
        seconds={"total": 3.25},
    )


def a_void(task: TaskSpec, attempt: int) -> Rollout:
    fault = FaultRecord(code="runtime", message="the box was lost", hint="look at it")
    done = a_record(task, an_evidence(task), attempt)
    return replace(done, verdict=None, fault=fault)


def write_run(run: Path, task: TaskSpec, *evidences: Evidence) -> Path:
    """An attempt for each, and a void one after them."""
    with Appender(run / "results.jsonl") as results, Appender(run / "submissions.jsonl") as given:
        for number, evidence in enumerate(evidences):
            folder = rollout_folder(run, task.id, number)
            folder.write_patch(PATCH)
            folder.write_evidence(evidence)
            results.append(a_record(task, evidence, number))
            given.append(submission_line(task.id, PATCH, agent="somebody", attempt=number))
        results.append(a_void(task, len(evidences)))
    rollout_folder(run, task.id, len(evidences)).fresh()
    manifest = Manifest(
        agent="somebody", runtime="fake", tasks={task.id: task.digest}, attempts=len(evidences) + 1
    )
    jsonfile.write(run / "run.json", jsonfile.dumps(manifest))
    return run


def edit_evidence(run: Path, attempt: int, **changes: object) -> None:
    """By hand, as somebody might who wants another verdict."""
    path = rollout_folder(run, TaskId("toy-1"), attempt).path / "evidence.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
