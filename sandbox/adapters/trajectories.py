"""A run's rollouts as files that other tools read: one file each, or one line each of one file."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from sandbox.formats.records import read_objects, read_results
from sandbox.formats.trajectory import Trajectory, read_trajectory
from sandbox.formats.vftrace import episode
from sandbox.model.record import Rollout
from sandbox.rollout.claims import plain_file
from sandbox.rollout.folder import CAST, EVENTS, PATCH, RolloutFolder
from sandbox.rollout.outdir import (
    RESULTS,
    Key,
    begun,
    find_rollout,
    require_run,
    rollout_folder,
)

Name = Callable[[Rollout], str]
_GRADED = "it was graded: there was no agent here"
_EARLY = "it was over before there was a terminal"
_OPEN = "it is not over: the same command again goes on with the run"
_PERSON = "a person was the agent: there is a recording, and no steps"
_NOTHING = "nothing was asked and nothing was done"
_AGAIN = "it was begun again, and that try is not over"


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
        """Why there is nothing to tell of it; empty where there is. Raises SpecError."""
        path = self._events()
        if not path.is_file():
            return _GRADED if self.rollout.ending == "graded" else _EARLY
        first = next(read_objects(path), None)
        if first is None:
            return _NOTHING
        if first.get("started") not in (None, self.rollout.started):
            return _AGAIN
        return _PERSON if first.get("type") == "person" else ""

    def told(self) -> Trajectory:
        """Raises SpecError."""
        path = self._events()
        patch = plain_file(self.folder.path / PATCH)
        return read_trajectory(self.rollout, self.folder.read_events(), str(path), patch)

    def _events(self) -> Path:
        path = self.folder.path / EVENTS
        if path.is_symlink():
            raise UserError(f"{path} is a link", hint="it may lead anywhere: copy the file there")
        return path


def rollouts(wanted: Wanted) -> tuple[list[Found], list[Key]]:
    """The last word about each that is wanted, and those there is none about. Raises UserError."""
    run = wanted.run
    require_run(run)
    latest = {(r.task, r.attempt): r for r in read_results(run / RESULTS)}
    chosen = [r for key, r in latest.items() if _is_meant(wanted, key)]
    still_open = [key for key in begun(run) if key not in latest and _is_meant(wanted, key)]
    if not chosen and not still_open:
        if wanted.task is not None:
            find_rollout(run, wanted.task, wanted.attempt)  # says what there is
        which = "rollout" if wanted.attempt is None else f"attempt {wanted.attempt}"
        raise UserError(f"there is no {which} in {run}", hint="stillroom show RUN lists them")
    return [Found(rollout=r, folder=_folder(run, r)) for r in chosen], still_open


def _is_meant(wanted: Wanted, key: Key) -> bool:
    task, attempt = key
    return wanted.task in (None, task) and wanted.attempt in (None, attempt)


def _folder(run: Path, r: Rollout) -> RolloutFolder:
    """Of somebody else's run: its names are not to lead out of the folder."""
    if r.task in ("", ".", "..") or not {"/", "\0"}.isdisjoint(r.task) or r.attempt < 0:
        raise SpecError(f"`{r.task}` is no name of a task", where=str(run / RESULTS))
    return rollout_folder(run, r.task, r.attempt)


def write_files(wanted: Wanted, found: Sequence[Found], kind: str) -> Iterator[Written]:
    """OUT/<task>/<attempt>/<file>, one for each rollout."""
    name, text = FILES[kind]
    for one in found:
        r = one.rollout
        told = one.told() if not one.lacks else None
        why = one.lacks or _untellable(kind, told)
        if told is None or why:
            yield Written(task=r.task, attempt=r.attempt, path="", why=why)
            continue
        path = wanted.out / r.task / str(r.attempt) / name(r)
        jsonfile.write(path, text(told))
        yield Written(task=r.task, attempt=r.attempt, path=str(path))


def write_lines(wanted: Wanted, found: Sequence[Found], kind: str) -> Iterator[Written]:
    """OUT/<file>, a line for each rollout."""
    name, line = LINES[kind]
    path = wanted.out / name
    lacks = [one.lacks for one in found]
    if not all(lacks):
        with _replacing(path) as out:
            for one in (one for one, why in zip(found, lacks, strict=True) if not why):
                out.write(json.dumps(line(one.told()), ensure_ascii=True, allow_nan=False) + "\n")
    yield from _in_one(found, lacks, path)


def write_casts(wanted: Wanted, found: Sequence[Found], version: int) -> Iterator[Written]:
    """OUT/<task>/<attempt>/terminal.cast."""
    for one in found:
        r = one.rollout
        cast = one.folder.path / CAST
        recorded = cast.is_file() and not cast.is_symlink()
        why = one.lacks
        if not recorded or why == _AGAIN:
            why = why or "its terminal was not recorded"
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


def write_inspect(wanted: Wanted, found: Sequence[Found]) -> Iterator[Written]:
    """OUT/<run>.eval: all rollouts, as samples and epochs of one evaluation."""
    lacks = [one.lacks for one in found]
    told = [one.told() for one, why in zip(found, lacks, strict=True) if not why]
    path = wanted.out / f"{wanted.run.resolve().name}.eval"
    if told:
        inspectlog.write(told, path)
    yield from _in_one(found, lacks, path)


def _in_one(found: Sequence[Found], lacks: Sequence[str], path: Path) -> Iterator[Written]:
    for one, why in zip(found, lacks, strict=True):
        r = one.rollout
        yield Written(task=r.task, attempt=r.attempt, path="" if why else str(path), why=why)


def _untellable(kind: str, told: Trajectory | None) -> str:
    if kind != "atif" or told is None:
        return ""
    problem = next(problems(atif(told)), "")
    return problem and f"it would be no ATIF: {problem}"


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
    try:
        with fresh.open("w", encoding="utf-8") as out:
            yield out
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


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


def write(wanted: Wanted, kind: str, version: int = 2) -> Iterator[Written]:
    """Raises UserError."""
    if wanted.out.exists() and not wanted.out.is_dir():
        raise UserError(f"{wanted.out} is a file", hint="--out wants a folder")
    found, still_open = rollouts(wanted)
    match kind:
        case "asciicast":
            yield from write_casts(wanted, found, version)
        case "inspect":
            yield from write_inspect(wanted, found)
        case _ if kind in FILES:
            yield from write_files(wanted, found, kind)
        case _:
            yield from write_lines(wanted, found, kind)
    for task, attempt in still_open:
        yield Written(task=task, attempt=attempt, path="", why=_OPEN)
