"""A finished run, told as the SWE-bench family's tools tell it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandbox.adapters.predictions import Answers, read_answers
from sandbox.adapters.taskhome import origin_of
from sandbox.errors import Fault, SpecError, UserError
from sandbox.formats import jsonfile
from sandbox.formats.records import read_results
from sandbox.formats.swebenchreport import (
    Result,
    Sides,
    State,
    folder_names,
    instance_report,
    run_report,
)
from sandbox.model.record import Rollout, VerdictRecord
from sandbox.model.task import TaskId, TaskSpec
from sandbox.rollout.folder import PATCH, RolloutFolder
from sandbox.rollout.outdir import RESULTS, require_run, rollout_folder

LOGS = Path("logs") / "run_evaluation"
_REJECTED = "rejected: "
Load = Callable[[TaskId], TaskSpec]


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """One model's part of a run."""

    results: tuple[Result, ...]
    folders: Mapping[str, RolloutFolder]
    """Instance id → the files of the rollout."""
    instances: tuple[str, ...]
    """All that there are, whether it tried them or not."""


def evaluated(run: Path, load: Load) -> dict[str, Graded]:
    """Model → what came of it. Of several attempts of one model, the first counts.

    Raises UserError for what is no run, or has a task that is not here any more.
    """
    require_run(run)
    answers = read_answers(run)
    latest = {(r.task, r.attempt): r for r in read_results(run / RESULTS)}
    load = cache(load)
    names: dict[TaskId, str] = {}
    found: dict[str, dict[str, tuple[Result, RolloutFolder | None]]] = {}
    for (name, attempt), rollout in sorted(latest.items()):
        task = load(name)
        names[name] = _instance_id(task)
        mine = found.setdefault(rollout.agent, {})
        folder = rollout_folder(run, name, attempt)
        mine.setdefault(names[name], (_result(rollout, task, names[name]), folder))
    for result, model in _told(answers):
        found.setdefault(model, {}).setdefault(result.instance_id, (result, None))
    instances = answers.instances if answers else tuple(names.values())
    return {
        model: Graded(
            results=tuple(result for result, _ in mine.values()),
            folders={i: folder for i, (_, folder) in mine.items() if folder},
            instances=tuple(dict.fromkeys(instances)),
        )
        for model, mine in found.items()
    }


def _told(answers: Answers | None) -> list[tuple[Result, str]]:
    states: dict[str, State] = {"empty": "empty", "malformed": "error", "not here": "void"}
    return [
        (Result(instance_id=a.instance_id, state=states[a.kind], why=a.why, null=a.null), a.model)
        for a in (answers.answers if answers else ())
        if a.kind in states
    ]


def _instance_id(task: TaskSpec) -> str:
    """As it was imported; our own tasks have but one name."""
    found = origin_of(Path(task.home), task.id).get("instance_id")
    return found if isinstance(found, str) else str(task.id)


def _result(rollout: Rollout, task: TaskSpec, name: str) -> Result:
    verdict = rollout.verdict
    if verdict is None:
        why = rollout.fault.message if rollout.fault else "there is no verdict"
        return Result(instance_id=name, state="void", why=why)
    if verdict.reason.startswith(_REJECTED):
        return Result(instance_id=name, state="error", why=verdict.reason)
    if not rollout.patch_bytes:
        return Result(instance_id=name, state="empty", why="the patch is empty")
    state: State = "resolved" if verdict.resolved else "unresolved"
    return Result(instance_id=name, state=state, why=verdict.reason, tests=_tests(task, verdict))


def _tests(task: TaskSpec, verdict: VerdictRecord) -> dict[str, Sides]:
    """What had to change is scored, and what had to stay is a gate."""
    found: dict[str, tuple[list[str], list[str]]] = {
        "FAIL_TO_PASS": ([], []),
        "PASS_TO_PASS": ([], []),
    }
    for check in task.verifier.checks:
        outcome = verdict.checks.get(check.id, "missing")
        passed = outcome == "passed" or outcome in check.accept
        found["PASS_TO_PASS" if check.gate else "FAIL_TO_PASS"][not passed].append(check.id)
    return {name: Sides(success=tuple(s), failure=tuple(f)) for name, (s, f) in found.items()}


def write_reports(run: Path, load: Load) -> list[Path]:
    """The run's report for each model, and the log folders; returns the reports."""
    run_id = run.resolve().name
    written = []
    found = evaluated(run, load)
    names = folder_names(found)
    for model, graded in found.items():
        name = names[model]
        path = run / f"{name}.{run_id}.json"
        _write_json(path, run_report(graded.results, graded.instances))
        for result in graded.results:
            place = run / LOGS / run_id / name / result.instance_id
            write_instance(place, result, graded.folders.get(result.instance_id))
        written.append(path)
    return written


def write_instance(place: Path, result: Result, folder: RolloutFolder | None) -> None:
    """report.json, and beside it the patch and what the tests printed."""
    if result.completed:
        _write_json(place / "report.json", instance_report(result))
    if folder is None:
        return
    place.mkdir(parents=True, exist_ok=True)
    patch = folder.path / PATCH
    if patch.exists():
        (place / "patch.diff").write_bytes(patch.read_bytes())
    try:
        log = folder.read_evidence().log
    except (SpecError, Fault):
        return
    (place / "test_output.txt").write_text(log, encoding="utf-8", errors="backslashreplace")


def _write_json(path: Path, data: dict[str, object]) -> None:
    jsonfile.write(path, jsonfile.dumps(data))


def one_model(found: Mapping[str, Graded], wanted: str | None, run: Path) -> tuple[str, Graded]:
    """The model that is meant. Raises UserError."""
    if wanted is None and len(found) == 1:
        return next(iter(found.items()))
    if wanted is not None and wanted in found:
        return wanted, found[wanted]
    known = ", ".join(sorted(found)) or "none"
    what = f"has no `{wanted}`" if wanted else "has more than one, or none"
    raise UserError(f"{run}: of models, it {what}", hint=f"--model, one of: {known}")
