"""Where output goes: its beginning and end into memory, all of it into a file, bounded both."""

import hashlib
from pathlib import Path
from typing import BinaryIO

SPOOL_BYTES, SPOOLED_BYTES = 64 << 20, 512 << 20
"""What is kept in a file of one command's output, and in all files of one terminal."""
_LINE_BYTES = 1 << 16
"""A longer line is no progress bar."""


class HeadTail:
    """Keeps the beginning and the end of what is written to it, and counts all of it."""

    def __init__(self, limit: int) -> None:
        self._head_limit = (limit + 1) // 2
        self._tail_limit = limit // 2
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0

    def write(self, data: bytes) -> None:
        self.total += len(data)
        if room := self._head_limit - len(self._head):
            self._head += data[:room]
            data = data[room:]
        if len(data) >= self._tail_limit:
            self._tail = bytearray(data[len(data) - self._tail_limit :])
            return
        self._tail += data
        if len(self._tail) > 4 * self._tail_limit + 4096:
            del self._tail[: len(self._tail) - self._tail_limit]

    @property
    def truncated(self) -> bool:
        return self.total > self._head_limit + self._tail_limit

    def raw(self) -> bytes:
        """Both, without what is between."""
        return bytes(self._head + self._tail)

    def text(self) -> str:
        """What a person would read: cut characters and invalid bytes as escapes, NUL too."""
        if not self.truncated:
            return decode(bytes(self._head + self._tail))
        head, tail = bytes(self._head), bytes(self._tail[len(self._tail) - self._tail_limit :])
        left_out = self.total - len(head) - len(tail)
        return f"{decode(head)}\n[… {left_out} bytes left out …]\n{decode(tail)}"


class Fold:
    """Drops what a carriage return has drawn over: of a progress bar, its last state is left."""

    def __init__(self) -> None:
        self._line = bytearray()
        """Of the line that is being drawn, the last state."""
        self._returned = False

    def feed(self, data: bytes) -> bytes:
        """What is settled."""
        out = bytearray()
        for piece in data.split(b"\r") if data else ():
            if self._returned and piece and not piece.startswith(b"\n"):
                self._line.clear()
            before, newline, after = piece.rpartition(b"\n")
            if newline:
                out += self._line + before + newline
                self._line = bytearray(after)
            else:
                self._line += after
                if len(self._line) > _LINE_BYTES:
                    out += self._line
                    self._line.clear()
            self._returned = True
        self._returned = data.endswith(b"\r") if data else self._returned
        return bytes(out)

    def rest(self) -> bytes:
        line, self._line = bytes(self._line), bytearray()
        return line


class Sink:
    """One command's output."""

    def __init__(self, limit: int, spool: Path | None, room: int = SPOOL_BYTES) -> None:
        """`spool`: a file to be made when the output is longer than `limit`, of `room` bytes."""
        self._kept = HeadTail(limit)
        self._limit = limit
        self._spool = spool
        self._file: BinaryIO | None = None
        self._before = bytearray()
        self._hash = hashlib.sha256()
        self._fold: Fold | None = None
        self.spooled_bytes = 0
        self._room = min(room, SPOOL_BYTES)
        self.total = 0

    def fold(self) -> None:
        """From now on."""
        self._fold = self._fold or Fold()

    def write(self, data: bytes) -> None:
        self.total += len(data)
        self._hash.update(data)
        self._keep_all(data)
        self._kept.write(self._fold.feed(data) if self._fold else data)

    @property
    def truncated(self) -> bool:
        return self._kept.truncated

    def raw(self) -> bytes:
        """Its beginning and its end."""
        return self._kept.raw()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest() if self.total else ""

    @property
    def spooled(self) -> str:
        """The name of the file, if there is one."""
        return self._spool.name if self._spool and self._file else ""

    def text(self) -> str:
        if self._fold:
            self._kept.write(self._fold.rest())
        return self._kept.text()

    def close(self) -> None:
        if self._file:
            self._file.close()

    def _keep_all(self, data: bytes) -> None:
        """A disk that is full costs the file, and nothing else."""
        if self._spool is None:
            return
        if self._file is None:
            self._before += data
            if len(self._before) <= self._limit:
                return
            data, self._before = bytes(self._before), bytearray()
        try:
            self._spool_on(self._spool, data)
        except OSError:
            self._drop_file()

    def _spool_on(self, path: Path, data: bytes) -> None:
        if self._room <= 0:
            self._spool = None if self._file is None else path
            return
        if self._file is None:
            self._file = path.open("wb", buffering=0)
        self.spooled_bytes += self._file.write(data[: self._room])
        self._room -= len(data)

    def _drop_file(self) -> None:
        self._spool = None
        if self._file:
            self._file.close()


def decode(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    return text.replace("\0", "\\x00")
