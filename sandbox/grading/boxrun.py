"""The hidden tests in one clean box: the submission, the tests, what was seen."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sandbox.errors import RuntimeFault, VerifierFault
from sandbox.grading.apply import SECONDS, lay_out, said
from sandbox.grading.ending import FLOODED, how_it_ended
from sandbox.grading.measure import measured
from sandbox.grading.plan import Job as Job  # noqa: PLC0414 - users import it from here
from sandbox.grading.plan import files_of, restored
from sandbox.grading.probe import Expected, expected, later_on, require_stillness
from sandbox.grading.readout import read_out
from sandbox.grading.services import start_services
from sandbox.model.verdict import Probe, Ran, Seen
from sandbox.runtime.base import Box, ExecResult, Runtime
from sandbox.runtime.freeze.hold import held
from sandbox.runtime.supplies import Supplies
from sandbox.runtime.tarball import pack

_FOLDER = "/verify"
_PYTHON = ("/usr/bin/python3", "-I", "-B", "-S")
"""Of the image, and nothing but its own library."""
_MARGIN_SECONDS = 30.0
"""That the supervisor has, on a busy machine, to end what takes too long."""
_RECORD_BYTES = 64 << 20
_LOG_CHARACTERS = 1 << 18
_BUSY = "(while :; do :; done) </dev/null >/dev/null 2>&1 &"


def run_job(
    job: Job,
    runtime: Runtime,
    supplies: Supplies,
    now: Callable[[], float],
    ticks: Callable[[], float],
) -> tuple[Seen, tuple[str, ...]]:
    """What was seen, and the paths of the submission that were left out. Raises a Fault."""
    strict = job.task.clock.strict
    with held(job.plan.box, runtime, supplies.scratch, strict=strict, now=now) as hold:
        began = ticks()
        with runtime.create(hold.spec) as box:
            expect = expected(hold.spec, job.plan.still, user=job.plan.user, umask=job.plan.umask)
            bench = _Bench(box, job, expect, age=lambda: ticks() - began)
            try:
                seen, outside = _in_box(bench, supplies)
            except RuntimeFault:
                # Stopped for a limit between two programs: the submission's doing, and no fault.
                limit = "" if box.lost() else box.reached()
                if not limit:
                    raise
                seen, outside = Seen(ran=Ran.REJECTED, detail=limit), ()
    return replace(seen, clock=hold.clock), outside


@dataclass(frozen=True, slots=True)
class _Bench:
    """A box in which something is being verified."""

    box: Box
    job: Job
    expect: Expected
    age: Callable[[], float]
    """Seconds since its clock was started, at most."""


def _in_box(bench: _Bench, supplies: Supplies) -> tuple[Seen, tuple[str, ...]]:
    began_at = bench.job.plan.still.at_ns // 10**9
    lay_out(bench.box, bench.job.task, bench.job.made, seconds=began_at)
    if bench.job.task.verifier.services:
        return _beside_services(bench, supplies), bench.job.made.outside
    _put_tests(bench, supplies)
    return _run(bench, _measure(bench)), bench.job.made.outside


def _beside_services(bench: _Bench, supplies: Supplies) -> Seen:
    """They are the submission's, and run from before the tests are put: what fails then is its doing."""
    probes = _measure(bench)
    if down := start_services(bench.box, bench.job, supplies, _FOLDER):
        return Seen(ran=Ran.CRASHED, detail=down, probes=probes)
    try:
        _put_tests(bench, supplies)
        return _run(bench, probes)
    except VerifierFault as fault:
        if not fault.retry:
            raise
        return Seen(ran=Ran.CRASHED, detail=f"beside the services: {fault}", probes=probes)


def _run(bench: _Bench, probes: tuple[Probe, ...]) -> Seen:
    if bench.job.plan.load:
        _keep_busy(bench.box, bench.job.plan.load)
    began = bench.age()
    done = bench.box.exec(
        [*_PYTHON, f"{_FOLDER}/supervise.py", f"{_FOLDER}/plan.json"],
        seconds=bench.job.task.verifier.seconds + _MARGIN_SECONDS,
        trusted=True,
        output_bytes=_RECORD_BYTES,
    )
    seen = _seen(bench, done, began)
    return replace(seen, probes=(*probes, *seen.probes))


def _put_tests(bench: _Bench, supplies: Supplies) -> None:
    """Only now, and in this box only. They replace what the repository has in their places."""
    box, task = bench.box, bench.job.task
    places = [f"{task.workdir}/{p}" for p in task.verifier.bundle.paths]
    removed = box.exec(["rm", "-rf", "--", *places], seconds=SECONDS, cwd="/")
    if removed.exit_code != 0:
        raise VerifierFault(said("cannot make room for the hidden tests", removed))
    box.put(pack([*restored(bench.job, supplies), *bench.job.tests]), task.workdir)
    box.put(pack(files_of(bench.job, supplies, _FOLDER, raw=bench.expect.partial)), _FOLDER)


def _measure(bench: _Bench) -> tuple[Probe, ...]:
    """Before any of the code under test runs: what is not as it should be is no doing of its."""
    if bench.expect.partial:
        return ()
    found = measured(bench.box, bench.expect, user=bench.job.plan.user, age=bench.age)
    require_stillness(found, bench.expect, elapsed=bench.age())
    return (found,)


def _keep_busy(box: Box, programs: int) -> None:
    """They go on until the box is gone, and take from the checks what is theirs of its processors."""
    done = box.exec(["sh", "-c", _BUSY * programs], seconds=SECONDS, cwd="/")
    if done.exit_code != 0:
        raise VerifierFault(said("cannot load the box", done))


def _seen(bench: _Bench, done: ExecResult, began: float) -> Seen:
    log = done.stderr.decode("utf-8", "backslashreplace")[:_LOG_CHARACTERS]
    told = read_out(done.stdout)
    if not told.probes and told.ended and told.ended.how == "flooded":
        # Our runner does not: what the first record came with was told by the code under test.
        return Seen(ran=Ran.CRASHED, detail=FLOODED, exit_code=told.ended.exit_code, log=log)
    if not told.probes:
        words = log.strip()[-500:] or "nothing"
        code = told.ended.exit_code if told.ended else done.exit_code
        raise VerifierFault(f"the runner did not start (exit {code}); it said: {words}")
    elapsed = bench.age()
    first, *later = told.probes
    require_stillness(first or Probe(), bench.expect, elapsed=elapsed)
    after = later_on(bench.expect)
    moved = [_moved(p, after, elapsed) for p in later]
    ran, detail = how_it_ended(bench.job.task.verifier, done, told, moved=any(moved))
    sound = [p for p, wrong in zip(told.probes, (False, *moved), strict=True) if p and not wrong]
    return Seen(
        ran=ran,
        detail=detail,
        report=told.report,
        observed=told.observed,
        probes=tuple(sound),
        exit_code=told.ended.exit_code if told.ended else done.exit_code,
        log=log,
        seconds=told.seconds or elapsed - began,
    )


def _moved(probe: Probe | None, expect: Expected, elapsed: float) -> bool:
    try:
        require_stillness(probe or Probe(), expect, elapsed=elapsed)
    except VerifierFault:
        return True
    return False
