"""The pure part of the terminal: bytes of a PTY to output, exit code and folder."""

import re

_OSC = b"\x1b]7133;"
_LONGEST_MARK = 1 << 15
"""A path of 4,096 bytes, each as four characters, and what is around it."""
_REST = rb"[^\x07\x1b]{0,%d}" % (_LONGEST_MARK - 100)
_ANY_MARK = re.compile(rb"\x1b\]7133;[BDR];[0-9a-f]{16}" + _REST + rb"\x07")
_ESCAPES = {0x5C: b"\\\\", 0x27: b"\\'", 0x0A: b"\\n", 0x09: b"\\t", 0x0D: b"\\r"}
_PLAIN = {"n": b"\n", "t": b"\t", "r": b"\r", "E": b"\x1b", "e": b"\x1b", "a": b"\a", "b": b"\b",
          "f": b"\f", "v": b"\v"}  # fmt: skip


class HeadTail:
    """Keeps the beginning and the end of what is written to it, and counts all of it."""

    def __init__(self, limit: int) -> None:
        self._head_limit = (limit + 1) // 2
        self._tail_limit = limit // 2
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0

    def write(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 4 * self._tail_limit + 4096:
            del self._tail[: len(self._tail) - self._tail_limit]

    @property
    def truncated(self) -> bool:
        return self.total > self._head_limit + self._tail_limit

    def text(self) -> str:
        """What a person would read: cut characters and invalid bytes as escapes, NUL too."""
        head = bytes(self._head)
        tail = bytes(
            self._tail[len(self._tail) - self._tail_limit :] if self.truncated else self._tail
        )
        if not self.truncated:
            return _decode(head + tail)
        left_out = self.total - len(head) - len(tail)
        return f"{_decode(head)}\n[… {left_out} bytes left out …]\n{_decode(tail)}"


class Scanner:
    """Finds where one command's output begins and ends. Its marks carry a number only we know."""

    def __init__(self, nonce: str, sink: HeadTail, *, started: bool = False) -> None:
        number = nonce.encode()
        # What runs in the shell can find the number out, so nothing else may be taken on trust.
        self._mark = re.compile(
            rb"\x1b\]7133;(?:B;%s|[DR];%s;(-?\d{1,9});(%s))\x07" % (number, number, _REST)
        )
        self._sink = sink
        self._started = started
        self._held = b""
        self.ended: tuple[int, str] | None = None
        """Exit code and folder, once the command is over."""
        self.rest = b""
        """What came after the end: of background programs."""

    def feed(self, data: bytes) -> None:
        buffer = self._held + data
        self._held = b""
        while self.ended is None:
            found = self._mark.search(buffer)
            if found is None:
                keep = _partial(buffer)
                self._emit(buffer[:keep])
                self._held = buffer[keep:]
                return
            if found[1] is None:
                self._started = True
            else:
                self._emit(buffer[: found.start()])
                self.ended = (int(found[1]), unquote(found[2]))
            buffer = buffer[found.end() :]
        self.rest += buffer

    def flush(self) -> None:
        """There will be no more: what looked like half a mark was output."""
        self._emit(self._held)
        self._held = b""

    def _emit(self, data: bytes) -> None:
        if self._started:
            self._sink.write(_ANY_MARK.sub(b"", data))


def quote(command: bytes) -> bytes:
    """`command` as one bash word on one line of plain ASCII."""
    out = bytearray(b"$'")
    for c in command:
        if c in _ESCAPES:
            out += _ESCAPES[c]
        elif c < 0x20 or c >= 0x7F:
            out += b"\\%03o" % c
        else:
            out.append(c)
    return bytes(out + b"'")


def unquote(word: bytes) -> str:
    """The reverse of bash's %q."""
    if word == b"''":
        return ""
    if word.startswith(b"$'"):
        word = re.sub(rb"\\([0-7]{1,3}|.)", _escaped, word[2:-1], flags=re.DOTALL)
    else:
        word = re.sub(rb"\\(.)", rb"\1", word, flags=re.DOTALL)
    return word.decode("utf-8", "surrogateescape")


def _escaped(found: re.Match[bytes]) -> bytes:
    said = found[1].decode("latin-1")
    if said[0] in "01234567":
        return bytes([int(said, 8) & 0xFF])
    return _PLAIN.get(said, found[1])


def _partial(buffer: bytes) -> int:
    """Where in `buffer` a mark may have begun that is not complete yet; its length if nowhere."""
    at = buffer.rfind(b"\x1b")
    if at < 0 or len(buffer) - at > _LONGEST_MARK or b"\x07" in buffer[at:]:
        return len(buffer)
    seen = buffer[at : at + len(_OSC)]
    return at if _OSC.startswith(seen) else len(buffer)


def _decode(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    return text.replace("\0", "\\x00")
