"""A task's own solution, run once in the agent's box: what it leaves behind is the reference."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sandbox.adapters.harbor.bench import Bench
from sandbox.adapters.harbor.building import Builder, failed, tool_box
from sandbox.adapters.harbor.tools import tools
from sandbox.adapters.harbor.writing import Judging, write_solution, write_task
from sandbox.formats.placerules import submitted_rules
from sandbox.formats.taskfile import load_task
from sandbox.grading.collect import collect
from sandbox.runtime.base import Box, Change

_NOISE = (
    "/solution", "/oracle", "/tests", "/run", "/proc", "/sys", "/dev", "/root/.cache", "/var/cache",
    "/var/lib/apt", "/var/log/lastlog", "/var/log/faillog", "/var/log/wtmp", "/logs/agent",
    "/logs/verifier",
)  # fmt: skip
_TEMPORARY = re.compile(r"/tmp(/(tmp|uv-|pip-|pytest-|stillroom-|npm-|hsperfdata|\.).*)?$")  # noqa: S108 - the box's
"""What programs leave there, and nobody means to."""
_SHOWN = 12
_SHARED = frozenset({"home", "media", "mnt", "opt", "srv"})
"""Whose folders are somebody's, each."""
_SYSTEM = frozenset({"etc", "logs", "usr", "var"})
_LOGS = ("/logs/artifacts",)


def solve(bench: Bench, judging: Judging) -> tuple[Judging, bytes]:
    """How it is judged from now on, and the patch. Raises Refused."""
    task, report, place = bench.task, bench.report, bench.place
    if task.solution is None:
        return judging, b""
    spec = load_task(place.home, task.id)
    depot = bench.depot()
    supplies = depot.supply(spec)
    place.progress(f"solving {task.id}", 0, 1)
    answering = list(tools(bench.pinned.image, bench.packages))
    with tool_box(
        supplies.image, place.runtime, place.store, answering, seeds=(supplies.seed,)
    ) as box:
        builder = Builder(box, task, report, env=task.env, at=task.workdir)
        before = box.stats().processes
        done = builder.do(task.solution)
        if done and done.timed_out:
            report.refused(task.solution.name, failed(done), task.solution.where)
            report.require_none_refused()
        lacks = builder.wanted()
        for line in lacks:
            report.changed(
                "solve-time network", f"not to be had offline: {line}", task.solution.where
            )
        if done and done.exit_code != 0:
            report.changed(task.solution.name, failed(done), task.solution.where)
        if (left := box.stats().processes - before) > 0:
            note = f"it leaves {left} programs running, which no submission brings"
            report.changed("solution", note, task.solution.where)
        changed = list(_changed(box, task.workdir))
        judging = _declared(bench, judging, changed)
        write_task(place.home, task, bench.pinned, judging)
        spec = load_task(place.home, task.id)
        submission = collect(box, spec, bench.depot().supply(spec))
    if submission.rejected:
        report.refused("solution", submission.rejected, task.solution.where)
    lost = [p for p in submission.dropped if not p.startswith(("(", ".git"))]
    if lost:
        shown = ", ".join(lost[:_SHOWN])
        note = f"it leaves what no submission may bring: {shown}"
        report.changed("solution", note, task.solution.where)
    report.require_none_refused()
    tops = {line.split("/")[0] for line in _names(submission.patch)}
    # There, tests are root's: what was made elsewhere they may change, as what was made here.
    rooted = [p for p in judging.submission if p.startswith("/") and p not in _LOGS]
    judging = replace(judging, writable=tuple(sorted({*judging.writable, *tops, *rooted})))
    write_solution(place.home, task, submission.patch)
    write_task(place.home, task, bench.pinned, judging)
    return judging, submission.patch


def _changed(box: Box, workdir: str) -> Iterator[Change]:
    """Outside of the working directory, and no noise."""
    for change in box.changes():
        path = change.path
        if any(path == n or path.startswith(f"{n}/") for n in (*_NOISE, workdir)):
            continue
        if "/__pycache__" in path or change.kind == "deleted" or is_temporary(path):
            continue
        yield change


def _declared(bench: Bench, judging: Judging, changed: Sequence[Change]) -> Judging:
    """With what the solution leaves elsewhere, as far as a submission may bring it."""
    task, report = bench.task, bench.report
    where = task.solution.where if task.solution else ""
    added = {c.path for c in changed if c.kind == "added"}
    tops = [c.path for c in changed if not any(c.path.startswith(f"{a}/") for a in added)]
    tops = [p for p in tops if not task.workdir.startswith(f"{p}/")]
    mine = [p for p in tops if not any(submitted_rules((p,), task.workdir, task.env))]
    outside = [p for p in tops if p not in mine]
    if outside:
        note = f"it changes what no submission may bring: {', '.join(outside[:_SHOWN])}"
        report.changed("solution", note, where)
    known = judging.submission
    whole = dict.fromkeys(own_folder(p, task.workdir, task.env) for p in mine)
    more = [p for p in whole if not any(p == k or p.startswith(f"{k}/") for k in known)]
    if more:
        report.mapped("solution", f"submission.paths: {', '.join(more[:_SHOWN])}", where)
    return replace(judging, submission=(*known, *more))


def is_temporary(path: str) -> bool:
    """Is it left behind by the way, rather than as work?"""
    return bool(_TEMPORARY.match(path))


def own_folder(path: str, workdir: str, env: Mapping[str, str]) -> str:
    """The folder of the task's own that it lies in, as /output is: others may name files otherwise."""
    parts = path.strip("/").split("/")
    depth = 2 if parts[0] in _SHARED else 1
    whole = "/" + "/".join(parts[:depth])
    own = parts[0] not in _SYSTEM and not any(submitted_rules((whole,), workdir, env))
    return whole if own and len(parts) > depth else path


def _names(patch: bytes) -> Iterator[str]:
    for line in patch.splitlines():
        for start in (b"+++ b/", b"diff --git a/"):
            if line.startswith(start):
                name = line.removeprefix(start).decode("utf-8", "replace").split("\t")[0]
                name = name.split(" b/")[0]
                if name and not name.startswith(("/", '"', ".git")):
                    yield name
