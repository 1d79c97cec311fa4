"""Submission to evidence: a second, clean box, where network and clock stand still."""

import json
import time
from collections.abc import Callable
from pathlib import PurePosixPath

from sandbox.errors import RuntimeFault, VerifierFault
from sandbox.formats.digest import Entry
from sandbox.grading.probe import require_stillness
from sandbox.grading.readout import Readout, read_out
from sandbox.model.record import Submission
from sandbox.model.task import TaskSpec
from sandbox.model.verdict import Evidence, Probe, Ran
from sandbox.runtime.base import Box, ExecResult, Runtime
from sandbox.runtime.freeze.preload import frozen_environment, instant
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.supplies import Supplies
from sandbox.runtime.tarball import pack

_FOLDER = "/verify"
_APPLY_SECONDS = 120.0
_RECORD_BYTES = 64 << 20
_LIST_BYTES = 16 << 20
"""Names of 100,000 files, which is what a submission may have."""
_LOG_CHARACTERS = 1 << 18
_MOST_OUTSIDE, _OUTSIDE_BYTES = 1000, 1 << 17
"""Paths that are left out are named on a command line, which holds only so much."""


def verify(
    task: TaskSpec,
    submission: Submission,
    runtime: Runtime,
    supplies: Supplies,
    *,
    now: Callable[[], float] = time.time,
) -> Evidence:
    """Raises a Fault when no evidence can be had; that is never the submission's doing."""
    if submission.rejected:
        return Evidence(ran=Ran.REJECTED, detail=submission.rejected)
    spec = BoxSpec(
        image=supplies.image,
        seeds=(supplies.seed,),
        limits=task.limits,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        workdir=task.workdir,
        labels={"task": task.id, "role": "verifier"},
    )
    with runtime.create(spec) as box:
        try:
            refused, outside = _apply(box, task, submission.patch)
            if refused:
                return Evidence(ran=Ran.REJECTED, detail=refused, outside=outside)
            _put_tests(box, task, supplies)
            began = now()
            done = _checked(box, task, began)
        except RuntimeFault:
            # Stopped for a limit between two programs: the submission's doing, and no fault.
            limit = "" if box.lost() else box.reached()
            if not limit:
                raise
            return Evidence(ran=Ran.REJECTED, detail=limit)
        elapsed = now() - began
    return _evidence(task, done, outside, elapsed)


def _checked(box: Box, task: TaskSpec, began: float) -> ExecResult:
    return box.exec(
        ["/usr/bin/python3", "-P", "-s", f"{_FOLDER}/runner.py", f"{_FOLDER}/plan.json"],
        seconds=task.verifier.seconds,
        env=frozen_environment(task.clock, now=began),
        trusted=True,
        output_bytes=_RECORD_BYTES,
    )


def _apply(box: Box, task: TaskSpec, patch: bytes) -> tuple[str, tuple[str, ...]]:
    """Apply it strictly: all of what is declared, or nothing. Returns why not, and what is not."""
    if not patch.strip():
        return "", ()
    refused, names = _named(box, patch)
    if refused:
        return refused, ()
    outside = tuple(n for n in names if not task.submission.covers(n))
    if len(outside) == len(names):
        return "", outside
    leave = [f"--exclude={_literal(n)}" for n in outside]
    if len(outside) > _MOST_OUTSIDE or len(json.dumps(leave)) > _OUTSIDE_BYTES:
        return f"the patch changes {len(outside)} files that are not declared", outside[:10]
    done = box.exec(
        _git("apply", "--whitespace=nowarn", *leave, "-"), input=patch, seconds=_APPLY_SECONDS
    )
    if done.exit_code != 0:
        return _said("the patch does not apply", done), outside
    return _strays(box, task) or _in_the_way(box, task), outside


def _named(box: Box, patch: bytes) -> tuple[str, list[str]]:
    """The files a patch names: all of them, or why they cannot be had."""
    listed = box.exec(
        _git("apply", "--numstat", "-z", "-"),
        input=patch,
        seconds=_APPLY_SECONDS,
        output_bytes=_LIST_BYTES,
    )
    if listed.exit_code != 0:
        return _said("the patch cannot be read", listed), []
    if listed.truncated:
        return "the patch names more files than can be looked at", []
    paths = [line.split(b"\t", 2)[2] for line in listed.stdout.split(b"\0") if b"\t" in line]
    return "", [p.decode("utf-8", "surrogateescape") for p in paths]


def _strays(box: Box, task: TaskSpec) -> str:
    """A rename has two ends, and the list of a patch's files names one."""
    touched = box.exec(
        _git("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"),
        seconds=_APPLY_SECONDS,
        output_bytes=_LIST_BYTES,
    )
    if touched.exit_code != 0 or touched.truncated:
        return _said("what the patch changes cannot be told", touched)
    changed = [line[3:].decode("utf-8", "surrogateescape") for line in touched.stdout.split(b"\0")]
    strays = [n for n in changed if n and not task.submission.covers(n)]
    return f"the patch changes what is not declared: {', '.join(strays[:5])}" if strays else ""


def _in_the_way(box: Box, task: TaskSpec) -> str:
    """A link or a file where a folder of the hidden tests has to be."""
    above = {str(p) for place in task.verifier.bundle.paths for p in PurePosixPath(place).parents}
    folders = [f"{task.workdir}/{p}" for p in sorted(above - {"."})]
    if not folders:
        return ""
    # A folder that is gone is no trouble: `find` says so, fails, and the tests make it again.
    found = box.exec(
        ["find", *folders, "-maxdepth", "0", "!", "-type", "d"], seconds=_APPLY_SECONDS, cwd="/"
    )
    said = found.stdout.decode("utf-8", "backslashreplace").strip()
    return f"the patch puts what is no folder in place of {said}" if said else ""


def _put_tests(box: Box, task: TaskSpec, supplies: Supplies) -> None:
    """Only now, and in this box only. They replace what the repository has in their places."""
    places = [f"{task.workdir}/{p}" for p in task.verifier.bundle.paths]
    removed = box.exec(["rm", "-rf", "--", *places], seconds=_APPLY_SECONDS, cwd="/")
    if removed.exit_code != 0:
        raise VerifierFault(_said("cannot make room for the hidden tests", removed))
    box.put(supplies.bundle, task.workdir)
    options = "".join(f"{k} = {_ini(v)}\n" for k, v in sorted(task.verifier.options.items()))
    plan = {
        "workdir": task.workdir,
        "arguments": list(task.verifier.arguments),
        "environment": task.env,
        "ini": f"{_FOLDER}/pytest.ini",
    }
    files = (
        Entry("runner.py", "file", supplies.runner),
        Entry("pytest.ini", "file", f"[pytest]\n{options}".encode()),
        Entry("plan.json", "file", json.dumps(plan).encode()),
    )
    box.put(pack(files), _FOLDER)


def _evidence(
    task: TaskSpec, done: ExecResult, outside: tuple[str, ...], elapsed: float
) -> Evidence:
    log = done.stderr.decode("utf-8", "backslashreplace")[:_LOG_CHARACTERS]
    told = read_out(done.stdout)
    if not told.probes:
        said = log.strip()[-500:] or "nothing"
        raise VerifierFault(f"the runner did not start (exit {done.exit_code}); it said: {said}")
    first, *later = told.probes
    at = instant(task.clock)
    require_stillness(first or Probe(), at=at, elapsed=elapsed)
    ran, detail = _how_it_ended(task, done, told, any(_moved(p, at, elapsed) for p in later))
    return Evidence(
        ran=ran,
        detail=detail,
        report=told.report,
        probes=tuple(p for p in told.probes if p and not _moved(p, at, elapsed)),
        exit_code=done.exit_code,
        log=log,
        outside=outside,
        seconds=elapsed if told.seconds is None else told.seconds,
    )


def _moved(probe: Probe | None, at: float, elapsed: float) -> bool:
    try:
        require_stillness(probe or Probe(), at=at, elapsed=elapsed)
    except VerifierFault:
        return True
    return False


def _how_it_ended(
    task: TaskSpec,
    done: ExecResult,
    told: Readout,
    moved: bool,  # noqa: FBT001
) -> tuple[Ran, str]:
    if done.timed_out:
        return Ran.TIMED_OUT, f"the checks took more than {task.verifier.seconds:g} s"
    if told.seconds is None:
        why = f": {done.limit}" if done.limit else ""
        return Ran.CRASHED, f"the runner ended early with exit code {done.exit_code}{why}"
    if moved:
        # Void would be a way out: the box stood still until the code under test was loaded.
        return Ran.CRASHED, "the box did not stand still once the code under test was loaded"
    if told.uncollected:
        return Ran.FINISHED, "could not be collected: " + ", ".join(told.uncollected)
    return Ran.FINISHED, ""


def _git(*command: str) -> list[str]:
    return ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", *command]


def _literal(path: str) -> str:
    """The pattern that matches this path only."""
    return "".join(f"\\{c}" if c in "*?[]\\" else c for c in path)


def _ini(value: str) -> str:
    return value.replace("\n", "\n    ")


def _said(what: str, done: ExecResult) -> str:
    said = done.stderr.decode("utf-8", "backslashreplace").strip()
    return f"{what}: {said[:500] or f'exit code {done.exit_code}'}"
