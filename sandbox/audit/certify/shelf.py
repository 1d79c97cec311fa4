"""Certificates as files: certificates/<task>.json of the task's home, or of another folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.audit.certify.certificate import Certificate, certificate, objections
from sandbox.audit.certify.execute import Trial, now, runner_digest
from sandbox.audit.certify.findings import Finding
from sandbox.audit.certify.quarantine import move
from sandbox.audit.certify.shifts import all_shifts
from sandbox.errors import SpecError, UserError
from sandbox.formats import jsonfile, yamlfile
from sandbox.formats.checksfile import check_lines, load_checks
from sandbox.formats.taskfile import checks_path
from sandbox.model.task import TaskId, TaskSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A certificate, held against its task."""

    task: TaskId
    path: str
    objections: tuple[str, ...]
    """Why it does not hold. None: it does."""


def certificate_path(task: TaskSpec, folder: Path | None) -> Path:
    return (folder or Path(task.home) / "certificates") / f"{task.id}.json"


def write(made: Certificate, path: Path) -> None:
    """The same certificate is the same bytes."""
    try:
        jsonfile.write(path, jsonfile.dumps(made))
    except OSError as e:
        raise UserError(
            f"cannot write {path}: {e.strerror}", hint="name a folder: --certificates DIR"
        ) from e


def hold(task: TaskSpec, folder: Path | None) -> Held:
    """Is there a certificate, and does it hold? Runs nothing."""
    path = certificate_path(task, folder)
    if not path.exists():
        found: tuple[str, ...] = ("there is none",)
    else:
        try:
            found = tuple(objections(jsonfile.load(path, Certificate), now(task)))
        except SpecError as e:
            found = (f"it cannot be read: {e}",)
    return Held(task=task.id, path=str(path), objections=found)


def quarantine(task: TaskSpec, finding: Finding) -> Path | None:
    """Exclude what varied, in the task's checks.yaml; returns the file if it changed.

    Raises UserError when nothing would be left to score, or the file cannot be edited by lines.
    """
    if not finding.varied:
        return None
    path = checks_path(Path(task.home), task.id)
    gone = {v.check: v.why for v in finding.varied}
    if not any(c.id not in gone and not c.gate for c in task.verifier.checks):
        raise UserError(
            f"every scored check of `{task.id}` varies: none would be left",
            hint="mend the hidden tests, or pin what they hang on",
        )
    before = yamlfile.read_text(path)
    jsonfile.write(path, move(before, check_lines(path), gone))
    try:
        left = {c.id for c in load_checks(path)}
    except SpecError:
        left = set()
    if left != {c.id for c in task.verifier.checks} - gone.keys():
        jsonfile.write(path, before)
        raise UserError(f"{path} cannot be edited by lines", hint="move the checks by hand")
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What came of one task."""

    finding: Finding
    runs: int
    """Of each submission."""
    certificate: str = ""
    """Where it was written; nowhere when it was void, or when a part of the shifts was run."""
    changed: str = ""
    """The checks.yaml from which checks were moved."""


def settle(trial: Trial, finding: Finding, folder: Path | None, *, exclude: bool) -> Settled:
    """Write the certificate, and exclude what varied if that was asked for."""
    task, shifts = trial.task, trial.shifts
    path: Path | None = None
    if shifts == all_shifts(task.clock) and not finding.void:
        path = certificate_path(task, folder)
        write(certificate(task, shifts, finding, runner_digest(task)), path)
    changed = quarantine(task, finding) if exclude else None
    return Settled(
        finding=finding,
        runs=len(shifts),
        certificate=str(path or ""),
        changed=str(changed or ""),
    )


def exit_code(findings: Sequence[Finding]) -> int:
    """The exit code: 1 when something varied, 3 when something was void, and nothing else was."""
    if any(not f.still and not f.void for f in findings):
        return 1
    return 3 if any(f.void for f in findings) else 0
