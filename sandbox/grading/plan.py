"""What the supervisor and the runner are given, and what of the pinned tree has to be as it was."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from sandbox.errors import VerifierFault
from sandbox.formats.digest import Entry
from sandbox.grading.apply import Applied
from sandbox.grading.setting import Setting
from sandbox.model.task import TaskSpec
from sandbox.runtime.supplies import Supplies

_STRAYS, _CODE = ("conftest.py",), (".pyc", ".pyo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be run in a box of its own."""

    task: TaskSpec
    plan: Setting
    made: Applied
    """The submission, as files."""
    tests: Sequence[Entry]
    """The hidden tests, or what stands in their place; relative to the working directory."""
    runner: str
    """A file of verifiers/_runners/, without `.py`."""
    canaries: bool = False
    """Some of the tests are to fail. To show where, their source would be parsed, which CPython
    3.11 refuses when a finalizer that comes between fails and is shown in the same way."""


def files_of(job: Job, supplies: Supplies, folder: str, *, raw: bool) -> list[Entry]:
    """All that runs the tests; the code under test can read it, so nothing expected is in it.

    folder: where it comes to lie. raw: ask the kernel itself for the time, too.
    """
    options = job.task.verifier.options
    ini = "".join(f"{k} = {_ini(v)}\n" for k, v in sorted(options.items()))
    runner = f"{job.runner}.py"
    if runner not in supplies.runners:
        raise VerifierFault(f"there is no runner verifiers/_runners/{runner}", retry=False)
    plan = _plan(job, supplies, f"{folder}/pytest.ini", raw=raw)
    return [
        *(Entry(name, "file", data) for name, data in supplies.runners.items()),
        Entry("pytest.ini", "file", f"[pytest]\n{ini}".encode()),
        Entry("plan.json", "file", json.dumps(plan).encode()),
    ]


def restored(job: Job, supplies: Supplies) -> Iterator[Entry]:
    """Of the pinned files that a submission may change, those that are taken for support of tests."""
    places = [PurePosixPath(p) for p in job.task.verifier.bundle.paths]
    files = {PurePosixPath(e.path) for e in job.made.files if e.kind != "link"}
    for entry in supplies.base:
        path = PurePosixPath(entry.path)
        if path.is_absolute():
            continue  # nothing of the kind is taken from there
        if not files.isdisjoint(path.parents):
            continue  # nor from below what is a file now
        if _is_support(path.name) and not any(path.is_relative_to(p) for p in places):
            yield entry


def _plan(job: Job, supplies: Supplies, ini: str, *, raw: bool) -> dict[str, Any]:
    task, given = job.task, job.plan
    return {
        "runner": f"{job.runner}.py",
        "user": given.user,
        "umask": given.umask,
        "seconds": task.verifier.seconds,
        "check_seconds": task.verifier.check_seconds,
        "workdir": task.workdir,
        "sealed": [f"{task.workdir}/{p}" for p in task.verifier.bundle.paths],
        "writable": [str(PurePosixPath(task.workdir, p)) for p in task.verifier.writable],
        "keep": list(_pinned_support(supplies.seed.folder, task.workdir)),
        "arguments": list(task.verifier.arguments),
        "options": task.verifier.options,
        "environment": given.environment,
        "ini": ini,
        "order": given.order,
        "traceback": "line" if job.canaries else "short",
        "draw": given.still.seed is not None,
        "raw": raw,
    }


@lru_cache(maxsize=256)
def _pinned_support(seed: Path, workdir: str) -> tuple[str, ...]:
    """Where in the box: of a seed, which never changes."""
    top = f"{seed}{workdir}"
    found = []
    for folder, names, files in os.walk(top):
        if ".git" in names:
            names.remove(".git")
        found += [f"{folder}/{name}".removeprefix(str(seed)) for name in files if _is_support(name)]
    return tuple(sorted(found))


def _is_support(name: str) -> bool:
    return name in _STRAYS or name.endswith(_CODE)


def _ini(value: str) -> str:
    return value.replace("\n", "\n    ")
