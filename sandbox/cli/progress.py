"""Progress on standard error: a bar for a person, a line per rollout for a log."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Self

from sandbox.rollout.observer import Observer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress, TaskID

    from sandbox.model.record import Rollout
    from sandbox.model.task import TaskId


class ProgressObserver(Observer):
    """Use it in a `with`. Counts, time left, and what is being prepared."""

    def __init__(self, *, quiet: bool, named: Callable[[Rollout], str] | None = None) -> None:
        """`named`: what a rollout is called when a number says too little."""
        self._quiet = quiet
        self._named = named or (lambda rollout: f"{rollout.task} try {rollout.attempt}")
        self._lock = threading.Lock()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._preparing: TaskID | None = None
        self._counts = {"resolved": 0, "not resolved": 0, "void": 0}
        self._said = ""

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def preparing(self, text: str, done: int, total: int) -> None:
        with self._lock:
            if self._bar:
                if self._preparing is None:
                    self._preparing = self._bar.add_task("", total=None)
                self._bar.update(
                    self._preparing, description=f"preparing: {text}", completed=done, total=total
                )
            elif not self._quiet and text != self._said:
                self._say(f"preparing: {text}")
            self._said = text

    def noted(self, text: str) -> None:
        with self._lock:
            self._say(f"note: {text}")

    def planned(self, total: int, finished: int) -> None:
        with self._lock:
            if self._bar:
                if self._preparing is not None:
                    self._bar.remove_task(self._preparing)
                    self._preparing = None
                self._task = self._bar.add_task("rollouts", total=total, completed=finished)
            if finished:
                rest = "going on with the rest" if finished < total else "nothing is left to do"
                self._say(f"{finished} of {total} had ended before; {rest}")

    def phase(self, task: TaskId, attempt: int, name: str) -> None:
        """When a person plays, there is no run to be shown, and the screen is theirs."""
        del task, attempt
        with self._lock:
            if name == "agent" and self._bar and self._task is None:
                self._bar.stop()
                self._bar = None

    def ended(self, rollout: Rollout) -> None:
        verdict = rollout.verdict
        word = "void" if verdict is None else "resolved" if verdict.resolved else "not resolved"
        with self._lock:
            self._counts[word] += 1
            if self._bar and self._task is not None:
                counts = ", ".join(f"{n} {w}" for w, n in self._counts.items() if n)
                self._bar.update(self._task, advance=1, description=counts)
            elif not self._quiet:
                seconds = rollout.seconds.get("total", 0.0)
                self._say(f"{self._named(rollout)}: {word} ({seconds:.1f} s)")
            if rollout.fault:
                self._say(f"  {rollout.fault.code}: {rollout.fault.message}")
                if rollout.fault.hint:
                    self._say(f"  hint: {rollout.fault.hint}")

    def retried(self, rollout: Rollout) -> None:
        with self._lock:
            message = rollout.fault.message if rollout.fault else ""
            self._say(f"{self._named(rollout)}: void, trying again: {message}")

    def _say(self, text: str) -> None:
        if self._quiet:
            return
        if self._bar:
            self._bar.console.print(text, highlight=False, markup=False)
        else:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
