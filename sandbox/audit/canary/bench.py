"""The hidden tests of a task, edited, against whatever is submitted: one box for each run."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sandbox.errors import Fault
from sandbox.grading.apply import applied
from sandbox.grading.boxrun import run_job
from sandbox.grading.further import of_files
from sandbox.grading.plan import Job
from sandbox.grading.setting import setting
from sandbox.grading.variants import edited
from sandbox.model.conditions import Conditions
from sandbox.model.layers import Edit
from sandbox.model.task import TaskSpec
from sandbox.model.verdict import Seen
from sandbox.runtime.base import Runtime
from sandbox.runtime.supplies import Supplies

_TRIES = 3
_GO_ON = "--continue-on-collection-errors"
"""A file that an edit broke is no reason to run none of the others."""
_BARE = Conditions(layers="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where canaries are tried."""

    task: TaskSpec
    runtime: Runtime
    supplies: Supplies
    jobs: int = 2
    """Boxes at the same time."""
    now: Callable[[], float] = time.time
    ticks: Callable[[], float] = time.monotonic

    def run(self, edits: Sequence[Edit], patch: bytes, paths: Sequence[str] = ()) -> Seen:
        """Raises a Fault when the box cannot be had."""
        task = self._of(paths)
        rootless = self.runtime.capabilities().rootless
        job = Job(
            task=task,
            plan=setting(task, self.supplies, _BARE, rootless=rootless),
            made=applied(task, self.supplies.base, patch),
            tests=edited(self.supplies.tests, edits),
            runner=f"run_{task.verifier.runner}",
            canaries=True,
        )
        for _ in range(_TRIES - 1):
            try:
                return self._run(job)
            except Fault as fault:
                if not fault.retry:
                    raise
        return self._run(job)

    def run_all(self, pairs: Sequence[tuple[Sequence[Edit], bytes]]) -> list[Seen]:
        """Each pair of edits and patch in a box of its own."""
        with ThreadPoolExecutor(max(1, min(self.jobs, len(pairs)))) as threads:
            return list(threads.map(lambda pair: self.run(*pair), pairs))

    def _run(self, job: Job) -> Seen:
        seen, _ = run_job(job, self.runtime, self.supplies, now=self.now, ticks=self.ticks)
        return seen

    def _of(self, paths: Sequence[str]) -> TaskSpec:
        """The task, asked for these files alone where its runner can be."""
        if self.task.verifier.runner != "pytest":
            return self.task
        return of_files(self.task, paths, _GO_ON)
