"""What things are, by content: canonical JSON, and trees of files."""

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sandbox.errors import SpecError
from sandbox.model.task import Digest


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A file of a tree. Owners and times are no part of what it is."""

    path: str
    kind: Literal["file", "exec", "link"]
    data: bytes
    """A link's target, or a file's content."""


def canonical(data: Any) -> bytes:
    """The one way to write `data` as JSON: sorted keys, no spaces, UTF-8."""
    text = json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode("utf-8", "surrogateescape")


def digest_of(data: Any) -> Digest:
    return Digest("sha256:" + hashlib.sha256(canonical(data)).hexdigest())


def tree_digest(entries: Iterable[Entry]) -> Digest:
    """Independent of order; bytecode caches, which installing makes, do not count."""
    lines = [
        [e.path, e.kind, hashlib.sha256(e.data).hexdigest()]
        for e in sorted(entries)
        if "__pycache__" not in e.path.split("/")
    ]
    return digest_of(lines)


def folder_entries(folder: Path) -> Iterator[Entry]:
    """Every file below `folder`. Raises SpecError for what is neither file nor link."""
    for top, folders, files in os.walk(folder):
        folders.sort()
        links = [f for f in folders if (Path(top) / f).is_symlink()]
        for name in sorted(files + links):
            path = Path(top) / name
            inner = path.relative_to(folder)
            if "__pycache__" not in inner.parts:
                yield _entry(path, str(inner))
        folders[:] = [f for f in folders if f not in links]


def _entry(path: Path, name: str) -> Entry:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return Entry(name, "link", os.fsencode(path.readlink()))
    if not stat.S_ISREG(mode):
        raise SpecError("neither a file nor a link", where=str(path))
    return Entry(name, "exec" if mode & 0o100 else "file", path.read_bytes())
