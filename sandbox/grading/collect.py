"""What an agent left behind, as a patch of the declared paths and nothing else.

The agent's processes are dead by now. Its files are read as a stream, in memory; its git, its
configuration and its tools take no part, and no program of ours is run on them either.
"""

import tarfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from functools import cache, partial
from pathlib import PurePosixPath

from sandbox.formats.digest import Entry
from sandbox.formats.patch import MOST_FILES
from sandbox.formats.patchnames import above, clashing, is_git, leads_out, swapped, unsafe
from sandbox.formats.patchwrite import make_patch
from sandbox.grading.apply import most_bytes, place, told
from sandbox.model.record import Submission
from sandbox.model.rooted import is_rooted
from sandbox.model.task import WHOLE, TaskSpec
from sandbox.runtime.base import Box
from sandbox.runtime.supplies import Supplies
from sandbox.runtime.tarball import TooLarge, begins_with_link, read

SECONDS = 120.0
"""For the reading, whatever there is."""


class _TooSlow(Exception):
    """The stream takes longer than was allowed."""


def collect(
    box: Box,
    task: TaskSpec,
    supplies: Supplies,
    *,
    ticks: Callable[[], float] = time.monotonic,
) -> Submission:
    """Stops the box, then reads it. What cannot be a submission is rejected, not a fault."""
    box.stop()
    limit = task.limits.submission_mib << 20
    pinned = {e.path: e for e in supplies.base}
    allowed = limit + sum(len(e.data) for e in supplies.base)
    until = ticks() + SECONDS
    try:
        found, links = _found(box, task, pinned, allowed, lambda: ticks() > until)
    except TooLarge:
        return _rejected(
            task,
            f"the declared paths hold more than {allowed >> 20} MiB or {MOST_FILES} files",
        )
    except _TooSlow:
        return _rejected(task, f"the declared paths cannot be read within {SECONDS:g} s")
    except tarfile.TarError as e:
        return _rejected(task, f"the declared paths cannot be read: {e}")
    kept, dropped = sift(task, pinned, found)
    size = sum(len(e.data) for path, e in kept.items() if pinned.get(path) != e)
    if size > limit:
        return _rejected(task, f"{size >> 20} MiB changed, {task.limits.submission_mib} allowed")
    patch = make_patch(pinned.values(), kept.values())
    if len(patch) > most_bytes(task, pinned):
        return _rejected(task, f"a patch of it would have {len(patch) >> 20} MiB")
    return Submission(task=task.id, patch=patch, dropped=told(sorted({*dropped, *links})))


def sift(
    task: TaskSpec, pinned: Mapping[str, Entry], found: Mapping[str, Entry]
) -> tuple[dict[str, Entry], list[str]]:
    """The declared paths as the submission has them, and what is left out of it.

    What is left out is as it was pinned, there or not. What is not covered is no part of either.
    """
    takes = {path: e for path, e in found.items() if task.submission.takes(path, pinned)}
    kept = dict(takes)
    kept |= {path: e for path, e in pinned.items() if not task.submission.takes(path, pinned)}
    # Of what is reserved; what is only excluded is of no interest, as caches are.
    dropped = {
        path
        for path in found.keys() | pinned.keys()
        if path not in takes and task.submission.covers(path)
        if found.get(path) != pinned.get(path) and not task.submission.takes(path, pinned)
    }
    for path, e in takes.items():
        bad = bool(unsafe(path, rooted=True)) or (e.kind == "link" and leads_out(path, e.data))
        if bad and pinned.get(path) != e:
            _put_back(path, pinned, kept)
            dropped.add(_repository(path))
    for path in (wrong := _misplaced(pinned, kept)):
        del kept[path]
    dropped |= wrong
    return kept, sorted(dropped)


def _put_back(path: str, pinned: Mapping[str, Entry], kept: dict[str, Entry]) -> None:
    del kept[path]
    if path in pinned:
        kept[path] = pinned[path]


def _misplaced(pinned: Mapping[str, Entry], kept: Mapping[str, Entry]) -> set[str]:
    """New names that would change a file for a folder, or are another's on some file system."""
    new = kept.keys() - pinned.keys()
    if not new:
        return set()
    return {*swapped(new, pinned.keys()), *clashing(new, kept.keys() - new)}


def _repository(path: str) -> str:
    """Of what is in somebody's repository, the repository: who lists its files says nothing."""
    inner = (folder for folder in above(path) if is_git(folder.rpartition("/")[2]))
    return min(inner, key=len, default=path)


def _found(
    box: Box,
    task: TaskSpec,
    pinned: Mapping[str, Entry],
    max_bytes: int,
    late: Callable[[], bool],
) -> tuple[dict[str, Entry], set[str]]:
    """What is at the declared paths, and links on the way to them: behind one, all is as pinned."""
    found: dict[str, Entry] = {}
    links: set[str] = set()
    is_link = cache(partial(_is_link, box, late))
    for path in task.submission.paths:
        if link := _link_on_the_way(is_link, place(task, path)):
            links.add(link)
            found |= {n: e for n, e in pinned.items() if _is_below(n, path)}
        else:
            found |= {e.path: e for e in _files(box, task, path, max_bytes, late)}
    return found, links


def _is_below(name: str, path: str) -> bool:
    whole = path == WHOLE and not is_rooted(name)
    return whole or name == path or name.startswith(f"{path}/")


def _link_on_the_way(is_link: Callable[[str], bool], where: str) -> str:
    """What the agent put in place of a folder above a declared path; empty if it is no link.

    It may lead to the kernel's own files, which are another machine's and cannot all be read.
    """
    for folder in filter(None, reversed(list(above(where)))):
        try:
            if is_link(folder):
                return folder
        except FileNotFoundError:
            return ""
    return ""


def _is_link(box: Box, late: Callable[[], bool], folder: str) -> bool:
    """Raises FileNotFoundError. Closed at once: an engine may keep the box to itself meanwhile."""
    with closing(_timed(box.get(folder), late)) as stream:
        return begins_with_link(stream)


def _files(
    box: Box, task: TaskSpec, path: str, max_bytes: int, late: Callable[[], bool]
) -> Iterator[Entry]:
    whole = path == WHOLE
    try:
        stream = box.get(task.workdir if whole else place(task, path))
    except FileNotFoundError:
        return
    parent = str(PurePosixPath(path).parent)
    prefix = "" if parent == "." else f"{parent.rstrip('/')}/"
    for e in read(_timed(stream, late), max_bytes=max_bytes, max_files=MOST_FILES):
        inner = e.path.partition("/")[2] if whole else e.path
        if inner:
            yield Entry(prefix + inner, e.kind, e.data)


def _timed(stream: Iterator[bytes], late: Callable[[], bool]) -> Generator[bytes, None, None]:
    for block in stream:
        if late():
            raise _TooSlow
        yield block


def _rejected(task: TaskSpec, why: str) -> Submission:
    return Submission(task=task.id, patch=b"", rejected=why)
