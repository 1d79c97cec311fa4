"""Files of a box, out of the engine's archives; deeper than those reach, from its storage.

The engine opens files by their whole paths. What is deeper than a path may be long is left out of
its archives without a word; so from some depth on folders are gone through here.
"""

import contextlib
import os
import posixpath
import stat
import tarfile
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import docker.errors
import docker.utils

from sandbox.errors import RuntimeFault
from sandbox.runtime import folders
from sandbox.runtime.docker.container import SOCKET, Container
from sandbox.runtime.docker.engine import faults
from sandbox.runtime.docker.tarstream import BLOCK, RECORD, header, padding, plain

DEEP_BYTES = 3500
"""A path that is longer, with a name at its end, may be longer than the kernel takes: 4096."""


class Reading:
    """`lowers`: the folders below what the box changes."""

    def __init__(self, container: Container, lowers: Sequence[str]) -> None:
        self._container = container
        self._lowers = lowers

    def get(self, path: str) -> Iterator[bytes]:
        """As `Box.get`; not begun until it is asked for its first block."""
        folder, last = posixpath.split(path.rstrip("/"))
        with contextlib.ExitStack() as begun:
            blocks = self._archive(path, begun)
            files = plain(
                blocks,
                "" if last in {".", ".."} else last,
                lambda name: self._archive(f"{folder}/{name}", begun),
                lambda name: self._deep(f"{folder}/{name}", name),
                self._container.dated,
            )
            yield from _told(files, path)

    def _archive(self, path: str, begun: contextlib.ExitStack) -> Iterator[bytes]:
        """`begun` ends it, if it was not read to its end: not when somebody collects garbage."""
        container = self._container
        try:
            with faults(f"read {path}"):
                told, blocks = _begun(container, path)
                begun.callback(blocks.close)
                first = next(blocks, b"")
        except RuntimeFault as e:
            if _no_such_path(e.__cause__) and container.state():
                raise FileNotFoundError(path) from e
            raise
        mode = int(told.get("mode", 0))
        if not any(first[:RECORD]) and not mode & SOCKET:
            raise FileNotFoundError(path)  # it went between the engine's look and its reading
        return _chained(first, blocks)

    def _deep(self, path: str, name: str) -> Iterator[bytes] | None:
        """All of a folder, called `name`; None when the engine can reach what is in it."""
        if len(os.fsencode(path)) < DEEP_BYTES:
            return None
        if ".." in path.split("/") or any(os.path.lexists(f"{at}{path}") for at in self._lowers):
            raise RuntimeFault(f"{path} is too deep to be read", retry=False)
        return self._walk(os.fsencode(path), os.fsencode(name))

    def _walk(self, path: bytes, name: bytes) -> Iterator[bytes]:
        """It is the box's own, for the layers have nothing there; so nothing has to be merged."""
        with self._container.open_upper() as upper:
            at = os.dup(upper)
            try:
                *way, last = [part for part in path.split(b"/") if part]
                for part in way:
                    at = folders.down(at, part)
                prefix = name.rpartition(b"/")[0]
                above = [(prefix, os.fstat(at), [last])]
                while above:
                    prefix, _, left = above[-1]
                    if not left:
                        above.pop()
                        at = folders.up(at, above[-1][1]) if above else at
                        continue
                    one = left.pop()
                    whole = prefix + b"/" + one if prefix else one
                    if (yield from _entry(at, one, whole, self._container.dated)):
                        at = folders.down(at, one)
                        above.append((whole, os.fstat(at), folders.names(at)))
            finally:
                os.close(at)


def _entry(at: int, name: bytes, path: bytes, dated: Callable[[float], int]) -> Any:
    """What a folder has under this name, called `path`. Returns: is it a folder?"""
    try:
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False  # removed while we read: the box may be alive
    info = tarfile.TarInfo(os.fsdecode(path))
    info.mode, info.mtime = stat.S_IMODE(found.st_mode), dated(found.st_mtime)
    info.uid, info.gid = found.st_uid, found.st_gid
    if stat.S_ISDIR(found.st_mode):
        info.type = tarfile.DIRTYPE
        yield header(info)
    elif stat.S_ISLNK(found.st_mode):
        info.type, info.linkname = tarfile.SYMTYPE, os.fsdecode(os.readlink(name, dir_fd=at))
        yield header(info)
    elif stat.S_ISREG(found.st_mode):
        with os.fdopen(os.open(name, folders.FILE, dir_fd=at), "rb") as f:
            left = info.size = os.fstat(f.fileno()).st_size
            yield header(info)
            while left:
                block = f.read(min(left, BLOCK))
                if not block:
                    raise tarfile.ReadError(f"{info.name} became shorter")
                left -= len(block)
                yield block
            yield padding(info.size)
    return stat.S_ISDIR(found.st_mode)


def _begun(container: Container, path: str) -> tuple[dict[str, Any], Generator[bytes, None, None]]:
    """What the engine tells of a path, and its archive: the SDK's method for this lets nobody end it."""
    api: Any = container.engine.api
    url = api._url("/containers/{0}/archive", container.id)  # noqa: SLF001
    where = {"path": os.fsencode(path)}  # names are bytes, not all UTF-8
    answer = api._get(url, params=where, stream=True)  # noqa: SLF001
    api._raise_for_status(answer)  # noqa: SLF001
    told = answer.headers.get("x-docker-container-path-stat")

    def blocks() -> Generator[bytes, None, None]:
        with container.readings.of(answer):
            yield from answer.iter_content(BLOCK)

    return (docker.utils.decode_json_header(told) if told else {}), blocks()


def _told(files: Iterator[bytes], path: str) -> Iterator[bytes]:
    """Them; what goes wrong meanwhile is told as a fault."""
    try:
        with faults(f"read {path}"):
            yield from files
    except tarfile.TarError as e:  # for example a file that shrank while it was read
        raise RuntimeFault(f"cannot read {path}: {e}") from e


def _chained(first: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from blocks


def _no_such_path(error: BaseException | None) -> bool:
    """The engine has a status for a missing path, but not for a path through a file."""
    if isinstance(error, docker.errors.NotFound):
        return True
    words = str(error.explanation) if isinstance(error, docker.errors.APIError) else ""
    return words.endswith("not a directory")
