"""What a terminal's window shows, from what was printed on it."""

import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress

import pyte
from pyte.screens import Char

from sandbox.model.step import Screen
from sandbox.runtime.terminal.scene import RESTORE, SAVE, number, scene

_PIECE = re.compile(r"[ -~]+|[^ -~]")


def drawn(printed: bytes, rows: int, cols: int) -> Screen:
    """Whatever was printed, and in bounded time: what is too long ago is not drawn."""
    window = _Window(rows, cols)
    for piece in scene(printed, rows, cols):
        # Pass over what makes no sense, as terminals do; pyte raises for it, in many ways.
        with suppress(Exception):
            window.take(piece)
    cursor = window.screen.cursor
    return Screen(
        lines=tuple(_line(window.screen.buffer[y], cols) for y in range(rows)),
        row=cursor.y,
        col=min(cursor.x, cols - 1),
        cols=cols,
    )


class _Window:
    """Pyte's, and what it does not know or has otherwise than xterm."""

    def __init__(self, rows: int, cols: int) -> None:
        self.screen = pyte.Screen(cols, rows)
        self._stream = pyte.Stream(self.screen)
        self._saved = (0, 0)
        self._drawn_last = ""

    def take(self, piece: str) -> None:
        if piece[0] != "\x1b":
            self._text(piece)
        elif piece in SAVE:
            self._saved = self.screen.cursor.x, self.screen.cursor.y
        elif piece in RESTORE:
            self.screen.cursor.x, self.screen.cursor.y = self._saved
        elif not self._own(piece):
            self._stream.feed(piece)

    def _text(self, text: str) -> None:
        if text <= "\r":
            self._stream.feed(text)
            return
        self._drawn_last = text[-1]
        # It gives up what follows a letter that it cannot draw, such as a space without a width.
        for piece in _PIECE.findall(text):
            self.screen.draw(piece)

    def _own(self, piece: str) -> bool:
        screen = self.screen
        match piece[1:2] + piece[-1]:
            case "EE":
                screen.carriage_return()
                screen.linefeed()
            case "[b":
                self._text(self._drawn_last * number(piece))
            case "[S" | "[T":
                self._scroll(min(number(piece), screen.lines), up=piece.endswith("S"))
            case "[Z":
                stops = sorted(stop for stop in screen.tabstops if stop < screen.cursor.x)
                screen.cursor.x = [0, *stops][-min(number(piece), len(stops) + 1)]
            case "[`":
                screen.cursor_to_column(number(piece))
            case "[a":
                screen.cursor_forward(number(piece))
            case "[r":
                top, _, bottom = piece[2:-1].partition(";")
                screen.set_margins(int(top or 0) or 1, int(bottom or 0) or screen.lines)
                screen.cursor_position()
            case "[p":
                screen.margins = None
                screen.set_mode(7, private=True)
                screen.reset_mode(4)
            case _:
                return False
        return True

    def _scroll(self, count: int, *, up: bool) -> None:
        screen, before = self.screen, self.screen.cursor.y
        top, bottom = screen.margins or (0, screen.lines - 1)
        screen.cursor.y = bottom if up else top
        for _ in range(count):
            if up:
                screen.index()
            else:
                screen.reverse_index()
        screen.cursor.y = before


def _line(cells: Mapping[int, Char], cols: int) -> str:
    """A wide letter has an empty cell after it: unless another was drawn over the letter."""
    shown, wide = "", False
    for x in range(cols):
        data = cells[x].data
        shown += data if data or wide else " "
        wide = bool(data) and unicodedata.east_asian_width(data[0]) in "WF"
    return shown.rstrip()
