"""One command and all that comes of it: bytes of three streams in, its end and its output out."""

import re
from collections.abc import Callable

from sandbox.runtime.terminal import lines
from sandbox.runtime.terminal.sink import Sink

_ANY_MARK = re.compile(rb"\x1b\]7133;[123]\d{16}\x07")
_OURS = re.compile(rb"7133;[123]\d{16}|'[DR]\d{16};|\b_\d{16}\b")
"""In what `set -v` and `set -x` show of our own lines. Searched in a line at a time: whatever is
printed, it takes no longer than that is long."""
_SAID_BYTES = 1 << 16
"""A report is shorter; what is longer is none."""
Put = Callable[[bytes], None]


class Exchange:
    def __init__(self, nonce: bytes, sink: Sink, *, tty: bool, printed: Put, aside: Put) -> None:
        """`printed` is told of its output too, `aside` of what others print."""
        self.nonce = nonce
        self.tty = tty
        self.sink = sink
        self.begun = False
        self._doubted = False
        self.report: lines.Report | None = None
        self._aside = aside
        self._printed = printed
        self._first = lines.mark(lines.BEGIN, nonce)
        self._last = lines.mark(lines.END, nonce)
        self._beyond = lines.mark(lines.AFTER, nonce)
        self._held = b""
        """It may be the beginning of a mark."""
        self._after: bytearray | None = None
        """What came after the last mark; None until there was one."""
        self._early = False
        """The last mark at the end came before the report."""
        self._said = b""
        self.total = 0
        """Bytes of output, whatever was made of them."""
        self._wanted = b""
        self._recent = bytearray()
        self.found = False
        """What is looked for was printed."""

    @property
    def over(self) -> bool:
        return self.report is not None and self._after is not None and not self._early

    @property
    def unmarked(self) -> bool:
        """It has ended, but the mark that says where its output does was dropped with the report."""
        return self.report is not None and self.report.late and self._after is None

    @property
    def unsure(self) -> bool:
        """The last mark came before the report: the command itself may have printed it.

        Or one stream was quicker than the other, as on Docker. What comes after all tells.
        """
        return self.report is not None and self._early

    def from_terminal(self, data: bytes) -> None:
        self._take(data) if self.tty else self._put_aside(data)

    def from_output(self, data: bytes) -> None:
        self._put_aside(data) if self.tty else self._take(data)

    def from_status(self, data: bytes) -> None:
        *said, self._said = (self._said + data).split(b"\n")
        self._said = self._said[-_SAID_BYTES:]
        for line in said:
            report = lines.parse_report(line)
            if report and report.nonce == self.nonce and self.report is None:
                self.report = report

    def look_for(self, text: bytes) -> None:
        """In what is printed from now on."""
        self._wanted, self.found = text, False
        self._recent.clear()

    def close(self) -> None:
        """The mark at its end is not to come."""
        self._after, self._early = self._after or bytearray(), False

    def doubt(self) -> None:
        """The mark at its beginning may not come, or be under way still."""
        self._doubted = True

    def finish(self) -> None:
        """There will be no more: what looked like half a mark was output."""
        self._print(self._held)
        self._held = b""
        if self._after:
            self._put_aside(bytes(self._after))
            self._after = bytearray()

    def _take(self, data: bytes) -> None:
        data = self._held + data if self._held else data
        if not self.begun:
            before, found, rest = _cut(data, self._first)
            if self._doubted and not found:
                before, found, rest = _cut(data, self._last)
                rest = found + rest
            self._put_aside(before)
            if not found:
                self._held = rest
                return
            self.begun, data = True, rest
        while True:
            before, found, data = _cut(data, self._last)
            self._print(before)
            if not found:
                self._held = data
                return
            # Whoever learns the number can print the mark, too: the last one counts.
            if self._after:
                self._output(bytes(self._after))
            self._after, self._early = bytearray(), self.report is None

    def _print(self, data: bytes) -> None:
        if not data:
            return
        if self._after is None:
            self._output(data) if self.begun else self._put_aside(data)
        else:
            self._after += data
            before, found, after = bytes(self._after).partition(self._beyond)
            if found:
                self._after, self._early = bytearray(before + after), False
            if len(self._after) > _SAID_BYTES:
                self._output(bytes(self._after))
                self._after.clear()

    def _output(self, data: bytes) -> None:
        self.total += len(data)
        self.sink.write(data)
        self._printed(data)
        if self._wanted and not self.found:
            self._recent += data
            self.found = self._wanted in self._recent
            del self._recent[: -len(self._wanted)]

    def _put_aside(self, data: bytes) -> None:
        if data:
            self._aside(without_marks(data))


def without_marks(data: bytes) -> bytes:
    if b"7133;" not in data and b"builtin" not in data and b" _" not in data:
        return data
    printed = _ANY_MARK.sub(b"", data).splitlines(keepends=True)
    return b"".join(line for line in printed if not _OURS.search(line))


def _cut(data: bytes, mark: bytes) -> tuple[bytes, bytes, bytes]:
    """What is before the mark, the mark, what is after it.

    Or, where there is none: what is before the beginning of one, nothing, and that.
    """
    at = data.find(mark)
    if at >= 0:
        return data[:at], mark, data[at + len(mark) :]
    start = data.rfind(b"\x1b", max(0, len(data) - len(mark) + 1))
    if start >= 0 and mark.startswith(data[start:]):
        return data[:start], b"", data[start:]
    return data, b"", b""
