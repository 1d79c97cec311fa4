"""What a box printed, as something that may be shown: a terminal obeys more than it should."""

import re
from typing import Final

_C1: Final = {0x80 + i: "\x1b" + chr(0x40 + i) for i in range(0x20)}
"""One-character forms of ESC and a letter, which some terminals obey too."""
_STRING_KINDS: Final = "]PX^_k"
_SEQUENCE: Final = re.compile(
    r"\x1b\[(?P<csi>[0-?]*+[ -/]*+[@-~\x18\x1a])"
    # A string: of OSC and titles, BEL is an end too. Whatever else ESC begins ends it as well.
    r"|\x1b[\]k][^\x07\x18\x1a\x1b]*+(?:[\x07\x18\x1a]|\x1b\\|(?=\x1b)|\Z)"
    r"|\x1b[PX^_][^\x18\x1a\x1b]*+(?:[\x18\x1a]|\x1b\\|(?=\x1b)|\Z)"
    r"|\x1b(?P<other>[ -/]*+[0-~])"
    r"|[\x00-\x07\x10-\x1f\x7f]"
)
_BEGUN: Final = re.compile(
    r"\x1b(?:\[[0-?]*+[ -/]*+|[\]k][^\x07\x18\x1a\x1b]*+\x1b?|[PX^_][^\x18\x1a\x1b]*+\x1b?"
    r"|[ -/]*+)\Z"
)
_DRAWS: Final = re.compile(
    r"[0-9;]*[@A-MPXZ`adefr]"  # move, erase, insert, delete
    r"|[0-9]*[ST]|[0-9]{0,3}b|[su]"  # scroll, repeat, save and restore; more numbers mean more
    r"|\?[0-2]?[JK]"
    r"|[0-9;:]*m|4[hl]|!p"
)
_MODES: Final = re.compile(r"\?([0-9;]+)([hl])")
_DRAWING_MODES: Final = frozenset({"5", "6", "7", "25", "47", "1047", "1048", "1049", "2026"})
_LONG: Final = re.compile(r"[0-9]{5}")
_LONGEST_CHARS: Final = 128
_OTHERS: Final = re.compile(r"[78DEM]|[()][0AB]|#[34568]")
_FRESH: Final = "\x1b[!p\x1b[H\x1b[2J"
"""In place of a full reset, which would undo the settings of whoever watches."""
_SCREEN: Final = re.compile(rb"\x1b\[\?([0-9;]{1,64}+)([hl])")
_SCREEN_MODES: Final = frozenset({b"47", b"1047", b"1049"})
_SCREEN_BYTES: Final = 3 + 64
"""What a sequence has before its last letter."""

RESTORED: Final = (
    "\x1b7\x1b[r\x1b8\x1b[0m\x1b(B\x0f\x1b[?25h\x1b[?7h\x1b[?6l\x1b[?5l\x1b[4l\x1b[?2026l"
)
"""Undoes what harmless text can have left on, but for the other screen."""
INPUT_RESTORED: Final = (
    "\x1b[?1l\x1b>\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?2004l"
)
"""Undoes what a program can have told a terminal about keys and the mouse."""
MAIN_SCREEN: Final = "\x1b[?1049l"
OTHER_SCREEN: Final = "\x1b[?1049h"


def harmless(text: str, held: str = "") -> tuple[str, str]:
    """What of `text` only draws, and what to hold for the next piece: a sequence just begun.

    Colours, the cursor, erasing, scrolling and the other screen stay. What makes a terminal
    answer, or touches the clipboard, the title, keys, the mouse or the window, goes; so does what
    is not known. What was cut in pieces gives the same as the whole.
    """
    text = held + text.translate(_C1)
    begun = _BEGUN.search(text)
    held = _shortened(begun[0]) if begun else ""
    if begun:
        text = text[: begun.start()]
    return _SEQUENCE.sub(_kept, text), held


def printable(text: str) -> str:
    """On one line, with nothing in it that a terminal would obey: the rest as escapes."""
    return "".join(c if c.isprintable() else _escape(c) for c in text)


class Screens:
    """Follows which screen a terminal shows, by what is written to it."""

    def __init__(self) -> None:
        self._end = b""
        self.other = False
        """Is it the one that full-screen programs use?"""

    def see(self, data: bytes) -> None:
        data = self._end + data
        for modes, end in _SCREEN.findall(data):
            if not _SCREEN_MODES.isdisjoint(modes.split(b";")):
                self.other = end == b"h"
        self._end = data[-_SCREEN_BYTES:]


def _kept(found: re.Match[str]) -> str:
    said = found["csi"]
    if said is None:
        other = found["other"]
        if other == "c":
            return _FRESH
        return found[0] if other and _OTHERS.fullmatch(other) else ""
    if len(said) > _LONGEST_CHARS or _LONG.search(said):
        return ""
    if modes := _MODES.fullmatch(said):
        # One by one: what is next to it must not take a good one along, or come along with it.
        wanted = [mode for mode in modes[1].split(";") if mode in _DRAWING_MODES]
        return "".join(f"\x1b[?{mode}{modes[2]}" for mode in wanted)
    return found[0] if _DRAWS.fullmatch(said) else ""


def _shortened(begun: str) -> str:
    """A string's text is thrown away in the end, so only its beginning is remembered."""
    if begun[1:2] and begun[1] in _STRING_KINDS:
        return begun[:2] + ("\x1b" if begun[2:].endswith("\x1b") else "")
    # Longer than any good one: what is left of it will be refused, whatever its end.
    return begun if len(begun) <= 2 * _LONGEST_CHARS else begun[: 2 * _LONGEST_CHARS]


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")
