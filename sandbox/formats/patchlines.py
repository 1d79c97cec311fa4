"""A patch's bytes, line by line: whole lines, counted, each looked at once."""

import re
from dataclasses import dataclass


class PatchError(Exception):
    """A patch that is not as it should be; `line` is the patch's."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"patch:{line}: {why}")
        self.line = line


@dataclass(frozen=True, slots=True)
class Body:
    """The lines of a hunk."""

    before: bytes
    after: bytes
    removed: int
    added: int
    trailing: int
    """Lines at its end that stay."""


class Reader:
    def __init__(self, data: bytes, *, lines: int) -> None:
        """lines: how many lines all hunks may have."""
        self._data = data
        self._at = 0
        self._left = lines
        self.number = 1
        """Of the line that comes next."""

    def peek(self, ahead: int = 0) -> bytes | None:
        """A line that is to come, without its end; None: there is no such line, or it is cut."""
        at = self._at
        for _ in range(ahead):
            end = self._data.find(b"\n", at)
            if end < 0:
                return None
            at = end + 1
        end = self._data.find(b"\n", at)
        return None if end < 0 else self._data[at:end]

    def starts(self, start: bytes) -> bool:
        return self._data.startswith(start, self._at)

    def next(self) -> bytes:
        end = self._data.find(b"\n", self._at)
        if end < 0:
            raise PatchError(self.number, "the patch is cut here")
        line = self._data[self._at : end]
        self._at = end + 1
        self.number += 1
        return line

    def skip_to(self, start: re.Pattern[bytes]) -> bool:
        """To the next line that begins so, if there is one."""
        found = start.search(self._data, self._at)
        if not found:
            return False
        self.number += self._data.count(b"\n", self._at, found.start())
        self._at = found.start()
        return True

    def body(self, old: int, new: int) -> Body:
        """So many lines of a hunk, as its first line counts them."""
        self._left -= old + new
        if self._left < 0:
            raise PatchError(self.number, "the patch has more lines than can be looked at")
        before, after = _Side(old), _Side(new)
        removed = added = trailing = 0
        last = b""
        while before.left or after.left or self.starts(b"\\ "):
            line = self.next()
            kind = line[:1] or b" "
            if kind == b"\\":
                self._no_newline(line, last, before, after)
                last = kind
                continue
            if kind not in (b" ", b"-", b"+"):
                raise PatchError(self.number - 1, "the hunk has fewer lines than it says")
            if kind != b"+":
                self._take(before, line[1:])
            if kind != b"-":
                self._take(after, line[1:])
            removed += kind == b"-"
            added += kind == b"+"
            trailing = trailing + 1 if kind == b" " else 0
            last = kind
        return Body(before.text(), after.text(), removed, added, trailing)

    def _take(self, side: "_Side", line: bytes) -> None:
        if not side.left or side.cut:
            raise PatchError(self.number - 1, "the hunk has other lines than it says")
        side.left -= 1
        side.lines.append(line)

    def _no_newline(self, line: bytes, last: bytes, before: "_Side", after: "_Side") -> None:
        r"""`\ No newline at end of file`, in whatever language: of the line before it."""
        if not line.startswith(b"\\ ") or last not in (b" ", b"-", b"+"):
            raise PatchError(self.number - 1, "this is said of no line")
        for side, other in ((before, b"+"), (after, b"-")):
            if last != other:
                if side.left:
                    raise PatchError(self.number - 1, "lines come after the file's last one")
                side.cut = True


class _Side:
    """What a hunk says of the file before or after it."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.lines: list[bytes] = []
        self.cut = False
        """Has its last line no end?"""

    def text(self) -> bytes:
        joined = b"\n".join(self.lines)
        return joined if self.cut or not self.lines else joined + b"\n"
