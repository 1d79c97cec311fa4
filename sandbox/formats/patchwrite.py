"""The patch from one tree to another, in git's format: the same bytes on every machine. Pure.

No library has a say in it: neither how a difference is found nor how bytes are packed.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sandbox.formats.digest import Entry
from sandbox.formats.gitbinary import literal
from sandbox.formats.patchapply import MODES, blob
from sandbox.formats.patchnames import quoted, raw

_CONTEXT = 3
_MOST_LINES = 100_000
"""Of a file that is told line by line."""
_MOST_LINES_OF_ALL = 1_000_000
_MOST_LOOKS = 32
"""At each line, on average."""
_NO_END = b"\n\\ No newline at end of file\n"
Edit = tuple[int, int, int, int]
"""Lines of one file, and those of the other that stand in their place: [from, to), [from, to)."""


def make_patch(before: Iterable[Entry], after: Iterable[Entry]) -> bytes:
    """A patch that turns the files `before` into `after`."""
    old = {e.path: e for e in before}
    new = {e.path: e for e in after}
    writer = _Writer()
    names = sorted({name for name in (*old, *new) if old.get(name) != new.get(name)}, key=raw)
    # What goes comes first: a folder's name may be that of a file which is gone.
    for name in names:
        if name in old and (name not in new or _is_link(old[name]) != _is_link(new[name])):
            writer.write(old[name], None)
    for name in names:
        if name in new:
            stays = name in old and _is_link(old[name]) == _is_link(new[name])
            writer.write(old[name] if stays else None, new[name])
    return b"".join(writer.parts)


def _is_link(e: Entry) -> bool:
    return e.kind == "link"


class _Writer:
    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._left = _MOST_LINES_OF_ALL

    def write(self, old: Entry | None, new: Entry | None) -> None:
        name = raw((new or old).path)  # type: ignore[union-attr]  # one of them is there
        before, after = (e.data if e else b"" for e in (old, new))
        a, b = quoted(b"a/" + name), quoted(b"b/" + name)
        self.parts.append(b"diff --git %s %s\n" % (a, b))
        if old is None or new is None:
            word = b"new" if old is None else b"deleted"
            self.parts.append(b"%s file mode %s\n" % (word, _mode(new or old)))
        elif old.kind != new.kind:
            self.parts.append(b"old mode %s\nnew mode %s\n" % (_mode(old), _mode(new)))
        if before == after:
            return
        if self._as_text(before, after):
            sides = (a if old else b"/dev/null"), (b if new else b"/dev/null")
            self.parts.append(b"--- %s\n+++ %s\n" % tuple(map(_ended, sides)))
            self.parts += hunks(before, after)
            return
        names = (blob(e.data) if e else "0" * 40 for e in (old, new))
        mode = b" " + _mode(new) if old and new and old.kind == new.kind else b""
        self.parts.append(b"index %s..%s%s\n" % (*(n.encode() for n in names), mode))
        self.parts.append(literal(after) + b"\n")

    def _as_text(self, before: bytes, after: bytes) -> bool:
        if b"\0" in before or b"\0" in after:
            return False
        lines = before.count(b"\n") + after.count(b"\n") + 2
        if lines > min(_MOST_LINES, self._left):
            return False
        self._left -= lines
        return True


def _mode(e: Entry | None) -> bytes:
    return MODES[e.kind].encode() if e else b""


def _ended(name: bytes) -> bytes:
    """A tab shows where a name ends that has spaces."""
    return name + b"\t" if b" " in name and not name.startswith(b'"') else name


def hunks(before: bytes, after: bytes) -> Iterator[bytes]:
    """The differences of two files as hunks, with lines around them."""
    old, new = _lines(before), _lines(after)
    for group in _grouped(edits(old, new)):
        first, last = group[0], group[-1]
        start = max(first[0] - _CONTEXT, 0)
        end = min(last[1] + _CONTEXT, len(old))
        moved, goes_on = first[2] - (first[0] - start), last[3] + end - last[1]
        yield b"@@ -%s +%s @@\n" % (_range(start, end), _range(moved, goes_on))
        at = start
        for i, j, k, m in group:
            yield from _told(b" ", old[at:i])
            yield from _told(b"-", old[i:j])
            yield from _told(b"+", new[k:m])
            at = j
        yield from _told(b" ", old[at:end])


def _lines(data: bytes) -> list[bytes]:
    """Each with its end; only a newline ends a line."""
    parts = data.split(b"\n")
    return [p + b"\n" for p in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _told(sign: bytes, lines: Sequence[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield sign + (line if line.endswith(b"\n") else line + _NO_END)


def _range(start: int, end: int) -> bytes:
    count = end - start
    begin = start + 1 if count else start
    return b"%d" % begin if count == 1 else b"%d,%d" % (begin, count)


def _grouped(found: Iterable[Edit]) -> Iterator[list[Edit]]:
    """Edits that share lines around them."""
    group: list[Edit] = []
    for edit in found:
        if group and edit[0] - group[-1][1] > 2 * _CONTEXT:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def edits(old: Sequence[bytes], new: Sequence[bytes]) -> list[Edit]:
    """By lines that both have once ("patience"): not the shortest, but never slow."""
    found: list[Edit] = []
    left = [(0, len(old), 0, len(new))]
    looks = _MOST_LOOKS * (len(old) + len(new))
    while left:
        i, j, k, m = left.pop()
        while i < j and k < m and old[i] == new[k]:
            i, k = i + 1, k + 1
        while i < j and k < m and old[j - 1] == new[m - 1]:
            j, m = j - 1, m - 1
        looks -= j - i + m - k
        both = i < j and k < m and looks > 0
        anchors = _anchors(old, new, (i, j, k, m)) if both else []
        if anchors:
            places = [(i, k), *((a + 1, b + 1) for a, b in anchors)]
            ends = [*anchors, (j, m)]
            left += [(p, e, q, f) for (p, q), (e, f) in zip(places, ends, strict=True)]
        elif i < j or k < m:
            found.append((i, j, k, m))
    return _joined(sorted(found))


def _joined(found: Iterable[Edit]) -> list[Edit]:
    """Edits that touch are one."""
    out: list[Edit] = []
    for edit in found:
        if out and out[-1][1] == edit[0] and out[-1][3] == edit[2]:
            edit = (out[-1][0], edit[1], out.pop()[2], edit[3])  # noqa: PLW2901
        out.append(edit)
    return out


def _anchors(old: Sequence[bytes], new: Sequence[bytes], within: Edit) -> list[tuple[int, int]]:
    """Pairs of the same line, which both have once there, as many as are in one order."""
    i, j, k, m = within
    olds, news = Counter(old[i:j]), Counter(new[k:m])
    at = {new[b]: b for b in range(k, m) if news[new[b]] == 1}
    pairs = [(a, at[old[a]]) for a in range(i, j) if olds[old[a]] == 1 and old[a] in at]
    ends: list[int] = []
    last: list[int] = []
    back = [-1] * len(pairs)
    for n, (_, b) in enumerate(pairs):
        place = bisect_left(ends, b)
        back[n] = last[place - 1] if place else -1
        ends[place : place + 1] = [b]
        last[place : place + 1] = [n]
    chain = []
    n = last[-1] if last else -1
    while n >= 0:
        chain.append(pairs[n])
        n = back[n]
    return chain[::-1]
