"""Answers to questions about names: every name is this box, where the recorded network listens.

So a client that knows no proxy is answered at once, and what is not recorded is told in its own
protocol, which names what was asked, where a name that is not there would only be a riddle.
Of other records nothing is recorded. That is said as a refusal, not as an absence: nobody knows.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

HEADER_BYTES = 12
_A, _AAAA, _SVCB, _HTTPS = 1, 28, 64, 65
_INTERNET = 1
_OPCODE, _IS_ANSWER, _RECURSION_WANTED, _RECURSION = 0x7800, 0x8000, 0x0100, 0x0080
_FINE, _FORMAT, _NO_NAME, _NOT_DONE, _REFUSED = 0, 1, 3, 4, 5
_SECONDS = 60
"""How long an answer may be remembered."""
_HERE = {_A: IPv4Address("127.0.0.1").packed, _AAAA: IPv6Address("::1").packed}
_NOWHERE = ("invalid", "onion", "arpa")
"""Top-level names that lead to no host."""
_WORDS = {_FINE: "answered", _NO_NAME: "no such name", _REFUSED: "refused"}
_TYPES = {_A: "A", _AAAA: "AAAA", _SVCB: "SVCB", _HTTPS: "HTTPS"}
_TYPES |= {2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 15: "MX", 16: "TXT", 33: "SRV", 255: "ANY"}


@dataclass(frozen=True, slots=True)
class Answered:
    """What to send back (nothing for what is no question), and the words for the log."""

    message: bytes
    name: str
    kind: str
    said: str


def answer(asked: bytes) -> Answered:
    """Never raises: what comes from the box may be anything."""
    if len(asked) < HEADER_BYTES:
        return Answered(b"", "", "", "no question")
    number, flags, questions = struct.unpack_from("!HHH", asked)
    if flags & _IS_ANSWER:
        return Answered(b"", "", "", "no question")
    if flags & _OPCODE:
        return Answered(_message(number, flags, _NOT_DONE), "", "", "not a query")
    question = _question(asked) if questions == 1 else None
    if question is None:
        return Answered(_message(number, flags, _FORMAT), "", "", "malformed")
    name, kind, group, end = question
    code, found = _decide(name, kind, group)
    message = _message(number, flags, code, asked[HEADER_BYTES:end], found, kind)
    return Answered(message, name, _TYPES.get(kind, f"TYPE{kind}"), _WORDS[code])


def _decide(name: str, kind: int, group: int) -> tuple[int, bytes]:
    if group != _INTERNET:
        return _REFUSED, b""
    if name.rsplit(".", 1)[-1] in _NOWHERE:
        return _NO_NAME, b""
    if kind in _HERE:
        return _FINE, _HERE[kind]
    # Whether there is a better way to a host than its address: there is none.
    return (_FINE, b"") if kind in (_SVCB, _HTTPS) else (_REFUSED, b"")


def _question(asked: bytes) -> tuple[str, int, int, int] | None:
    """Name, type, class, and where they end. A name here has no pointer to go round in."""
    labels = []
    place = HEADER_BYTES
    while place < len(asked) and (size := asked[place]):
        if size > 63 or place + 1 + size > len(asked) or place > HEADER_BYTES + 255:
            return None
        labels.append(asked[place + 1 : place + 1 + size])
        place += 1 + size
    place += 1
    if place + 4 > len(asked):
        return None
    kind, group = struct.unpack_from("!HH", asked, place)
    name = ".".join(label.decode("ascii", "backslashreplace") for label in labels).lower()
    return name, kind, group, place + 4


def _message(
    number: int, flags: int, code: int, question: bytes = b"", found: bytes = b"", kind: int = 0
) -> bytes:
    said = _IS_ANSWER | _RECURSION | flags & _RECURSION_WANTED | code
    head = struct.pack("!HHHHHH", number, said, bool(question), bool(found), 0, 0)
    if not found:
        return head + question
    at_question = struct.pack(
        "!HHHIH", 0xC000 | HEADER_BYTES, kind, _INTERNET, _SECONDS, len(found)
    )
    return head + question + at_question + found
