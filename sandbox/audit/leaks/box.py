"""Looking through the box of an agent: every file, every git object, its environment."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sandbox.audit.leaks.needles import Needles, found_in
from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box, ExecResult
from sandbox.runtime.tarball import read

_SECONDS = 120.0
_OBJECT_BYTES = 1 << 30
_NOT_FILES = ("proc", "sys", "dev")
_TOP_BYTES, _TOP_FILES = 2 << 30, 10**6


@dataclass(frozen=True, slots=True)
class Leak:
    what: Literal["solution", "history", "dist"]
    said: str


def leaks(box: Box, wanted: Needles, project: str) -> Iterator[Leak]:
    """project: name of the distribution that the task is about. Raises RuntimeFault."""
    dist = _dist_pattern(project)
    for path, data in files_of(box):
        yield from (Leak("solution", said) for said in found_in(path, data, wanted))
        if dist.search(path):
            yield Leak("dist", f"{path} is of {project} itself")
    objects = run(box, "git", "cat-file", "--batch-all-objects", "--batch").stdout
    yield from (Leak("solution", said) for said in found_in("git objects", objects, wanted))
    look = "env; cat /proc/1/environ /proc/*/cmdline 2>/dev/null; true"
    environment = run(box, "sh", "-c", look).stdout
    yield from (Leak("solution", said) for said in found_in("environment", environment, wanted))
    if more := unreachable(box):
        yield Leak("history", f"{len(more)} git objects beyond HEAD, first {min(more)}")


def files_of(box: Box) -> Iterator[tuple[str, bytes]]:
    """Every file of the box; /proc, /sys and /dev left out."""
    for top in run(box, "ls", "-1A", "/").stdout.decode("utf-8", "surrogateescape").split("\n"):
        if top and top not in _NOT_FILES:
            for entry in read(box.get(f"/{top}"), max_bytes=_TOP_BYTES, max_files=_TOP_FILES):
                yield f"/{entry.path}", entry.data


def unreachable(box: Box) -> set[str]:
    """Objects that the repository has, less those that HEAD leads to."""
    listed = run(box, "git", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    reached = run(box, "git", "rev-list", "--objects", "HEAD")
    there = set(listed.stdout.decode().split())
    return there - {
        line.split(" ")[0] for line in reached.stdout.decode("utf-8", "replace").split("\n")
    }


def run(box: Box, *program: str) -> ExecResult:
    done = box.exec(list(program), seconds=_SECONDS, output_bytes=_OBJECT_BYTES)
    if done.exit_code != 0:
        words = done.stderr.decode("utf-8", "replace")[:200]
        raise RuntimeFault(f"cannot look through the box: {' '.join(program[:3])}: {words}")
    return done


def _dist_pattern(project: str) -> re.Pattern[str]:
    """Its metadata or an archive of it, however the name is written."""
    name = re.sub(r"[-_.]+", "[-_.]+", project)
    return re.compile(
        rf"(?i)(^|/){name}-[0-9][^/]*(\.dist-info/METADATA|\.whl|\.tar\.gz|\.zip|\.egg(-info)?(/.*)?)$"
    )
