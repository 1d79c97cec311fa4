"""Patches as values: git's diffs and plain unified ones, read strictly. Pure: no file is looked at.

What a patch of this kind means must not depend on who reads it. So nothing is guessed: whatever is
not just as git writes it is refused, with its line. Only text between the changes is passed over,
as it is by git: that is where commit messages stand.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sandbox.formats.gitbinary import Binary, well_formed
from sandbox.formats.patchlines import PatchError, Reader
from sandbox.formats.patchnames import text, unquoted, unsafe

Verb = Literal["change", "create", "delete", "rename", "copy"]
MOST_FILES = 100_000
_MOST_LINES = 4_000_000
"""Of all hunks: each takes some time and memory, however short it is."""
_START = re.compile(rb"^(?:diff --git |--- |@@ -)", re.MULTILINE)
_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*")
_INDEX = re.compile(rb"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{6}))?")
_PACKED = re.compile(rb"(literal|delta) (\d{1,12})")
_MODES = ("100644", "100755", "120000")
_DEVICES = {"02": "a device", "06": "a device", "01": "a pipe", "14": "a socket", "04": "a folder"}
_HEADERS = {
    b"old mode ": "old mode", b"new mode ": "new mode", b"deleted file mode ": "deleted",
    b"new file mode ": "created", b"copy from ": "copy from", b"copy to ": "copy to",
    b"rename from ": "rename from", b"rename to ": "rename to", b"rename old ": "rename from",
    b"rename new ": "rename to", b"similarity index ": "similarity",
    b"dissimilarity index ": "dissimilarity", b"index ": "index",
}  # fmt: skip
_CHANGES = ({"old mode", "new mode"}, {"deleted"}, {"created"}, {"copy from", "copy to"},
            {"rename from", "rename to"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hunk:
    line: int
    """Of the patch."""
    start: int
    """Lines of the file before it, as it says."""
    before: bytes
    after: bytes
    first: bool
    """Has it to be where the file begins?"""
    last: bool
    """Has it to be where the file ends?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a patch does to one file."""

    line: int
    """Of the patch."""
    verb: Verb
    old: str
    """Where the content comes from; of a file that is created, its own name."""
    new: str
    """The file that is there afterwards; of a deleted one, its own name."""
    old_mode: str = ""
    new_mode: str = ""
    """Empty: as it was."""
    hunks: tuple[Hunk, ...] = ()
    binary: Binary | None = None
    blobs: tuple[str, str] = ("", "")
    """git's names of the contents before and after, where they are told in full."""


def parse(data: bytes, *, max_bytes: int, rooted: bool = False) -> tuple[Change, ...]:
    """Raises PatchError, and nothing else.

    rooted: names may be of the box outside of the working directory: with `/` before them, as in
    `a//etc/app.conf`. No other name begins so.
    """
    if len(data) > max_bytes:
        raise PatchError(1, f"the patch has {len(data)} bytes, {max_bytes} are allowed")
    reader = Reader(data, lines=_MOST_LINES)
    found: list[Change] = []
    while reader.skip_to(_START):
        if len(found) == MOST_FILES:
            raise PatchError(reader.number, f"the patch changes more than {MOST_FILES} files")
        if reader.starts(b"diff --git "):
            found.append(_git_change(reader))
        elif reader.starts(b"@@ "):
            if _HUNK.fullmatch(reader.peek() or b""):
                raise PatchError(reader.number, "these lines are of no file")
            reader.next()
        elif _is_plain(reader):
            found.append(_plain_change(reader))
        else:
            reader.next()
    if not found and data.strip():
        raise PatchError(1, "there is no change in it")
    _require_single(found)
    if not rooted:
        _require_relative(found)
    return tuple(found)


def _require_relative(found: Iterable[Change]) -> None:
    for c in found:
        for name in (c.old, c.new):
            if name.startswith("/"):
                raise PatchError(c.line, f"the name {name[:200]!r} is absolute")


def _require_single(found: list[Change]) -> None:
    """Each name has one fate. What is deleted may be created again: so git changes a file's type."""
    made: dict[str, int] = {}
    gone: dict[str, int] = {}
    for c in found:
        for names, name, counts in (
            (gone, c.old, c.verb in ("change", "delete", "rename")),
            (made, c.new, c.verb != "delete"),
        ):
            if counts and names.setdefault(name, c.line) != c.line:
                raise PatchError(c.line, f"{name!r} is changed in line {names[name]} already")


def _is_plain(reader: Reader) -> bool:
    first, second, third = reader.peek(0), reader.peek(1), reader.peek(2)
    return bool(first and second and third) and second[:4] == b"+++ " and third[:4] == b"@@ -"  # type: ignore[index]


def _plain_change(reader: Reader) -> Change:
    line = reader.number
    old, new = _side(reader, b"--- "), _side(reader, b"+++ ")
    hunks = _hunks(reader)
    if old is None and new is None:
        raise PatchError(line, "it changes no file")
    if old is not None and new is not None and old != new:
        raise PatchError(line, f"{old!r} and {new!r} are two files")
    verb: Verb = "create" if old is None else "delete" if new is None else "change"
    _require_whole(verb, hunks, line)
    name = old or new or ""
    return Change(line=line, verb=verb, old=name, new=name, hunks=hunks)


def _git_change(reader: Reader) -> Change:
    line = reader.number
    known = _both(reader.next()[11:], line)
    said = _headers(reader)
    verb = _verb(said, line)
    blobs, mode = _blobs(said, line)
    sides = None
    hunks: tuple[Hunk, ...] = ()
    binary = None
    if reader.starts(b"--- "):
        sides = _side(reader, b"--- "), _side(reader, b"+++ ")
        hunks = _hunks(reader)
    elif reader.peek() == b"GIT binary patch":
        binary = _binary(reader)
    elif reader.starts(b"Binary files "):
        raise PatchError(reader.number, "a binary file is changed, and not told to what")
    old, new = _names(verb, said, known, sides, line)
    _require_whole(verb, hunks, line)
    if verb == "change" and not (hunks or binary or "new mode" in said):
        raise PatchError(line, f"nothing of {new!r} is changed")
    whole = all(len(blob) == 40 for blob in blobs)
    if binary and not whole:
        raise PatchError(line, "a binary change needs its whole index line")
    return Change(
        line=line,
        verb=verb,
        old=old,
        new=new,
        old_mode=said.get("old mode") or said.get("deleted") or mode,
        new_mode=said.get("new mode") or said.get("created") or "",
        hunks=hunks,
        binary=binary,
        blobs=blobs if whole else ("", ""),
    )


def _headers(reader: Reader) -> dict[str, str]:
    """The lines between `diff --git` and the content."""
    said: dict[str, str] = {}
    while (found := reader.peek()) is not None:
        start = next((h for h in _HEADERS if found.startswith(h)), None)
        if start is None:
            break
        key, line = _HEADERS[start], reader.number
        if key in said:
            raise PatchError(line, f"`{key}` is told twice")
        value = reader.next()[len(start) :]
        if key in ("old mode", "new mode", "deleted", "created"):
            said[key] = _mode(text(value), line)
        elif " " in key:
            said[key] = _named(value, line, prefix=False)
        else:
            said[key] = text(value)
    return said


def _verb(said: dict[str, str], line: int) -> Verb:
    for pair in _CHANGES:
        if len(pair & said.keys()) == 1 and len(pair) == 2:
            raise PatchError(line, f"`{min(pair - said.keys())}` is missing")
    verbs: dict[str, Verb] = {
        "deleted": "delete", "created": "create", "copy to": "copy", "rename to": "rename",
    }  # fmt: skip
    found = [verb for key, verb in verbs.items() if key in said]
    if len(found) > 1 or (found and found[0] in ("delete", "create") and "new mode" in said):
        raise PatchError(line, f"a file is not {' and '.join(found)} at once")
    return found[0] if found else "change"


def _mode(said: str, line: int) -> str:
    if said in _MODES:
        return said
    if said == "160000":
        raise PatchError(line, "a submodule is no part of a submission")
    kind = _DEVICES.get(said[:2] if len(said) == 6 else "")
    if kind:
        raise PatchError(line, f"{kind} is no part of a submission (mode {said})")
    raise PatchError(line, f"{said[:20]!r} is no mode that a file can have")


def _blobs(said: dict[str, str], line: int) -> tuple[tuple[str, str], str]:
    """What the index line tells: the contents' names, and the mode."""
    if "index" not in said:
        return ("", ""), ""
    found = _INDEX.fullmatch(said["index"].encode("utf-8", "surrogateescape"))
    if not found:  # git passes over it as well: people and models make them up
        return ("", ""), ""
    return (text(found[1]), text(found[2])), _mode(text(found[3]), line) if found[3] else ""


def _both(header: bytes, line: int) -> str | None:
    """The name in `a/NAME b/NAME`, if both say the same: elsewhere no line says it again."""
    try:
        if header.startswith(b'"'):
            first, rest = unquoted(header)
            second = unquoted(rest[1:])[0] if rest[1:2] == b'"' else rest[1:]
        else:
            half = len(header) // 2
            first, second = header[:half], header[half + 1 :]
            if header[half : half + 1] != b" " and header.endswith(b'"') and b' "' in header:
                at = header.index(b' "')
                first, second = header[:at], unquoted(header[at + 1 :])[0]
    except ValueError as e:
        raise PatchError(line, str(e)) from e
    name, other = first.partition(b"/")[2], second.partition(b"/")[2]
    return _safe(name, line) if name and name == other else None


def _side(reader: Reader, start: bytes) -> str | None:
    """The name in `--- a/NAME` or `+++ b/NAME`; None: there is no such file."""
    line = reader.number
    found = reader.next()
    if not found.startswith(start):
        raise PatchError(line, f"here `{start.decode()}` and a name are missing")
    value = found[4:]
    if value.partition(b"\t")[0] == b"/dev/null":
        return None
    return _named(value, line, prefix=True)


def _named(value: bytes, line: int, *, prefix: bool) -> str:
    """A name that is all of a line, but for what comes after a tab. prefix: it begins with `a/`."""
    if value.startswith(b'"'):
        try:
            name, rest = unquoted(value)
        except ValueError as e:
            raise PatchError(line, str(e)) from e
        if rest.partition(b"\t")[0]:
            raise PatchError(line, "there is something behind a name in quotes")
    else:
        name = value.partition(b"\t")[0] if prefix else value
        if name.endswith(b"\r"):
            raise PatchError(line, "a name ends in a carriage return: its lines end as in DOS")
    if not prefix:
        return _safe(name, line)
    if name.startswith(b"/"):
        raise PatchError(line, f"{text(name)!r} is absolute")
    if b"/" not in name:
        raise PatchError(line, f"{text(name)!r} has no `a/` or `b/` before it")
    return _safe(name.partition(b"/")[2], line)


def _safe(name: bytes, line: int) -> str:
    said = text(name)
    if why := unsafe(said, rooted=True):
        raise PatchError(line, f"the name {said[:200]!r} {why}")
    return said


def _names(
    verb: Verb,
    said: dict[str, str],
    known: str | None,
    sides: tuple[str | None, str | None] | None,
    line: int,
) -> tuple[str, str]:
    """Where the content comes from and goes to: every line that says so has to say the same."""
    if verb in ("rename", "copy"):
        old, new = said[f"{verb} from"], said[f"{verb} to"]
        if old == new:
            raise PatchError(line, f"{old!r} is no other name")
        if sides and sides != (old, new):
            raise PatchError(line, f"its lines name other files than {old!r} and {new!r}")
        return old, new
    name = known
    if sides:
        told = {side for side in sides if side is not None}
        absent = (verb == "create", verb == "delete")
        if tuple(side is None for side in sides) != absent or len(told) != 1:
            raise PatchError(line, "its `---` and `+++` do not go with the lines before them")
        name = told.pop()
        if known is not None and known != name:
            raise PatchError(line, f"{known!r} and {name!r} are two files")
    if name is None:
        raise PatchError(line, "it cannot be told which file is changed")
    return name, name


def _hunks(reader: Reader) -> tuple[Hunk, ...]:
    found = []
    while reader.starts(b"@@ -"):
        found.append(_hunk(reader))
    if not found:
        raise PatchError(reader.number, "here a hunk is missing")
    after = reader.peek()
    goes_on = after is not None and after[:1] in (b"+", b"-", b" ", b"\\")
    if goes_on and after != b"-- " and not _is_plain(reader):
        raise PatchError(reader.number, "the hunk before it has more lines than it says")
    return tuple(found)


def _require_whole(verb: Verb, hunks: tuple[Hunk, ...], line: int) -> None:
    """A file that is made has nothing before, and one that goes has nothing after."""
    if verb in ("create", "delete") and hunks:
        first, *more = hunks
        if more or (first.before if verb == "create" else first.after):
            raise PatchError(line, f"there are lines where a file to {verb} has none")


def _hunk(reader: Reader) -> Hunk:
    line = reader.number
    found = _HUNK.fullmatch(reader.next())
    if not found:
        raise PatchError(line, "the first line of a hunk cannot be read")
    start, old, new = (int(n) if n else 1 for n in (found[1], found[2], found[4]))
    body = reader.body(old, new)
    if not (body.removed or body.added):
        raise PatchError(line, "the hunk changes nothing")
    return Hunk(
        line=line,
        start=start - 1 if old else start,
        before=body.before,
        after=body.after,
        first=start <= 1,
        last=not body.trailing,
    )


def _binary(reader: Reader) -> Binary:
    reader.next()
    found = _packed(reader)
    if found is None:
        raise PatchError(reader.number, "here `literal` or `delta` and a size are missing")
    _packed(reader)  # the way back, which nobody goes
    return found


def _packed(reader: Reader) -> Binary | None:
    head = _PACKED.fullmatch(reader.peek() or b"")
    if not head:
        return None
    reader.next()
    lines = []
    while (line := reader.peek()) != b"":
        if line is None or not well_formed(line):
            raise PatchError(reader.number, "the binary data are cut or damaged")
        lines.append(reader.next())
    reader.next()
    return Binary("literal" if head[1] == b"literal" else "delta", int(head[2]), tuple(lines))
