"""What an image has where a task's submission may change it, outside of the working directory.

Read from the unpacked layers as an overlay would show them; no link is ever followed.
"""

import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from sandbox.errors import SpecError
from sandbox.formats.digest import Entry
from sandbox.formats.yamlfile import open_document
from sandbox.model.rooted import meet, never, places
from sandbox.model.task import TaskSpec
from sandbox.runtime import upper
from sandbox.runtime.spec import ENVIRONMENT, Image

_MOST_BYTES, _MOST_FILES = 256 << 20, 100_000
_LIBRARIES = frozenset({"site-packages", "dist-packages", "node_modules", "pyvenv.cfg"})
_ELSEWHERE = "declare a place of its own, as /srv/out"


class _Unfit(Exception):
    """A path that no task may declare with this image, and why."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(why)
        self.path = path


def rooted_files(image: Image, task: TaskSpec) -> tuple[Entry, ...]:
    """The image's files at and below the rooted paths of a submission, by their rooted names.

    Raises SpecError where one of them is, in this image, a place that a verdict is made with.
    """
    paths = task.submission.rooted
    if not paths:
        return ()
    try:
        _require_apart(image, paths)
        found = {e.path: e for e in _files(image.lowers, paths)}
    except _Unfit as e:
        document = open_document(Path(task.home) / "task_specs" / task.id / "task.yaml")
        loc = ("submission", "paths", task.submission.paths.index(e.path))
        raise SpecError(str(e), where=document.where(loc), hint=_ELSEWHERE) from None
    return tuple(sorted(found.values()))


def _require_apart(image: Image, paths: Sequence[str]) -> None:
    for name, place in places({**ENVIRONMENT, **image.env}):
        for path in paths:
            if meet(path, place):
                raise _Unfit(
                    path, f"`{path}` is not apart from {name} of image `{image.name}`: {place}"
                )
    for link, target in _system_links(image.lowers):
        for path in paths:
            if target == path or target.startswith(f"{path}/"):
                raise _Unfit(path, f"in image `{image.name}` the link {link} leads into `{path}`")


def _system_links(lowers: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Links among what a verdict is made with, and where each leads: as it says, not further."""
    for lower in lowers:
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            for entry in _inside(f"{lower}{folder}/"):
                path = f"{folder}/{entry.name}"
                if entry.is_symlink() and never(path):
                    said = os.readlink(entry.path)  # noqa: PTH115
                    whole = said if said.startswith("/") else f"{folder}/{said}"
                    yield path, "/" + posixpath.normpath(whole).lstrip("/")
                elif entry.is_dir(follow_symlinks=False) and never(path):
                    waiting.append(path)


def _inside(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def _files(lowers: Iterable[Path], paths: Iterable[str]) -> Iterator[Entry]:
    left, room = _MOST_FILES, _MOST_BYTES
    tops = tuple(os.fsencode(lower) for lower in lowers)
    for path in paths:
        for entry in _below(tops, path):
            left, room = left - 1, room - len(entry.data)
            if left < 0 or room < 0:
                most = f"{_MOST_BYTES >> 20} MiB or {_MOST_FILES} files"
                raise _Unfit(path, f"the image has more than {most} at `{path}`")
            yield entry


def _below(tops: tuple[bytes, ...], path: str) -> Iterator[Entry]:
    """The file of this rooted path, or all below it."""
    *way, last = os.fsencode(path).strip(b"/").split(b"/")
    for part in way:
        found, tops = upper.beneath(tops, part)
        if found is None:
            return
        if not stat.S_ISDIR(found.st_mode):
            raise _Unfit(path, f"in the image `{path}` lies below what is no folder")
    waiting = [(tops, path.rpartition("/")[0], last)]
    while waiting:
        lowers, above, name = waiting.pop()
        found, merged = upper.beneath(lowers, name)
        whole = f"{above}/{os.fsdecode(name)}"
        if found is None:
            continue
        if _is_library(whole):
            raise _Unfit(path, f"in the image `{path}` has libraries: {whole}")
        if stat.S_ISDIR(found.st_mode):
            names = {os.fsencode(n) for folder in merged for n in os.listdir(folder)}  # noqa: PTH208
            waiting += [(merged, whole, n) for n in sorted(names)]
            continue
        if stat.S_ISLNK(found.st_mode) and whole == path:
            raise _Unfit(path, f"in the image `{path}` is a link")
        if entry := _entry(lowers, name, whole, found):
            yield entry


def _is_library(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name in _LIBRARIES or name.endswith(".so") or ".so." in name


def _entry(
    lowers: tuple[bytes, ...], name: bytes, path: str, found: os.stat_result
) -> Entry | None:
    """Of the topmost layer that has it, which is the one that was found."""
    place = next(p for lower in lowers if os.path.lexists(p := lower + b"/" + name))
    if stat.S_ISLNK(found.st_mode):
        return Entry(path, "link", os.readlink(place))  # noqa: PTH115
    if not stat.S_ISREG(found.st_mode):
        return None
    kind: Literal["exec", "file"] = "exec" if found.st_mode & 0o100 else "file"
    return Entry(path, kind, Path(os.fsdecode(place)).read_bytes())
