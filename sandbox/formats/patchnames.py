"""Names of files in patches: how they are quoted, and which of them no submission may have. Pure."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath

MOST_NAME_BYTES = 1024
MOST_DEPTH = 64
_MOST_PART = 255
"""Bytes of one part of a name."""
_EITHER = re.compile(r"[/\\]")
"""What parts names here, and on other systems."""
_IGNORED = dict.fromkeys(
    [0x200C, 0x200D, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
"""What HFS+ passes over when it compares names."""
_ESCAPES = {
    ord("a"): 7, ord("b"): 8, ord("t"): 9, ord("n"): 10, ord("v"): 11, ord("f"): 12,
    ord("r"): 13, ord('"'): 34, ord("\\"): 92,
}  # fmt: skip
_UNESCAPES = {value: key for key, value in _ESCAPES.items()}
_ESCAPED = re.compile(rb"\\([abtnvfr\"\\]|[0-3][0-7][0-7])")


def text(raw: bytes) -> str:
    """Names that are not UTF-8 have surrogates."""
    return raw.decode("utf-8", "surrogateescape")


def raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def quoted(name: bytes) -> bytes:
    """As git writes it: in quotes if it has to be."""
    if all(32 <= c < 127 and c not in b'"\\' for c in name):
        return name
    return b'"%s"' % b"".join(map(_escaped, name))


def _escaped(c: int) -> bytes:
    if c in _UNESCAPES:
        return b"\\%c" % _UNESCAPES[c]
    return b"%c" % c if 32 <= c < 127 else b"\\%03o" % c


def unquoted(line: bytes) -> tuple[bytes, bytes]:
    """A line that begins with a name in quotes: the name, and what follows it.

    Raises ValueError.
    """
    end = _closing(line)
    inner = line[1:end]
    if b"\\" in _ESCAPED.sub(b"", inner):
        raise ValueError("a name in quotes has an escape that is not known")
    return _ESCAPED.sub(_unescaped, inner), line[end + 1 :]


def _closing(line: bytes) -> int:
    at = 1
    while True:
        end = line.find(b'"', at)
        if end < 0:
            raise ValueError("a name in quotes does not end")
        before = line[1:end]
        if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
            return end
        at = end + 1


def _unescaped(found: re.Match[bytes]) -> bytes:
    said = found[1]
    return bytes([int(said, 8) if len(said) == 3 else _ESCAPES[said[0]]])


def unsafe(name: str, *, rooted: bool = False) -> str:
    """Why no file of a submission may have this name, whatever is declared; empty if it may.

    rooted: it may be one from the root of the box, with one `/` before it.
    """
    if rooted:
        name = name.removeprefix("/")
    parts = name.split("/")
    either = _EITHER.split(name)
    reasons = {
        "is no name": not name,
        "has a NUL in it": "\0" in name,
        "is absolute": name.startswith("/"),
        "leads elsewhere": ".." in either or any(part in ("", ".") for part in parts),
        "is too long": len(raw(name)) > MOST_NAME_BYTES
        or len(parts) > MOST_DEPTH
        or _longest(parts) > _MOST_PART,
        "is git's own": any(map(is_git, either)),
    }
    return next((why for why, holds in reasons.items() if holds), "")


def _longest(parts: Iterable[str]) -> int:
    return max(len(raw(part)) for part in parts)


def is_git(part: str) -> bool:
    """Is it `.git` to some file system?

    In capitals, with characters that HFS+ passes over, as NTFS shortens it, or with dots, spaces or
    a stream behind it.
    """
    plain = part.translate(_IGNORED).casefold().split(":", 1)[0].rstrip(". ")
    return plain in (".git", "git~1")


def leads_out(name: str, target: bytes) -> bool:
    """Does a link of this name lead out of the working directory, or may it?

    What climbs has to climb first: `a/..` is elsewhere when `a` is a link itself. Of a name from
    the root of the box, every link does.
    """
    said = text(target)
    if (
        name.startswith("/")
        or not said
        or "\0" in said
        or said.startswith("/")
        or len(target) > MOST_NAME_BYTES
    ):
        return True
    parts = [p for p in said.split("/") if p not in ("", ".")]
    climbs = 0
    while climbs < len(parts) and parts[climbs] == "..":
        climbs += 1
    if ".." in parts[climbs:] or climbs > len(PurePosixPath(name).parts) - 1:
        return True
    return any(map(is_git, parts))


def above(name: str) -> Iterator[str]:
    """Its folders, the lowest first."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def same(name: str) -> str:
    """Two names with the same of this are one file where case or normal form makes no difference."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def clashing(new: Iterable[str], there: Iterable[str]) -> dict[str, str]:
    """Of the new names, those that are another one's, or whose folder is, but for case or normal form.

    there: the names that are there beside them, or among them. Name → what it clashes with.
    """
    fresh = sorted(set(new))
    known: dict[str, set[str]] = {}
    for name in (*there, *fresh):
        for one in (name, *above(name)):
            known.setdefault(same(one), set()).add(one)
    return {
        name: min(others)
        for name in fresh
        for one in (name, *above(name))
        if (others := known[same(one)] - {one})
    }


def swapped(new: Collection[str], there: Collection[str]) -> dict[str, str]:
    """Of the new names, those that are a folder elsewhere, or lie below what is a file elsewhere.

    Name → that folder or file.
    """
    files = {*new, *there}
    folders = {folder for name in files for folder in above(name)}
    found = {name: name for name in new if name in folders}
    below = ((name, folder) for name in new for folder in above(name) if folder in files)
    return found | dict(below)
