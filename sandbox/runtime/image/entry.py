"""One file of an image, in memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["file", "folder", "symlink", "hardlink"]
NEWEST = 1 << 33
"""A time that says: as new as the image allows."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Every owner is root; a layer does not say who."""

    path: str
    """From the image's root, without a leading slash."""
    kind: Kind
    mode: int = 0o644
    mtime: int = NEWEST
    data: bytes = b""
    """A file's."""
    target: str = ""
    """A symlink's text, or the path a hard link shares."""


def folder(path: str, mode: int = 0o755) -> Entry:
    return Entry(path, "folder", mode)


def symlink(path: str, target: str) -> Entry:
    return Entry(path, "symlink", 0o777, target=target)


def with_parents(entries: Iterable[Entry]) -> dict[str, Entry]:
    """By path; the later of two at the same place wins; every folder has an entry."""
    found = {e.path: e for e in entries}
    for path in list(found):
        above = path
        while above := above.rpartition("/")[0]:
            if above in found:
                break
            found[above] = folder(above)
    return found
