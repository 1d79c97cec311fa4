"""A submission's patch, applied to the pinned files in memory: all of what is declared, or nothing.

No program has a part in it, neither here nor in a box: what a patch does is known before there is
one. A box is only given the result.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from sandbox.errors import VerifierFault
from sandbox.formats.digest import Entry
from sandbox.formats.patch import Change, parse
from sandbox.formats.patchapply import outcome
from sandbox.formats.patchlines import PatchError
from sandbox.model.rooted import is_rooted
from sandbox.model.task import TaskSpec
from sandbox.runtime.base import Box, ExecResult
from sandbox.runtime.tarball import pack

SECONDS = 120.0
"""For each program that gets a box ready."""
MOST_TOLD = 1000
"""Paths that are named when they are left out."""
_AT_ONCE = 500
"""Paths on one command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What a submission is, as files: of the declared paths and nothing else."""

    refused: str = ""
    """Why nothing of it is taken."""
    outside: tuple[str, ...] = ()
    """Paths that it names and that are left out."""
    files: tuple[Entry, ...] = ()
    """Created or changed; paths are relative to the working directory, or rooted."""
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    """Of the files, those that are a link now or were one before."""


def applied(task: TaskSpec, base: Iterable[Entry], patch: bytes) -> Applied:
    """base: the pinned files within the submission's paths."""
    pinned = {e.path: e for e in base}
    limit = task.limits.submission_mib << 20
    outside: tuple[str, ...] = ()
    try:
        rooted = bool(task.submission.rooted)
        changes = parse(patch, max_bytes=most_bytes(task, pinned), rooted=rooted)
        mine = [c for c in changes if _is_declared(c, task, pinned)]
        outside = told(_left_out(changes, mine))
        found = outcome(mine, pinned, max_bytes=limit)
    except PatchError as e:
        return Applied(refused=str(e), outside=outside)
    after = {e.path for e in found.files} | (pinned.keys() - set(found.removed))
    if blocked := _in_the_way(after, task):
        return Applied(refused=blocked, outside=outside)
    links = (e.path for e in found.files if e.path in pinned and _became(pinned[e.path], e))
    return Applied(outside=outside, files=found.files, removed=found.removed, replaced=tuple(links))


def most_bytes(task: TaskSpec, pinned: Mapping[str, Entry]) -> int:
    """Of a patch: what it deletes is told in it, too, and bytes take five characters for four."""
    files = (task.limits.submission_mib << 20) + sum(len(e.data) for e in pinned.values())
    return 2 * files + (1 << 20)


def _became(before: Entry, after: Entry) -> bool:
    return (before.kind == "link") != (after.kind == "link")


def _is_declared(change: Change, task: TaskSpec, pinned: Container[str]) -> bool:
    """Raises PatchError for what has one end within and one beyond."""
    names = dict.fromkeys((change.old, change.new))
    beyond = [n for n in names if not task.submission.takes(n, pinned)]
    if beyond and len(beyond) < len(names):
        raise PatchError(change.line, f"it changes what is not declared: {beyond[0]}")
    return not beyond


def _left_out(changes: Sequence[Change], mine: Sequence[Change]) -> list[str]:
    taken = {c.line for c in mine}
    left = (c for c in changes if c.line not in taken)
    return list(dict.fromkeys(name for c in left for name in (c.old, c.new)))


def told(paths: Sequence[str]) -> tuple[str, ...]:
    """The first of them, and how many more there are."""
    more = len(paths) - MOST_TOLD
    return (*paths[:MOST_TOLD], *([f"(and {more} more)"] if more > 0 else []))


def _in_the_way(files: set[str], task: TaskSpec) -> str:
    """A link or a file where a folder of the hidden tests has to be."""
    above = {str(p) for place in task.verifier.bundle.paths for p in PurePosixPath(place).parents}
    found = sorted(above & files)
    return f"the patch puts what is no folder in place of {found[0]}" if found else ""


def lay_out(box: Box, task: TaskSpec, made: Applied, seconds: int) -> None:
    """Put the files into a clean box, in which nothing of the submission ran. Raises a Fault.

    seconds: the files' time, since the epoch: what is built again when a file is newer than before
    has to be.
    """
    # Where an image has an empty folder, nothing of it is told in `pinned`.
    new = (e.path for e in made.files if is_rooted(e.path))
    gone = (*made.removed, *made.replaced, *new)
    _do(box, task, ["rm", "-rf", "--"], gone)
    inner = [e for e in made.files if not is_rooted(e.path)]
    rooted = [replace(e, path=e.path.lstrip("/")) for e in made.files if is_rooted(e.path)]
    for folder, files in ((task.workdir, inner), ("/", rooted)):
        if files:
            box.put(pack(files, seconds=seconds), folder)
    _do(box, task, ["rmdir", "--ignore-fail-on-non-empty", "--"], _emptied(made))


def _emptied(made: Applied) -> list[str]:
    """Folders in which there may be nothing any more, the lowest first: git keeps no empty ones.

    Of the working directory only: elsewhere they are the image's, and somebody may need them.
    """
    full = {str(p) for e in made.files for p in PurePosixPath(e.path).parents}
    gone = (PurePosixPath(name) for name in made.removed if not is_rooted(name))
    above = {folder for name in gone for folder in name.parents}
    found = sorted(above - {PurePosixPath()}, key=lambda p: (-len(p.parts), p))
    return [str(p) for p in found if str(p) not in full]


def _do(box: Box, task: TaskSpec, command: Sequence[str], paths: Sequence[str]) -> None:
    for at in range(0, len(paths), _AT_ONCE):
        places = [place(task, path) for path in paths[at : at + _AT_ONCE]]
        done = box.exec([*command, *places], seconds=SECONDS, cwd="/")
        if done.exit_code != 0:
            raise VerifierFault(said("cannot lay out the submission", done))


def place(task: TaskSpec, path: str) -> str:
    """Where in a box a file of a submission is."""
    return path if is_rooted(path) else f"{task.workdir}/{path}"


def said(what: str, done: ExecResult) -> str:
    """What went wrong, in the words of the program that did."""
    words = done.stderr.decode("utf-8", "backslashreplace").strip()
    return f"{what}: {words[:500] or f'exit code {done.exit_code}'}"
