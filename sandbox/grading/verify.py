"""Submission to evidence: a second, clean box, where network and clock stand still."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from sandbox.errors import RuntimeFault, VerifierFault
from sandbox.formats.digest import Entry
from sandbox.grading.apply import SECONDS, apply_patch, said
from sandbox.grading.measure import measured
from sandbox.grading.probe import Expected, expected, later_on, require_stillness
from sandbox.grading.readout import Readout, read_out
from sandbox.grading.setting import Setting, setting
from sandbox.model.conditions import USUAL, Conditions
from sandbox.model.record import Submission
from sandbox.model.task import TaskSpec
from sandbox.model.verdict import Evidence, Probe, Ran
from sandbox.runtime.base import Box, ExecResult, Runtime
from sandbox.runtime.freeze.hold import held
from sandbox.runtime.supplies import Supplies
from sandbox.runtime.tarball import pack

_FOLDER = "/verify"
_RECORD_BYTES = 64 << 20
_LOG_CHARACTERS = 1 << 18
_BUSY = "(while :; do :; done) </dev/null >/dev/null 2>&1 &"


def verify(
    task: TaskSpec,
    submission: Submission,
    runtime: Runtime,
    supplies: Supplies,
    *,
    conditions: Conditions = USUAL,
    now: Callable[[], float] = time.time,
    ticks: Callable[[], float] = time.monotonic,
) -> Evidence:
    """Raises a Fault when no evidence can be had; that is never the submission's doing.

    now: the machine's clock; ticks: one that never goes back.
    """
    if submission.rejected:
        return Evidence(ran=Ran.REJECTED, detail=submission.rejected)
    plan = setting(task, supplies, conditions)
    with held(plan.box, runtime, supplies.scratch, strict=task.clock.strict, now=now) as hold:
        began = ticks()
        with runtime.create(hold.spec) as box:
            expect = expected(hold.spec, plan.still, user=plan.user, umask=plan.umask)
            bench = _Bench(box, task, plan, expect, age=lambda: ticks() - began)
            try:
                evidence = _in_box(bench, submission.patch, supplies)
            except RuntimeFault:
                # Stopped for a limit between two programs: the submission's doing, and no fault.
                limit = "" if box.lost() else box.reached()
                if not limit:
                    raise
                evidence = Evidence(ran=Ran.REJECTED, detail=limit)
    return replace(evidence, clock=hold.clock)


@dataclass(frozen=True, slots=True)
class _Bench:
    """A box in which something is being verified."""

    box: Box
    task: TaskSpec
    plan: Setting
    expect: Expected
    age: Callable[[], float]
    """Seconds since its clock was started, at most."""


def _in_box(bench: _Bench, patch: bytes, supplies: Supplies) -> Evidence:
    refused, outside = apply_patch(bench.box, bench.task, patch)
    if refused:
        return Evidence(ran=Ran.REJECTED, detail=refused, outside=outside)
    _put_tests(bench, supplies)
    probes = _measure(bench)
    if bench.plan.load:
        _keep_busy(bench.box, bench.plan.load)
    began = bench.age()
    done = bench.box.exec(
        ["/usr/bin/python3", "-P", "-s", f"{_FOLDER}/runner.py", f"{_FOLDER}/plan.json"],
        seconds=bench.task.verifier.seconds,
        user=bench.plan.user,
        trusted=True,
        output_bytes=_RECORD_BYTES,
    )
    evidence = _evidence(bench, done, began)
    return replace(evidence, outside=outside, probes=(*probes, *evidence.probes))


def _put_tests(bench: _Bench, supplies: Supplies) -> None:
    """Only now, and in this box only. They replace what the repository has in their places."""
    box, task = bench.box, bench.task
    places = [f"{task.workdir}/{p}" for p in task.verifier.bundle.paths]
    removed = box.exec(["rm", "-rf", "--", *places], seconds=SECONDS, cwd="/")
    if removed.exit_code != 0:
        raise VerifierFault(said("cannot make room for the hidden tests", removed))
    box.put(supplies.bundle, task.workdir)
    options = "".join(f"{k} = {_ini(v)}\n" for k, v in sorted(task.verifier.options.items()))
    plan = {
        "workdir": task.workdir,
        "arguments": list(task.verifier.arguments),
        "environment": bench.plan.environment,
        "ini": f"{_FOLDER}/pytest.ini",
        "umask": bench.plan.umask,
        "order": bench.plan.order,
        "draw": bench.plan.still.seed is not None,
        "raw": bench.expect.partial,
    }
    files = (
        Entry("runner.py", "file", supplies.runner),
        Entry("pytest.ini", "file", f"[pytest]\n{options}".encode()),
        Entry("plan.json", "file", json.dumps(plan).encode()),
    )
    box.put(pack(files), _FOLDER)
    if bench.plan.user != bench.plan.box.user:
        _give(box, task.workdir, bench.plan.user)


def _give(box: Box, folder: str, user: str) -> None:
    """Who runs the checks has the place where they run: what is asked is who, and not what they may."""
    done = box.exec(["chown", "-hR", user, "--", folder], seconds=SECONDS, cwd="/")
    if done.exit_code != 0:
        raise VerifierFault(said(f"cannot give {folder} to {user}", done))


def _measure(bench: _Bench) -> tuple[Probe, ...]:
    """Before any of the code under test runs: what is not as it should be is no doing of its."""
    if bench.expect.partial:
        return ()
    found = measured(bench.box, bench.expect, user=bench.plan.user, age=bench.age)
    require_stillness(found, bench.expect, elapsed=bench.age())
    return (found,)


def _keep_busy(box: Box, programs: int) -> None:
    """They go on until the box is gone, and take from the checks what is theirs of its processors."""
    done = box.exec(["sh", "-c", _BUSY * programs], seconds=SECONDS, cwd="/")
    if done.exit_code != 0:
        raise VerifierFault(said("cannot load the box", done))


def _evidence(bench: _Bench, done: ExecResult, began: float) -> Evidence:
    log = done.stderr.decode("utf-8", "backslashreplace")[:_LOG_CHARACTERS]
    told = read_out(done.stdout)
    if not told.probes:
        words = log.strip()[-500:] or "nothing"
        raise VerifierFault(f"the runner did not start (exit {done.exit_code}); it said: {words}")
    elapsed = bench.age()
    first, *later = told.probes
    require_stillness(first or Probe(), bench.expect, elapsed=elapsed)
    after = later_on(bench.expect)
    moved = [_moved(p, after, elapsed) for p in later]
    ran, detail = _how_it_ended(bench.task, done, told, any(moved))
    sound = [p for p, wrong in zip(told.probes, (False, *moved), strict=True) if p and not wrong]
    return Evidence(
        ran=ran,
        detail=detail,
        report=told.report,
        probes=tuple(sound),
        exit_code=done.exit_code,
        log=log,
        seconds=elapsed - began if told.seconds is None else told.seconds,
    )


def _moved(probe: Probe | None, expect: Expected, elapsed: float) -> bool:
    try:
        require_stillness(probe or Probe(), expect, elapsed=elapsed)
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


def _ini(value: str) -> str:
    return value.replace("\n", "\n    ")
