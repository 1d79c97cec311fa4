"""The other end of a fake terminal: reads what the Terminal says to its bash, and runs nothing."""

import posixpath
import re
from collections import deque
from collections.abc import Callable

from sandbox.runtime.base import STATUS, ExecResult
from sandbox.runtime.terminal import lines

NOT_FOUND = 127
UNANSWERED = "the fake's reply has no answer"
_INTERRUPTED, _SHELL_PID = 130, 4242
_HELLO = re.compile(rb"printf 'H(\d{16});")
_COMMAND = re.compile(
    rb"printf '\\e\]7133;1(\d{16})\\a' >&(\d+); (?:\\builtin return .*? && \\builtin :; )?"
    rb"\\builtin eval (.*?) (?:<&|</|< <).*; \{ _\d+=",
    re.DOTALL,
)
_REPORT = re.compile(rb"printf 'R(\d{16});")
_END = re.compile(rb"\\builtin printf '\\e\]7133;2(\d{16})\\a' >&(\d+)$")

Ask = Callable[[str, str], ExecResult | None]
"""A command and the folder it is run in."""
Tell = Callable[[int, bytes], None]
"""To one of the host's streams, by its number: TERMINAL, OUTPUT or STATUS."""


def said(output: str = "", exit_code: int | None = 0, *, errors: str = "") -> ExecResult:
    """A reply. Exit code None: its time was up, or on the terminal: it runs until ^C."""
    return ExecResult(exit_code=exit_code, stdout=output.encode(), stderr=errors.encode())


class Shell:
    """Understands the lines that the Terminal sends."""

    def __init__(self, ask: Ask, cwd: str, tell: Tell) -> None:
        self._ask, self._cwd, self._tell = ask, cwd, tell
        self._left = b""
        self._waiting: deque[bytes] = deque()
        """Lines that are read when what runs has ended."""
        self._running = False
        self._prompt = b""
        """Of the command that is a shell which takes what is typed; empty when there is none."""
        self._half = b""
        self._status = 0

    def typed(self, data: bytes) -> None:
        """On the terminal: ^C ends what runs, and only a shell that was started for it reads."""
        *before, after = data.split(b"\x03")
        if before and self._running:
            self._running, self._status = False, _INTERRUPTED
            self._go_on()
        if not self._prompt:
            return
        *complete, self._half = ((b"" if before else self._half) + after).split(b"\n")
        for line in complete:
            if not self._running:
                self._asked(line)

    def signalled(self, number: int) -> None:
        """What runs in the foreground ends, a shell that takes what is typed, too."""
        if self._prompt:
            nonce, self._prompt = self._prompt, b""
            self._running = False
            self._end(nonce, lines.TERMINAL, 128 + number)
        elif self._running:
            self._running, self._status = False, 128 + number
        self._go_on()

    def sent(self, data: bytes) -> None:
        """Raises SystemExit when the shell ends, and whatever `ask` raises."""
        *complete, self._left = (self._left + data).split(b"\n")
        self._waiting += complete
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and not self._running and not self._prompt:
            self._line(self._waiting.popleft())

    def _line(self, line: bytes) -> None:
        if found := _HELLO.search(line):
            self._report(b"H", found[1], _SHELL_PID)
        elif found := _COMMAND.search(line):
            word = found[3]
            text = lines.unquote(word) if word.startswith(b"$'") else word.decode()
            self._command(text, found[1], int(found[2]))
        elif found := _REPORT.search(line):
            self._report(b"R", found[1], self._status)
        elif found := _END.search(line):
            self._tell(int(found[2]), lines.mark(lines.END, found[1]))

    def _command(self, command: str, nonce: bytes, where: int) -> None:
        self._tell(where, lines.mark(lines.BEGIN, nonce))
        if command == lines.PROMPT.decode():
            self._prompt = nonce
            return
        done = self._ask(command, self._cwd) or self._known(command.strip())
        self._tell(where, done.stdout + done.stderr)
        if done.exit_code is None:
            self._running = True
            return
        self._end(nonce, where, done.exit_code)

    def _asked(self, line: bytes) -> None:
        """By keys."""
        command = line.decode("utf-8", "surrogateescape")
        if command.strip() == "exit":
            nonce, self._prompt = self._prompt, b""
            self._end(nonce, lines.TERMINAL, 0)
            self._go_on()
            return
        done = self._ask(command, self._cwd) or self._known(command.strip())
        self._tell(lines.TERMINAL, done.stdout + done.stderr)
        self._running = done.exit_code is None

    def _end(self, nonce: bytes, where: int, status: int) -> None:
        self._status = status
        self._report(b"D", nonce, status)
        self._tell(where, lines.mark(lines.END, nonce))

    def _known(self, command: str) -> ExecResult:
        if found := re.fullmatch(r"cd (\S+)", command):
            self._cwd = posixpath.normpath(posixpath.join(self._cwd, found[1]))
            return said()
        if not command:
            return said()
        if found := re.fullmatch(r"exit(?: (\d+))?", command):
            raise SystemExit(int(found[1] or 0))
        return said("", NOT_FOUND, errors=f"bash: {command}: {UNANSWERED}\n")

    def _report(self, kind: bytes, nonce: bytes, number: int) -> None:
        where = lines.quote(self._cwd.encode("utf-8", "surrogateescape"))
        self._tell(STATUS, b"%s%s;%d;%s\n" % (kind, nonce, number, where))
