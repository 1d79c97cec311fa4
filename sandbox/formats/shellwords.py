"""Shell scripts, as far as to see which programs they call: simple commands with their lines.

Nothing is expanded. What is only known when a script runs is seen when it runs.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_HEREDOC = re.compile(r"<<(-?)\s*([\"']?)([A-Za-z_][A-Za-z0-9_]*)\2")
_LEADING = frozenset({
    "if", "then", "else", "elif", "do", "while", "until", "!", "{", "(", "time", "exec", "sudo",
    "env", "nohup", "command", "nice",
})  # fmt: skip
"""Words before the one that is a program's name."""
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_OPERATOR = re.compile(r"&&|\|\||;;|\|&|[;|&\n()]")


@dataclass(frozen=True, slots=True)
class Simple:
    """One command: its words without quotes."""

    line: int
    words: tuple[str, ...]
    piped: bool
    """Into the next."""


@dataclass(slots=True)
class _Lexer:
    text: str
    line: int
    at: int = 0
    word: str | None = None
    words: list[str] = field(default_factory=list)
    begun: int = 0
    ends: list[tuple[str, bool]] = field(default_factory=list)
    """Of texts that begin on the next line: what ends each, and whether tabs before it count."""

    def run(self) -> Iterator[Simple]:
        while self.at < len(self.text):
            c = self.text[self.at]
            if c in "'\"":
                self._quoted(c)
            elif c == "\\":
                self._escaped()
            elif c == "#" and self.word is None:
                self._skip_to(self.text.find("\n", self.at))
            elif c == "$" and self.text[self.at + 1 : self.at + 2] in ("(", "{"):
                self._nested(self.text[self.at + 1])
            elif here := _HEREDOC.match(self.text, self.at):
                self.ends.append((here[3], bool(here[1])))
                self.at = here.end()
            elif operator := _OPERATOR.match(self.text, self.at):
                yield from self._operate(operator[0])
            elif c in " \t\r":
                self._end_word()
                self.at += 1
            else:
                self._add(c)
                self.at += 1
        yield from self._end(piped=False)

    def _add(self, text: str) -> None:
        if self.word is None:
            self.word = ""
            if not self.words:
                self.begun = self.line
        self.word += text

    def _end_word(self) -> None:
        if self.word is not None:
            self.words.append(self.word)
            self.word = None

    def _end(self, *, piped: bool) -> Iterator[Simple]:
        self._end_word()
        found, self.words = _stripped(self.words), []
        if found:
            yield Simple(self.begun, found, piped)

    def _operate(self, operator: str) -> Iterator[Simple]:
        if operator == "&" and self.word is not None and self.word.endswith(">"):
            self._add("&")  # 2>&1
            self.at += 1
            return
        yield from self._end(piped=operator in ("|", "|&"))
        self.at += len(operator)
        if operator == "\n":
            self.line += 1
            self._skip_texts()

    def _skip_texts(self) -> None:
        for end, tabs in self.ends:
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self.at, self.line = stop + 1, self.line + 1
                if (line.lstrip("\t") if tabs else line) == end:
                    break
        self.ends.clear()

    def _quoted(self, quote: str) -> None:
        self._add("")
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != quote:
            c = self.text[self.at]
            if c == "\\" and quote == '"' and self.text[self.at + 1 : self.at + 2] in '"\\$`\n':
                self.at += 1
                c = self.text[self.at : self.at + 1]
            self.line += c == "\n"
            self._add(c)
            self.at += 1
        self.at += 1

    def _escaped(self) -> None:
        c = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if c == "\n":
            self.line += 1
        elif c == "\r" and self.text[self.at : self.at + 1] == "\n":
            self.line, self.at = self.line + 1, self.at + 1
        else:
            self._add(c)

    def _nested(self, opening: str) -> None:
        """`$(…)` and `${…}`, as they are."""
        closing, depth = {"(": ")", "{": "}"}[opening], 0
        while self.at < len(self.text):
            c = self.text[self.at]
            depth += (c == opening) - (c == closing)
            self.line += c == "\n"
            self._add(c)
            self.at += 1
            if c == closing and depth == 0:
                return

    def _skip_to(self, end: int) -> None:
        self.at = len(self.text) if end < 0 else end


def simple_commands(text: str, *, first: int = 1) -> list[Simple]:
    """Those of a script; `first`: the number of its first line."""
    return list(_Lexer(text, first).run())


def with_values(text: str, known: Mapping[str, str]) -> str:
    """A script with the values of the variables that are known beforehand."""

    def value(found: re.Match[str]) -> str:
        return known.get(found[1] or found[2], found[0])

    return _VARIABLE.sub(value, text)


def _stripped(words: list[str]) -> tuple[str, ...]:
    n = 0
    while n < len(words) and (words[n] in _LEADING or _ASSIGNED.fullmatch(words[n])):
        n += 1
    found = words[n:]
    return _timed(found[1:]) if found[:1] == ["timeout"] else tuple(found)


def _timed(words: list[str]) -> tuple[str, ...]:
    """What `timeout` starts, after its options and its time."""
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in ("-k", "-s", "--signal", "--kill-after") else words[1:]
    return _stripped(words[1:])
