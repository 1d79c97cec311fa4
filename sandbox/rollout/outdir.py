"""A run's folder: OUT/run.json, results.jsonl, submissions.jsonl, rollouts/<task>/<attempt>/."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from sandbox._version import __version__
from sandbox.errors import RuntimeFault, UserError
from sandbox.formats import jsonfile
from sandbox.formats.records import (
    MOST_PATCH_BYTES,
    Appender,
    drop_submissions,
    read_results,
    sort_submissions,
    submission_line,
)
from sandbox.model.record import Rollout
from sandbox.model.task import STRICT, TaskId
from sandbox.rollout.folder import PATCH, RolloutFolder
from sandbox.runtime.lease import Lease

RESULTS, SUBMISSIONS = "results.jsonl", "submissions.jsonl"
_NUMBER = re.compile(r"0|[1-9]\d{0,8}")
_OTHER = "choose another --out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """run.json: what this folder is a run of. The same command resumes it; another may not."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    schema: Literal[1] = 1
    version: str = __version__
    agent: str
    runtime: str
    graded: str = ""
    """The submissions file, when the run grades one."""
    suite: str = ""
    """Its name, if one was named; `tasks` says what that was."""
    tasks: dict[str, str]
    """Task id → task digest."""
    attempts: int


Key = tuple[TaskId, int]


class OutFolder:
    """One process at a time writes to it."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self._manifest = manifest

    def __enter__(self) -> Self:
        """Raises UserError when it belongs to another run."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lease = Lease(self.path / ".lease")
        except RuntimeFault:
            raise UserError(
                f"{self.path} is being written by another run", hint="choose another --out"
            ) from None
        except FileExistsError:
            raise UserError(f"{self.path} is a file", hint="--out wants a folder") from None
        except OSError as e:
            raise UserError(f"cannot write to {self.path}: {e.strerror}", hint=_OTHER) from e
        try:
            self._claim()
            self._latest = self._read_latest()
            drop_submissions(self.path / SUBMISSIONS, self._is_open)
            self._results = Appender(self.path / RESULTS)
            self._submissions = Appender(self.path / SUBMISSIONS)
        except BaseException:
            self._lease.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._results.close()
        self._submissions.close()
        try:
            sort_submissions(self.path / SUBMISSIONS)
        finally:
            self._lease.release()

    @property
    def results_path(self) -> Path:
        return self.path / RESULTS

    def finished(self) -> dict[Key, Rollout]:
        """What had ended with a verdict, for the tasks as they are now."""
        return {
            key: r
            for key, r in self._latest.items()
            if r.verdict and self._manifest.tasks.get(r.task) == r.task_digest
        }

    def rollout(self, task: TaskId, attempt: int) -> RolloutFolder:
        return rollout_folder(self.path, task, attempt)

    def add(self, rollout: Rollout) -> None:
        """The submission first: a result on disk means that the rollout needs nothing more."""
        patch = self.rollout(rollout.task, rollout.attempt).path / PATCH
        if rollout.verdict and patch.exists() and patch.stat().st_size <= MOST_PATCH_BYTES:
            line = submission_line(
                rollout.task, patch.read_bytes(), agent=rollout.agent, attempt=rollout.attempt
            )
            self._submissions.append(line)
        self._results.append(rollout)

    def _is_open(self, task: str, attempt: int) -> bool:
        """Will it be run again? A submission stays only beside its verdict: they are two files."""
        found = self._latest.get((TaskId(task), attempt))
        if found is None or not found.verdict:
            return True
        return self._manifest.tasks.get(found.task, found.task_digest) != found.task_digest

    def _claim(self) -> None:
        path = self.path / "run.json"
        if path.exists():
            there = jsonfile.load(path, Manifest)
            for what in ("agent", "runtime", "graded"):
                mine, theirs = getattr(self._manifest, what), getattr(there, what)
                if mine != theirs:
                    raise UserError(_clash(self.path, what, theirs, mine), hint=_OTHER)
        elif (self.path / RESULTS).exists():
            raise UserError(
                f"{self.path} holds results but no run.json", hint="choose another --out"
            )
        jsonfile.write(path, jsonfile.dumps(self._manifest))

    def _read_latest(self) -> dict[Key, Rollout]:
        """The last line about each rollout counts: a void one may have been run again."""
        return {(r.task, r.attempt): r for r in read_results(self.path / RESULTS)}


def _clash(path: Path, what: str, theirs: str, mine: str) -> str:
    if what == "graded":
        return f"{path} holds verdicts on another submissions file or under other shifts, or as it was before"
    return f"{path} holds a run with {what} `{theirs}`, not `{mine}`"


def is_run(path: Path) -> bool:
    return (path / "run.json").is_file() or (path / RESULTS).is_file()


def require_run(path: Path) -> None:
    """Raises UserError."""
    if not is_run(path):
        raise UserError(f"{path} is not the folder of a run", hint="a run has run.json in it")


def rollout_folder(run: Path, task: str, attempt: int) -> RolloutFolder:
    return RolloutFolder(run / "rollouts" / task / str(attempt))


def find_rollout(run: Path, task: str, attempt: int | None) -> RolloutFolder:
    """The files of one rollout of a run, the first try if not said. Raises UserError."""
    require_run(run)
    folders = {p.name: p for p in sorted(run.glob("rollouts/*")) if p.is_dir()}
    if task not in folders:
        near = get_close_matches(task, folders, n=1)
        names = ", ".join(list(folders)[:8]) + (", …" if len(folders) > 8 else "")
        hint = f"did you mean `{near[0]}`?" if near else f"it has {names or 'no rollout yet'}"
        raise UserError(f"there is no task `{task}` in {run}", hint=hint)
    numbers = sorted(int(p.name) for p in folders[task].iterdir() if _NUMBER.fullmatch(p.name))
    wanted = min(numbers, default=0) if attempt is None else attempt
    if wanted not in numbers:
        there = ", ".join(map(str, numbers)) or "none"
        raise UserError(
            f"there is no attempt {wanted} at `{task}` in {run}", hint=f"attempts there: {there}"
        )
    return RolloutFolder(folders[task] / str(wanted))


def begun(run: Path) -> list[Key]:
    """Whatever has a folder: of one that has no result, the end is not known."""
    tries = (p for p in run.glob("rollouts/*/*") if p.is_dir() and _NUMBER.fullmatch(p.name))
    return sorted((TaskId(p.parent.name), int(p.name)) for p in tries)


def run_name(what: str, who: str, runtime: str) -> str:
    """A folder name for runs of this kind."""
    return "-".join(
        re.sub(r"[^A-Za-z0-9._]+", "-", part).strip("-")[:40].rstrip("-")
        for part in (what, who, runtime)
    )


def choose_out(parent: Path, name: str, manifest: Manifest, *, wanted: int | None = None) -> Path:
    """Without --out: the last run of this name if it is this one, unfinished; else the next.

    wanted: how many verdicts make it finished; tasks times attempts if not said.
    """
    numbered = _numbered(parent, name)
    if not numbered:
        return parent / f"{name}-1"
    number, last = numbered[-1]
    if not (last / "run.json").exists():
        return last if not (last / RESULTS).exists() else parent / f"{name}-{number + 1}"
    there = jsonfile.load(last / "run.json", Manifest)
    latest = {(r.task, r.attempt): r for r in read_results(last / RESULTS)}
    verdicts = sum(r.verdict is not None for r in latest.values())
    total = len(manifest.tasks) * manifest.attempts if wanted is None else wanted
    return last if there == manifest and verdicts < total else parent / f"{name}-{number + 1}"


def next_out(parent: Path, name: str) -> Path:
    """Without --out, for what is done at once: the next one."""
    numbered = _numbered(parent, name)
    return parent / f"{name}-{numbered[-1][0] + 1 if numbered else 1}"


def _numbered(parent: Path, name: str) -> list[tuple[int, Path]]:
    return sorted(
        (int(p.name.rpartition("-")[2]), p)
        for p in parent.glob(f"{name}-*")
        if p.name[len(name) + 1 :].isdigit()
    )
