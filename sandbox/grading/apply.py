"""A submission's patch, applied to the pinned tree: all of what is declared, or nothing."""

import json
from pathlib import PurePosixPath

from sandbox.model.task import TaskSpec
from sandbox.runtime.base import Box, ExecResult

SECONDS = 120.0
"""For each program that gets a box ready."""
_LIST_BYTES = 16 << 20
"""Names of 100,000 files, which is what a submission may have."""
_MOST_OUTSIDE, _OUTSIDE_BYTES = 1000, 1 << 17
"""Paths that are left out are named on a command line, which holds only so much."""


def apply_patch(box: Box, task: TaskSpec, patch: bytes) -> tuple[str, tuple[str, ...]]:
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
    done = box.exec(_git("apply", "--whitespace=nowarn", *leave, "-"), input=patch, seconds=SECONDS)
    if done.exit_code != 0:
        return said("the patch does not apply", done), outside
    return _strays(box, task) or _in_the_way(box, task), outside


def _named(box: Box, patch: bytes) -> tuple[str, list[str]]:
    """The files a patch names: all of them, or why they cannot be had."""
    listed = box.exec(
        _git("apply", "--numstat", "-z", "-"),
        input=patch,
        seconds=SECONDS,
        output_bytes=_LIST_BYTES,
    )
    if listed.exit_code != 0:
        return said("the patch cannot be read", listed), []
    if listed.truncated:
        return "the patch names more files than can be looked at", []
    paths = [line.split(b"\t", 2)[2] for line in listed.stdout.split(b"\0") if b"\t" in line]
    return "", [p.decode("utf-8", "surrogateescape") for p in paths]


def _strays(box: Box, task: TaskSpec) -> str:
    """A rename has two ends, and the list of a patch's files names one."""
    touched = box.exec(
        _git("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"),
        seconds=SECONDS,
        output_bytes=_LIST_BYTES,
    )
    if touched.exit_code != 0 or touched.truncated:
        return said("what the patch changes cannot be told", touched)
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
        ["find", *folders, "-maxdepth", "0", "!", "-type", "d"], seconds=SECONDS, cwd="/"
    )
    names = found.stdout.decode("utf-8", "backslashreplace").strip()
    return f"the patch puts what is no folder in place of {names}" if names else ""


def _git(*command: str) -> list[str]:
    return ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", *command]


def _literal(path: str) -> str:
    """The pattern that matches this path only."""
    return "".join(f"\\{c}" if c in "*?[]\\" else c for c in path)


def said(what: str, done: ExecResult) -> str:
    """What went wrong, in the words of the program that did."""
    words = done.stderr.decode("utf-8", "backslashreplace").strip()
    return f"{what}: {words[:500] or f'exit code {done.exit_code}'}"
