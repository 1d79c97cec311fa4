"""The other end of a fake terminal: reads what the Terminal types, and runs nothing."""

import base64
import posixpath
import re
from collections.abc import Callable

from sandbox.runtime.base import ExecResult
from sandbox.runtime.stream import quote, unquote

NOT_FOUND = 127
UNANSWERED = "the fake's reply has no answer"
_INTERRUPTED, _SHELL_PID = 130, 4242
_HELLO = re.compile(rb"7133;D;([0-9a-f]{16});%s;%q\\a' \$\$ ")
_COMMAND = re.compile(rb"builtin printf '.*?7133;B;([0-9a-f]{16})\\a' >&252; .*?eval (.*) 252<&-; ")
_REPORT = re.compile(rb"7133;R;([0-9a-f]{16});")

Ask = Callable[[str, str], ExecResult | None]
"""A command and the folder it is run in."""


def said(output: str = "", exit_code: int | None = 0, *, errors: str = "") -> ExecResult:
    """A reply. Exit code None: its time was up, or on the terminal: it runs until ^C."""
    return ExecResult(exit_code=exit_code, stdout=output.encode(), stderr=errors.encode())


class Shell:
    """Understands the lines that the Terminal types; takes any other line for a command."""

    def __init__(self, ask: Ask, cwd: str, tell: Callable[[bytes], None]) -> None:
        self._ask, self._cwd, self._tell = ask, cwd, tell
        self._left = b""
        self._coded = b""
        self._running = False

    def typed(self, data: bytes) -> None:
        """Raises SystemExit when the shell ends, and whatever `ask` raises."""
        # ^C ends what runs, and throws away what was typed before it.
        *before, after = (self._left + data).split(b"\x03")
        self._running = self._running and not before
        *lines, self._left = after.split(b"\n")
        for line in lines:
            self._line(line)

    def _line(self, line: bytes) -> None:
        if self._running or not line.strip():
            return
        if found := _HELLO.search(line):
            self._mark(b"D", found[1], _SHELL_PID)
        elif found := _REPORT.search(line):
            self._mark(b"R", found[1], _INTERRUPTED)
        elif line.startswith(b"_sbc="):
            self._coded = b""
        elif line.startswith(b"_sbc+="):
            self._coded += line.removeprefix(b"_sbc+=")
        elif found := _COMMAND.match(line):
            word = found[2] if found[2].startswith(b"$'") else base64.b64decode(self._coded)
            self._tell(b"\x1b]7133;B;%s\x07" % found[1])
            self._command(unquote(word), found[1])
        else:
            self._command(line.decode("utf-8", "surrogateescape"), b"")

    def _command(self, command: str, nonce: bytes) -> None:
        done = self._ask(command, self._cwd) or self._known(command.strip())
        self._tell(done.stdout + done.stderr)
        if done.exit_code is None:
            self._running = True
        elif nonce:
            self._mark(b"D", nonce, done.exit_code)

    def _known(self, command: str) -> ExecResult:
        if found := re.fullmatch(r"cd (\S+)", command):
            self._cwd = posixpath.normpath(posixpath.join(self._cwd, found[1]))
            return said()
        if found := re.fullmatch(r"exit(?: (\d+))?", command):
            raise SystemExit(int(found[1] or 0))
        return said("", NOT_FOUND, errors=f"bash: {command}: {UNANSWERED}\n")

    def _mark(self, kind: bytes, nonce: bytes, number: int) -> None:
        where = quote(self._cwd.encode("utf-8", "surrogateescape"))
        self._tell(b"\x1b]7133;%s;%s;%d;%s\x07" % (kind, nonce, number, where))
