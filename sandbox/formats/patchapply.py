"""What a patch makes of a tree, in memory: all of it, strictly, or nothing. Pure."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from sandbox.formats.digest import Entry
from sandbox.formats.patch import Change, Hunk
from sandbox.formats.patchlines import PatchError
from sandbox.formats.patchnames import clashing, leads_out, swapped

_SEARCHED_BYTES = 1 << 28
"""Of files, for all hunks that are not where they say."""
_KINDS: dict[str, Literal["file", "exec", "link"]] = {
    "100644": "file", "100755": "exec", "120000": "link",
}  # fmt: skip
MODES = {kind: mode for mode, kind in _KINDS.items()}
_NOTHING = "0" * 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    files: tuple[Entry, ...]
    """What was created or changed."""
    removed: tuple[str, ...]


def blob(data: bytes) -> str:
    """The name that git has for a content."""
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()


def outcome(changes: Iterable[Change], base: Mapping[str, Entry], *, max_bytes: int) -> Outcome:
    """Raises PatchError. max_bytes: what everything that is created or changed may hold."""
    work = _Work(base, max_bytes)
    mine = tuple(changes)
    gone = {c.old: c.line for c in mine if c.verb in ("delete", "rename")}
    made: dict[str, Entry] = {}
    for c in mine:
        if (entry := work.made(c, gone)) is not None:
            made[entry.path] = entry
    removed = gone.keys() - made.keys()
    _require_a_tree(mine, made, base, removed)
    return Outcome(files=tuple(sorted(made.values())), removed=tuple(sorted(removed)))


class _Work:
    """What is left of what may be done for one patch."""

    def __init__(self, base: Mapping[str, Entry], max_bytes: int) -> None:
        self._base = base
        self._left = max_bytes
        self._most = max_bytes
        self._searching = _SEARCHED_BYTES

    def made(self, c: Change, gone: Mapping[str, int]) -> Entry | None:
        """The file that is there afterwards; None: it is deleted."""
        before = self._base.get(c.old)
        if c.verb == "create":
            before = None
        elif before is None:
            raise PatchError(c.line, f"{c.old!r} is not there")
        elif c.old_mode and (_KINDS[c.old_mode] == "link") != (before.kind == "link"):
            raise PatchError(c.line, f"{c.old!r} is a {before.kind}, and no {_KINDS[c.old_mode]}")
        if c.verb in ("create", "rename", "copy") and c.new in self._base and c.new not in gone:
            raise PatchError(c.line, f"{c.new!r} is there already")
        data = self._content(c, before.data if before else b"")
        if c.verb == "delete":
            if data:
                raise PatchError(c.line, f"{c.old!r} is deleted, and it has more than is told")
            return None
        return self._entry(c, before, data)

    def _entry(self, c: Change, before: Entry | None, data: bytes) -> Entry:
        kind = _KINDS[c.new_mode] if c.new_mode else before.kind if before else "file"
        if before and (kind == "link") != (before.kind == "link"):
            raise PatchError(c.line, f"{c.new!r} becomes a {kind} in one step")
        if kind == "link" and leads_out(c.new, data):
            raise PatchError(c.line, f"the link {c.new!r} leads out of the working directory")
        entry = Entry(c.new, kind, data)
        if entry != before:
            self._left -= len(data)
        if self._left < 0:
            raise PatchError(c.line, f"its files hold more than {self._most >> 20} MiB")
        return entry

    def _content(self, c: Change, before: bytes) -> bytes:
        if c.binary is None:
            return self._patched(c, before)
        old, new = c.blobs
        if old != (_NOTHING if c.verb == "create" else blob(before)):
            raise PatchError(c.line, f"{c.old!r} is not the file that this was made for")
        try:
            after = c.binary.made(before, self._left)
        except ValueError as e:
            raise PatchError(c.line, f"the content of {c.new!r}: {e}") from e
        if new != (_NOTHING if c.verb == "delete" else blob(after)):
            raise PatchError(c.line, f"the content of {c.new!r} is not what it says")
        return after

    def _patched(self, c: Change, before: bytes) -> bytes:
        if not c.hunks:
            return before
        ends = list(accumulate((len(x) + 1 for x in before.split(b"\n")), initial=0))[:-1]
        parts, at = [], 0
        for hunk in c.hunks:
            start = ends[hunk.start] if hunk.start < len(ends) else -1
            if not (at <= start <= len(before) and _fits(hunk, before, start)):
                start = self._found(hunk, before, c.old)
            if start < at:
                raise PatchError(hunk.line, f"this is before the hunk before it, in {c.old!r}")
            parts += [before[at:start], hunk.after]
            at = start + len(hunk.before)
        parts.append(before[at:])
        made = b"".join(parts)
        if len(made) > self._left and c.verb != "delete" and made != before:
            raise PatchError(c.line, f"its files hold more than {self._most >> 20} MiB")
        return made

    def _found(self, hunk: Hunk, before: bytes, name: str) -> int:
        """The one place where a hunk fits that is not where it says."""
        self._searching -= len(before)
        if self._searching < 0:
            raise PatchError(hunk.line, "too many hunks are not where they say")
        found: list[int] = []
        at = 0 if hunk.before else -1
        while at >= 0 and len(found) < 2:
            if _fits(hunk, before, at):
                found.append(at)
            at = before.find(b"\n" + hunk.before, at) + 1 or -1
        if len(found) != 1:
            how = "more than one place of" if found else "no place of"
            raise PatchError(hunk.line, f"this hunk fits {how} {name!r}")
        return found[0]


def _fits(hunk: Hunk, before: bytes, at: int) -> bool:
    """Does it say what is there, at the beginning of a line?"""
    end = at + len(hunk.before)
    if not before.startswith(hunk.before, at) or (at and before[at - 1 : at] != b"\n"):
        return False
    if (hunk.first and at) or (hunk.last and end != len(before)):
        return False
    cut = any(said and not said.endswith(b"\n") for said in (hunk.before, hunk.after))
    return end == len(before) or not cut


def _require_a_tree(
    changes: tuple[Change, ...],
    made: Mapping[str, Entry],
    base: Mapping[str, Entry],
    removed: Iterable[str],
) -> None:
    """On no file system may two of its names be one, nor a name change from file to folder."""
    lines = {c.new: c.line for c in changes if c.verb != "delete"}
    fresh = made.keys() - base.keys()
    if found := swapped(fresh, base.keys()):
        name = min(found)
        raise PatchError(lines[name], f"{found[name]!r} cannot be a file and a folder")
    if found := clashing(fresh, base.keys() - set(removed)):
        name = min(found)
        raise PatchError(lines[name], f"{name!r} and {found[name]!r} are one name elsewhere")
