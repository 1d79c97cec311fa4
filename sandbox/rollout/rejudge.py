"""A finished run, judged again from its evidence: no box, no clock, no network."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.errors import Fault, UserError
from sandbox.formats import jsonfile
from sandbox.formats.digest import folder_entries, tree_digest
from sandbox.formats.layerfile import load_layers
from sandbox.formats.records import Appender, raw_results
from sandbox.grading.unlike import unlike
from sandbox.model.layers import Layers
from sandbox.model.record import Rollout
from sandbox.model.task import TaskId, TaskSpec
from sandbox.model.verdict import Evidence
from sandbox.rollout.compare import Difference, differences
from sandbox.rollout.folder import EVIDENCE, PATCH, RolloutFolder
from sandbox.rollout.outdir import RESULTS, SUBMISSIONS, Manifest, require_run, rollout_folder
from sandbox.rollout.run import verdict_record
from sandbox.runtime.supplies import runner_digest

Load = Callable[[TaskId], TaskSpec]
_AGAIN = "grade its submissions again, with boxes: stillroom grade --verify RUN, or run it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejudged:
    """One line of results.jsonl."""

    before: Rollout
    now: Rollout
    raw: bytes
    """The line as it was: where nothing changed, these bytes are written."""
    evidence: Path | None = None
    """None: void, or not the last line about its rollout; it stays as it is."""
    notes: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[Difference, ...]:
        return tuple(differences(self.before, self.now))


@dataclass(frozen=True, slots=True)
class _Known:
    """A task as it is now."""

    task: TaskSpec
    layers: Layers
    runner: str


def rejudge(run: Path, load: Load) -> list[Rejudged]:
    """Every line of its results, in their order. Raises UserError when one cannot be judged again."""
    require_run(run)
    lines = list(raw_results(run / RESULTS))
    last = {(r.task, r.attempt): i for i, (_, r) in enumerate(lines)}
    specs: dict[TaskId, TaskSpec] = {}
    tasks: dict[TaskId, _Known] = {}
    found = []
    for i, (raw, record) in enumerate(lines):
        if record.verdict is None or last[record.task, record.attempt] != i:
            found.append(Rejudged(before=record, now=record, raw=raw))
            continue
        if record.task not in specs:
            specs[record.task] = load(record.task)
        evidence = _evidence(run, record, specs[record.task])
        if record.task not in tasks:
            tasks[record.task] = _known(specs[record.task])
        now, notes = _again(record, evidence, tasks[record.task])
        path = rollout_folder(run, record.task, record.attempt).path / EVIDENCE
        found.append(Rejudged(before=record, now=now, raw=raw, evidence=path, notes=notes))
    return found


def _known(task: TaskSpec) -> _Known:
    """Raises UserError: what is pinned is not there as pinned."""
    bundle = task.verifier.bundle
    if bundle.folder and not bundle.repo:
        path = Path(task.home) / "verifiers" / task.id / bundle.folder
        if (found := tree_digest(folder_entries(path))) != bundle.digest:
            raise UserError(
                f"the hidden tests of `{task.id}` are {found}, not {bundle.digest} as pinned",
                hint=f"if the change is meant: stillroom lock task {task.id}",
            )
    try:
        return _Known(task, load_layers(task), runner_digest(Path(task.home)))
    except Fault as e:
        raise UserError(str(e), hint=e.hint) from None


def _evidence(run: Path, record: Rollout, task: TaskSpec) -> Evidence:
    """Raises UserError when it is of another submission, or of what the task no longer is."""
    folder = rollout_folder(run, record.task, record.attempt)
    evidence = folder.read_evidence()
    if wrong := next(_not_of(evidence, record), ""):
        raise UserError(f"{folder.path / EVIDENCE}: {wrong}", hint=_AGAIN)
    if changed := list(unlike(evidence.pins, task)):
        raise UserError(
            f"{folder.path / EVIDENCE} is evidence of `{task.id}` as it was; "
            f"changed since: {', '.join(changed)}",
            hint=_AGAIN,
        )
    return evidence


def _again(record: Rollout, evidence: Evidence, known: _Known) -> tuple[Rollout, tuple[str, ...]]:
    task = known.task
    verdict = verdict_record(task, evidence, known.layers)
    now = replace(record, task_digest=task.digest, verdict=verdict)
    return now, tuple(_notes(evidence, known))


def _not_of(evidence: Evidence, record: Rollout) -> Iterator[str]:
    pins = evidence.pins
    if pins and pins.task != record.task_digest:
        yield f"it is of task {pins.task}, and {RESULTS} says {record.task_digest}"
    if pins and pins.patch_sha256 != record.patch_sha256:
        yield f"it is of submission {pins.patch_sha256}, and {RESULTS} says {record.patch_sha256}"


def _notes(evidence: Evidence, known: _Known) -> Iterator[str]:
    if evidence.pins and evidence.pins.runner != known.runner:
        yield f"{known.task.id}: what ran the tests then is not what would run them now"


def write_again(run: Path, out: Path, found: list[Rejudged]) -> Path:
    """A folder like the run's, with these verdicts; returns its results.jsonl."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is there already", hint="choose another --out")
    out.mkdir(parents=True, exist_ok=True)
    tasks: dict[str, str] = {}
    with Appender(out / RESULTS, sync=False) as results:
        for one in found:
            if one.now == one.before:
                results.append_raw(one.raw)
            else:
                results.append(one.now)
            if one.evidence:
                tasks[one.now.task] = one.now.task_digest
                _copy(one.evidence.parent, rollout_folder(out, one.now.task, one.now.attempt))
    if (run / SUBMISSIONS).exists():
        shutil.copyfile(run / SUBMISSIONS, out / SUBMISSIONS)
    if (run / "run.json").exists():
        manifest = jsonfile.load(run / "run.json", Manifest)
        text = jsonfile.dumps(replace(manifest, tasks=manifest.tasks | tasks))
        jsonfile.write(out / "run.json", text)
    return out / RESULTS


def _copy(there: Path, here: RolloutFolder) -> None:
    here.path.mkdir(parents=True, exist_ok=True)
    for name in (EVIDENCE, PATCH):
        # A run that somebody else made may have anything there.
        if (there / name).is_file() and not (there / name).is_symlink():
            shutil.copyfile(there / name, here.path / name)
