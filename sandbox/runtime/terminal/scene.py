"""What of all that was printed on a terminal has to be drawn, to know what its window shows."""

import re
import unicodedata
from typing import Final

from sandbox.formats.controls import harmless

LOOKED_AT_BYTES: Final = 1 << 18
EFFORT: Final = 4_000_000
"""For one screen, in cells touched or the like: about a second. What came before is not drawn."""
MARKS: Final = 8
"""Accents on one letter. Each costs as much time as all before it on the same letter."""

_TOKEN: Final = re.compile(
    r"\x1b\[[?!]?[0-9;]{0,128}[@-~]|\x1b[^\[]|[\x08-\x0d]|[^\x1b\x08-\x0d]{1,1024}", re.DOTALL
)
_SHOWS_NOTHING: Final = re.compile(
    r"\x1b\[[0-9;:]{0,128}m|\x1b\[\??3J|\x1b\[\?(?:5|6|25|2026)[hl]|\x1b[()#].|[\x0e\x0f]",
    re.DOTALL,
)
_SWITCH: Final = re.compile(r"\x1b\[\?(?:47|1047|1049)([hl])")
_HOME: Final = re.compile(r"\x1b\[[01]?(?:;[01]?)?[Hf]")
_EMPTY_ALL: Final = re.compile(r"\x1b\[\??2J")
_EMPTY_REST: Final = re.compile(r"\x1b\[\??[02]?J")
_SETTING: Final = re.compile(r"\x1b\[(?:4[hl]|\?7[hl]|[0-9;]{0,128}r|!p)")
_SETTINGS: Final = 64
SAVE: Final = frozenset({"\x1b7", "\x1b[s", "\x1b[?1048h"})
RESTORE: Final = frozenset({"\x1b8", "\x1b[u", "\x1b[?1048l"})
_MARK_EFFORT: Final = 500


def scene(printed: bytes, rows: int, cols: int) -> list[str]:
    """In pieces: text, one control character, or one sequence that draws."""
    cut = len(printed) >= LOOKED_AT_BYTES
    text = _from_a_beginning(printed) if cut else printed.decode("utf-8", "replace")
    # A full reset shows the main screen.
    tame, _ = harmless(text.replace("\x1bc", "\x1b[?1049l\x1bc"))
    tame = _shown_now(_SHOWS_NOTHING.sub("", tame), cut=cut)
    return _last(_TOKEN.findall(_with_few_marks(tame)), rows, cols)


def effort(piece: str, rows: int, cols: int, *, inserting: bool = False) -> int:
    """What it costs to draw it. `inserting`: letters may push others aside."""
    letter = 8 + rows // cols + (2 * cols if inserting else 0)
    end = piece[-1]
    if not piece.startswith("\x1b"):
        marks = 0 if piece.isascii() else sum(map(_is_mark, piece))
        return (rows + cols if piece <= "\r" else 0) + len(piece) * letter + marks * _MARK_EFFORT
    said = 20 + 2 * len(piece)
    if end == "b":
        return said + number(piece) * letter
    if end in "ST":
        return said + min(number(piece), rows) * 2 * rows
    return said + {"J": rows * cols // 2, "P": 8 * cols}.get(end, rows + cols)


def number(piece: str) -> int:
    """The first of a sequence; 1 if there is none, as for all that count."""
    digits = re.search(r"[0-9]{1,4}", piece)
    return max(1, int(digits[0])) if digits else 1


def _from_a_beginning(printed: bytes) -> str:
    """What is cut off amid a sequence would show what is left of it."""
    last = printed[-LOOKED_AT_BYTES:]
    whole = re.search(rb"[\n\x1b]", last[:4096])
    return last[whole.start() if whole else 0 :].decode("utf-8", "replace")


def _shown_now(text: str, *, cut: bool) -> str:
    """Only what went to the screen that shows: the main one, or that of full-screen programs."""
    first, *rest = _SWITCH.split(text)
    main, other = [first], list[str]()
    on_main, known = True, not cut
    for kind, printed in zip(rest[::2], rest[1::2], strict=True):
        if kind == "h":
            if on_main:
                other.clear()
            on_main = False
        else:
            if on_main and not known:
                main.clear()  # it went to the other, which was shown before what we have
            on_main = True
        known = True
        (main if on_main else other).append(printed)
    return "".join(main if on_main else other)


def _last(pieces: list[str], rows: int, cols: int) -> list[str]:
    """From where all was emptied last, or from where it is not too much to draw."""
    inserting = "\x1b[4h" in pieces
    left, restores, begin = EFFORT, False, len(pieces)
    while begin:
        piece = pieces[begin - 1]
        left -= effort(piece, rows, cols, inserting=inserting)
        if left < 0:
            break
        begin -= 1
        # What is restored may have been saved before.
        restores = piece in RESTORE or (restores and piece not in SAVE)
        if not restores and _empties(*pieces[begin : begin + 2]):
            break
    before = dict.fromkeys(reversed([p for p in pieces[:begin] if _SETTING.fullmatch(p)]))
    return [*reversed(list(before)[:_SETTINGS]), *pieces[begin:]]


def _empties(piece: str, following: str = "") -> bool:
    """One alone leaves the cursor, or what is above it."""
    if _HOME.fullmatch(piece):
        return bool(_EMPTY_REST.fullmatch(following))
    return bool(_EMPTY_ALL.fullmatch(piece) and _HOME.fullmatch(following))


def _with_few_marks(text: str) -> str:
    if text.isascii():
        return text
    kept, run = [], 0
    for char in text:
        run = run + 1 if _is_mark(char) else 0
        if run <= MARKS:
            kept.append(char)
    return "".join(kept)


def _is_mark(char: str) -> bool:
    return unicodedata.combining(char) > 0
