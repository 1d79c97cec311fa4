"""`GIT binary patch`: base 85, literals and deltas. Pure; nothing grows beyond what was said."""

import base64
import zlib
from dataclasses import dataclass
from typing import Literal

_LINE = 52
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_STORED = 65535


@dataclass(frozen=True, slots=True)
class Binary:
    """A file's content, or how to make it from what was there."""

    kind: Literal["literal", "delta"]
    size: int
    """Of what is packed."""
    lines: tuple[bytes, ...]
    """As they stand in the patch, without their ends."""

    def made(self, before: bytes, most: int) -> bytes:
        """The content. Raises ValueError: it is not what it says, or holds more than `most` bytes."""
        if self.size > most:
            raise ValueError(f"it holds {self.size} bytes, {most} are allowed")
        data = inflated(unpacked(self.lines), self.size)
        return data if self.kind == "literal" else patched(before, data, most)


def well_formed(line: bytes) -> bool:
    """A letter for how many bytes, then five characters for each four of them."""
    size = _LETTERS.find(line[:1]) + 1
    return bool(line) and size > 0 and len(line) == 1 + (size + 3) // 4 * 5


def unpacked(lines: tuple[bytes, ...]) -> bytes:
    """All full lines at once, since each call costs. Raises ValueError."""
    parts, full = [], []
    for line in lines:
        size = _LETTERS.index(line[:1]) + 1
        if size % 4 == 0:
            full.append(line[1:])
            continue
        parts += [base64.b85decode(b"".join(full)), base64.b85decode(line[1:])[:size]]
        full = []
    return b"".join((*parts, base64.b85decode(b"".join(full))))


def inflated(data: bytes, size: int) -> bytes:
    """Raises ValueError unless it is one whole stream of just that size."""
    stream = zlib.decompressobj()
    try:
        out = stream.decompress(data, size + 1)
    except zlib.error as e:
        raise ValueError(f"it cannot be unpacked: {e}") from e
    if len(out) != size or not stream.eof or stream.unused_data:
        raise ValueError(f"it does not unpack to {size} bytes")
    return out


def patched(before: bytes, delta: bytes, most: int) -> bytes:
    """What git's delta makes of `before`. Raises ValueError."""
    source, at = _number(delta, 0)
    size, at = _number(delta, at)
    if source != len(before):
        raise ValueError(f"it changes a file of {source} bytes, and this one has {len(before)}")
    if size > most:
        raise ValueError(f"it makes {size} bytes, {most} are allowed")
    out, made = [], 0
    while at < len(delta):
        op = delta[at]
        part, at = _copied(before, delta, at) if op & 0x80 else _inserted(delta, at)
        made += len(part)
        if made > size:
            raise ValueError("it makes more than it says")
        out.append(part)
    if made != size:
        raise ValueError("it makes less than it says")
    return b"".join(out)


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 63:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at
    raise ValueError("a number of it is cut")


def _inserted(delta: bytes, at: int) -> tuple[bytes, int]:
    end = at + 1 + delta[at]
    if delta[at] == 0 or end > len(delta):
        raise ValueError("an instruction of it is cut or not known")
    return delta[at + 1 : end], end


def _copied(before: bytes, delta: bytes, at: int) -> tuple[bytes, int]:
    op = delta[at]
    at += 1
    values = []
    for bit in range(7):
        if op >> bit & 1:
            if at == len(delta):
                raise ValueError("an instruction of it is cut or not known")
            values.append(delta[at])
            at += 1
        else:
            values.append(0)
    start = int.from_bytes(bytes(values[:4]), "little")
    size = int.from_bytes(bytes(values[4:]), "little") or 0x10000
    if start + size > len(before):
        raise ValueError("it copies what is not there")
    return before[start : start + size], at


def literal(data: bytes) -> bytes:
    """As a part of a patch: stored and not compressed, so that no library has a say in its bytes."""
    packed = _stored(data)
    lines = []
    for at in range(0, len(packed), _LINE):
        part = packed[at : at + _LINE]
        lines.append(b"%c%s\n" % (_LETTERS[len(part) - 1], base64.b85encode(part, pad=True)))
    return b"GIT binary patch\nliteral %d\n%s\n" % (len(data), b"".join(lines))


def _stored(data: bytes) -> bytes:
    out = [b"\x78\x01"]
    for at in range(0, max(len(data), 1), _STORED):
        part = data[at : at + _STORED]
        last = at + _STORED >= len(data)
        size = len(part)
        out += [
            b"%c" % last,
            size.to_bytes(2, "little"),
            (size ^ 0xFFFF).to_bytes(2, "little"),
            part,
        ]
    return b"".join((*out, zlib.adler32(data).to_bytes(4, "big")))
