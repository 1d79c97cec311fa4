"""Places in a text, as Python's parser names them, and edits there. Pure."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Of the text as it was: characters from `start` to `end` become `new`."""

    start: int
    end: int
    new: str


class Places:
    """Line and column of the parser, which counts bytes → place in the text."""

    def __init__(self, text: str) -> None:
        # Not splitlines(): a form feed or U+2028 ends no line of Python's.
        self._lines = text.replace("\r\n", "\n").split("\n") if "\r" not in text else []
        if not self._lines:
            raise ValueError("the text has carriage returns")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def at(self, line: int, column: int) -> int:
        text = self._lines[line - 1]
        inside = len(text.encode("utf-8")[:column].decode("utf-8"))
        return self._starts[line - 1] + inside

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None  # noqa: S101 - the parser gives every node its end
        assert node.end_col_offset is not None  # noqa: S101
        return (
            self.at(node.lineno, node.col_offset),
            self.at(node.end_lineno, node.end_col_offset),
        )

    def line_start(self, line: int) -> int:
        return self._starts[line - 1]

    def line(self, number: int) -> str:
        return self._lines[number - 1]


def edited(text: str, edits: Iterable[Edit]) -> str:
    """All of them; where one lies within another, the outer one is left out."""
    taken: list[Edit] = []
    for edit in sorted(edits):
        if taken and edit.start < taken[-1].end:
            if edit.end <= taken[-1].end:
                taken[-1:] = [edit]
            continue
        taken.append(edit)
    for edit in reversed(taken):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text
