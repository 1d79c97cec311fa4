"""A run's rollouts as files that other tools read: one file each, or one line each of one file."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sandbox.adapters import inspectlog
from sandbox.errors import SpecError, UserError
from sandbox.formats import asciicast3, jsonfile, sweagent
from sandbox.formats.asciicast import read_cast
from sandbox.formats.atif import dumps as atif_text
from sandbox.formats.atif import problems
from sandbox.formats.atiftold import atif
from sandbox.formats.chat import chat
from sandbox.formats.records import read_results
from sandbox.formats.trajectory import Trajectory, read_trajectory
from sandbox.formats.vftrace import episode
from sandbox.model.record import Rollout
from sandbox.rollout.claims import plain_file
from sandbox.rollout.folder import CAST, EVENTS, PATCH, RolloutFolder
from sandbox.rollout.outdir import RESULTS, find_rollout, require_run, rollout_folder

Name = Callable[[Rollout], str]
_GRADED = "it was graded: there was no agent here"
_EARLY = "it was over before there was a terminal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rollouts of which run, and where their files go."""

    run: Path
    out: Path
    task: str | None = None
    attempt: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    task: str
    attempt: int
    path: str
    """The file; empty where there is none."""
    why: str = ""
    """There is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A rollout of the run, and where its files are."""

    rollout: Rollout
    folder: RolloutFolder

    @property
    def lacks(self) -> str:
        """Why there is nothing to tell of it; empty where there is."""
        if (self.folder.path / EVENTS).is_file():
            return ""
        return _GRADED if self.rollout.ending == "graded" else _EARLY

    def told(self) -> Trajectory:
        """Raises SpecError."""
        path = self.folder.path / EVENTS
        if path.is_symlink():
            raise UserError(f"{path} is a link", hint="it may lead anywhere: copy the file there")
        patch = plain_file(self.folder.path / PATCH)
        return read_trajectory(self.rollout, self.folder.read_events(), str(path), patch)


def rollouts(wanted: Wanted) -> list[Found]:
    """The last word about each that is wanted. Raises UserError."""
    run = wanted.run
    require_run(run)
    latest = {(r.task, r.attempt): r for r in read_results(run / RESULTS)}
    if wanted.task is not None and not any(task == wanted.task for task, _ in latest):
        find_rollout(run, wanted.task, wanted.attempt)  # says what there is
    chosen = [
        r
        for (task, attempt), r in latest.items()
        if wanted.task in (None, task) and wanted.attempt in (None, attempt)
    ]
    if not chosen:
        raise UserError(f"no rollout of {run} is meant", hint="stillroom show RUN lists them")
    return [Found(rollout=r, folder=_folder(run, r)) for r in chosen]


def _folder(run: Path, r: Rollout) -> RolloutFolder:
    """Of somebody else's run: its names are not to lead out of the folder."""
    if r.task in ("", ".", "..") or not {"/", "\0"}.isdisjoint(r.task) or r.attempt < 0:
        raise SpecError(f"`{r.task}` is no name of a task", where=str(run / RESULTS))
    return rollout_folder(run, r.task, r.attempt)


def write_files(wanted: Wanted, kind: str) -> Iterator[Written]:
    """OUT/<task>/<attempt>/<file>, one for each rollout."""
    name, text = FILES[kind]
    for one in _each(wanted):
        r = one.rollout
        told = one.told() if not one.lacks else None
        why = one.lacks or _untellable(kind, told)
        if told is None or why:
            yield Written(task=r.task, attempt=r.attempt, path="", why=why)
            continue
        path = wanted.out / r.task / str(r.attempt) / name(r)
        jsonfile.write(path, text(told))
        yield Written(task=r.task, attempt=r.attempt, path=str(path))


def write_lines(wanted: Wanted, kind: str) -> Iterator[Written]:
    """OUT/<file>, a line for each rollout."""
    name, line = LINES[kind]
    path = wanted.out / name
    found = rollouts(wanted)
    with _replacing(path) as out:
        for one in found:
            r = one.rollout
            if not one.lacks:
                out.write(json.dumps(line(one.told()), ensure_ascii=True, allow_nan=False) + "\n")
            where = "" if one.lacks else str(path)
            yield Written(task=r.task, attempt=r.attempt, path=where, why=one.lacks)


def write_casts(wanted: Wanted, version: int) -> Iterator[Written]:
    """OUT/<task>/<attempt>/terminal.cast."""
    for one in _each(wanted):
        r = one.rollout
        cast = one.folder.path / CAST
        if not cast.is_file() or cast.is_symlink():
            why = one.lacks or "its terminal was not recorded"
            yield Written(task=r.task, attempt=r.attempt, path="", why=why)
            continue
        recording = read_cast(cast)
        lines = (
            asciicast3.lines2(recording)
            if version == 2
            else asciicast3.lines3(recording, _exit_code(one))
        )
        path = wanted.out / r.task / str(r.attempt) / CAST
        jsonfile.write(path, asciicast3.text(lines))
        yield Written(task=r.task, attempt=r.attempt, path=str(path))


def write_inspect(wanted: Wanted) -> Iterator[Written]:
    """OUT/<run>.eval: all rollouts, as samples and epochs of one evaluation."""
    found = rollouts(wanted)
    told = [one.told() for one in found if not one.lacks]
    path = wanted.out / f"{wanted.run.resolve().name}.eval"
    if told:
        inspectlog.write(told, path)
    for one in found:
        r = one.rollout
        where = "" if one.lacks else str(path)
        yield Written(task=r.task, attempt=r.attempt, path=where, why=one.lacks)


def _each(wanted: Wanted) -> Sequence[Found]:
    if wanted.out.exists() and not wanted.out.is_dir():
        raise UserError(f"{wanted.out} is a file", hint="--out wants a folder")
    return rollouts(wanted)


def _untellable(kind: str, told: Trajectory | None) -> str:
    if kind != "atif" or told is None:
        return ""
    return next(problems(atif(told)), "") and "nothing was asked and nothing was done"


def _exit_code(one: Found) -> int | None:
    """Of the shell that a person had: an agent's ends with its box, and no other way."""
    if one.lacks:
        return None
    ends = [e for e in one.folder.read_events() if (e.get("type"), e.get("what")) == _PERSON_END]
    code = ends[-1].get("exit_code") if ends else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


@contextmanager
def _replacing(path: Path) -> Iterator[IO[str]]:
    """As a whole: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    with fresh.open("w", encoding="utf-8") as out:
        yield out
    fresh.replace(path)


_PERSON_END = ("person", "end")
FILES: Mapping[str, tuple[Name, Callable[[Trajectory], str]]] = {
    "atif": (lambda _: "trajectory.json", lambda told: atif_text(atif(told))),
    "traj": (lambda r: f"{r.task}.traj", lambda told: sweagent.dumps(sweagent.traj(told))),
    "mini": (lambda r: f"{r.task}.traj.json", lambda told: sweagent.dumps(sweagent.mini(told))),
}
LINES: Mapping[str, tuple[str, Callable[[Trajectory], dict[str, Any]]]] = {
    "chat": ("chat.jsonl", chat),
    "verifiers": ("traces.jsonl", episode),
}


def write(wanted: Wanted, kind: str, version: int = 2) -> Iterable[Written]:
    """Raises UserError."""
    match kind:
        case "asciicast":
            return write_casts(wanted, version)
        case "inspect":
            return write_inspect(wanted)
        case _:
            return write_files(wanted, kind) if kind in FILES else write_lines(wanted, kind)
