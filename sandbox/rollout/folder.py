"""The files of one rollout: OUT/rollouts/<task>/<attempt>/."""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any, assert_never

from sandbox.formats import jsonfile
from sandbox.formats.asciicast import Cast
from sandbox.formats.records import Appender, read_objects
from sandbox.model.step import Action, Keys, Observation, Run, Signal, Submit, Wait
from sandbox.model.task import TaskSpec
from sandbox.model.verdict import Evidence
from sandbox.runtime.store import remove_tree
from sandbox.runtime.terminal import Tape

EVENTS, CAST = "events.jsonl", "terminal.cast"
EVIDENCE, PATCH = "evidence.json", "submission.patch"


class Events:
    """events.jsonl: one line per event, as it happens."""

    def __init__(self, out: Appender, elapsed: Callable[[], float], started: str = "") -> None:
        """`started`: as the rollout's result says it. A result may be of an earlier try."""
        self._out = out
        self._started = {"started": started} if started else {}
        self._elapsed = elapsed
        self._count = 0

    def task(self, task: TaskSpec, attempt: int) -> None:
        """What is asked of the agent: the rest makes sense without the task's own files then."""
        told = {"instruction": task.instruction, "workdir": task.workdir}
        self._add("task", task=task.id, attempt=attempt, **told)

    def action(self, step: int, action: Action) -> None:
        """Before it is carried out: a run that dies then shows what it was doing."""
        said = _said(action)
        more = asdict(action)
        if action.model is None:
            del more["model"]
        sums = {"bytes": len(said), "sha256": _digest(said)}
        self._add("action", step=step, action=_name(action), **more, **sums)

    def observation(self, step: int, seen: Observation) -> None:
        self._add("observation", step=step, **asdict(seen))

    def person(self, what: str, **more: object) -> None:
        """A person's part has no steps; it has a beginning and an end."""
        self._add("person", what=what, **more)

    def _add(self, kind: str, **more: object) -> None:
        self._count += 1
        head = {"seq": self._count, "time": round(self._elapsed(), 6), "type": kind}
        first = self._started if self._count == 1 else {}
        self._out.append(head | {name: _sayable(value) for name, value in more.items()} | first)


class Recorded(Cast, Tape):
    """A recording that a Terminal can be given."""


class RolloutFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def fresh(self) -> None:
        """What an earlier, unfinished try left is no part of this one."""
        remove_tree(self.path)
        self.path.mkdir(parents=True)

    @property
    def spool(self) -> Path:
        """Where output that is too long for an observation goes: output-0001.txt and so on."""
        return self.path

    @contextmanager
    def events(self, elapsed: Callable[[], float], started: str = "") -> Iterator[Events]:
        """`elapsed`: seconds since the rollout began, which was at `started`."""
        with Appender(self.path / EVENTS, sync=False) as out:
            yield Events(out, elapsed, started)

    def cast(
        self,
        rows: int,
        cols: int,
        *,
        wall: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
        title: str = "",
    ) -> Recorded:
        """terminal.cast: all that the terminal shows."""
        path = self.path / CAST
        return Recorded(path, rows=rows, cols=cols, wall=wall, ticks=ticks, title=title)

    def read_events(self) -> list[dict[str, Any]]:
        """Raises SpecError; a torn last line is left out."""
        return list(read_objects(self.path / EVENTS))

    def write_patch(self, patch: bytes) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / PATCH).write_bytes(patch)

    def write_evidence(self, evidence: Evidence) -> None:
        jsonfile.write(self.path / EVIDENCE, jsonfile.dumps(evidence))

    def read_evidence(self) -> Evidence:
        """Raises SpecError."""
        return jsonfile.load(self.path / EVIDENCE, Evidence)


def _name(action: Action) -> str:
    match action:
        case Run():
            return "run"
        case Keys():
            return "keys"
        case Wait():
            return "wait"
        case Signal():
            return "signal"
        case Submit():
            return "submit"
        case _:
            assert_never(action)


def _said(action: Action) -> bytes:
    """What is said to the box: the command, or the keys."""
    match action:
        case Run():
            return _bytes(action.command)
        case Keys():
            return _bytes(action.keys)
        case Wait() | Signal() | Submit():
            return b""
        case _:
            assert_never(action)


def _bytes(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character: it will be refused, and still is told
        return text.encode("utf-8", "surrogatepass")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if data else ""


def _sayable(value: object) -> object:
    """As JSON can say it: it has no infinity, which is as long as it takes, and no bytes."""
    match value:
        case float() if not isfinite(value):
            return None
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case dict():
            return {name: _sayable(one) for name, one in value.items()}
        case list() | tuple():
            return [_sayable(one) for one in value]
        case _:
            return value
