"""The terminal an agent works in: one persistent bash on a PTY in the box, driven by pexpect.

A command is typed as one line that prints a mark, evaluates the command, and prints another mark
with the exit code and the folder. The marks carry a fresh random number, so that output cannot
imitate them by chance; what an agent sees is never evidence anyway.
"""

from __future__ import annotations

import base64
import os
import secrets
import time
from collections.abc import Callable
from typing import Self

import pexpect
from pexpect import fdpexpect

from sandbox.errors import RuntimeFault, TerminalFault
from sandbox.model.step import Keys, Observation, Run, Status
from sandbox.runtime.base import Box, Pty
from sandbox.runtime.ready import writable
from sandbox.runtime.stream import HeadTail, Scanner, quote

ENVIRONMENT = {"TERM": "xterm-256color", "PAGER": "cat", "GIT_PAGER": "cat", "NO_COLOR": "1"}
"""Added to the agent's box: programs that page would wait for a key."""
_READ_BYTES = 1 << 18
_START_SECONDS = 30.0
_TYPED_BYTES = 3000
"""A terminal takes 4,096 bytes a line; longer commands are typed in pieces."""
_QUIET_SECONDS = 0.3
_INTERRUPTS = ((b"INT", 0.5), (b"INT", 1.0), (b"TERM", 1.0), (b"KILL", 2.0), (b"SHELL", 2.0))
_KILL = r"""
read -r line < /proc/$1/stat || exit 0
set -- "$1" "$2" ${line##*) }
group=$8
if [ "$2" = SHELL ]; then kill -s KILL "$1"; [ "$group" -gt 1 ] && kill -s KILL -- "-$group"
elif [ "$group" -gt 1 ] && [ "$group" != "$1" ]; then kill -s "$2" -- "-$group"; fi
exit 0
"""
Clock = Callable[[], float]


class Terminal:
    """Use it in a `with`. Every action returns an observation; only a lost box raises."""

    def __init__(
        self, box: Box, *, cwd: str, command_seconds: float, output_bytes: int,
        clock: Clock = time.monotonic,
    ) -> None:  # fmt: skip
        self._box = box
        self._cwd = cwd
        self._command_seconds = command_seconds
        self._output_bytes = output_bytes
        self._clock = clock
        self._pty: Pty | None = None
        self._stream: fdpexpect.fdspawn[bytes] | None = None
        self._shell_pid = 0
        self._last_status = 0

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._hang_up()

    @property
    def cwd(self) -> str:
        return self._cwd

    def run(self, action: Run) -> Observation:
        """Run a command to its end, or interrupt it when its time is up."""
        began = self._clock()
        command = _typed(action.command)
        if command is None or b"\0" in command:
            return self._refuse("a command cannot hold a NUL byte, or half a character")
        nonce = secrets.token_hex(8)
        sink = HeadTail(self._output_bytes)
        scanner = Scanner(nonce, sink)
        until = began + (self._command_seconds if action.seconds is None else action.seconds)
        status = Status.EXITED
        alive = self._type(self._line(command, nonce), until) and self._read(scanner, until)
        if alive and scanner.ended is None:
            status = Status.TIMED_OUT
            alive = self._interrupt(scanner, nonce)
        scanner.flush()
        if scanner.ended:
            code: int | None
            code, self._cwd = scanner.ended
            self._last_status = scanner.ended[0]
            limit = self._box.reached() if code or status is Status.TIMED_OUT else ""
        else:
            status, code, limit = self._restart()
        return self._observe(sink, status, code, began, limit)

    def keys(self, action: Keys) -> Observation:
        """Type, then show what came, until it is quiet or the time is up."""
        began = self._clock()
        typed = _typed(action.keys)
        if typed is None:
            return self._refuse("half a character cannot be typed")
        sink = HeadTail(self._output_bytes)
        until = began + action.seconds
        alive = self._type(typed, until)
        last = self._clock()
        while alive and self._clock() < until:
            try:
                data = self._receive(min(_QUIET_SECONDS, max(until - self._clock(), 0.0)))
            except EOFError:
                alive = False
                break
            if data:
                sink.write(data)
                last = self._clock()
            elif sink.total and self._clock() - last >= _QUIET_SECONDS:
                break
        if not alive:
            status, code, limit = self._restart()
            return self._observe(sink, status, code, began, limit)
        return self._observe(sink, Status.RUNNING, None, began)

    def _refuse(self, why: str) -> Observation:
        return Observation(output=why, status=Status.REFUSED, cwd=self._cwd)

    def _observe(
        self, sink: HeadTail, status: Status, code: int | None, began: float, limit: str = ""
    ) -> Observation:
        return Observation(
            output=sink.text(),
            status=status,
            exit_code=code,
            cwd=self._cwd,
            truncated=sink.truncated,
            total_bytes=sink.total,
            limit=limit,
            seconds=self._clock() - began,
        )

    def _start(self) -> None:
        nonce = secrets.token_hex(8)
        boot = "stty -echo iutf8; exec bash --noprofile --norc --noediting -i"
        self._pty = self._box.open_pty(["bash", "-c", boot], cwd=self._existing_cwd())
        fd = self._pty.fileno()
        os.set_blocking(fd, False)
        self._stream = fdpexpect.fdspawn(fd, maxread=_READ_BYTES, use_poll=True)
        hello = (
            "PS1= PS2=; set +o history +H; exec 252>&1; _sbr(){ return $1; };"
            f" builtin printf '\\e]7133;D;{nonce};%s;%q\\a' $$ \"$PWD\" >&252\n"
        )
        sink = HeadTail(4096)
        scanner = Scanner(nonce, sink, started=True)
        until = self._clock() + _START_SECONDS
        alive = self._type(hello.encode(), until) and self._read(scanner, until)
        if not alive or scanner.ended is None:
            self._hang_up()
            raise TerminalFault(f"the shell did not start: {sink.text().strip() or 'no answer'}")
        self._shell_pid, self._cwd = scanner.ended
        self._last_status = 0

    def _existing_cwd(self) -> str:
        """Where the shell was, if that is still there."""
        found = self._box.exec(["test", "-d", self._cwd], seconds=30, cwd="/")
        return self._cwd if found.exit_code == 0 else "/"

    def _restart(self) -> tuple[Status, int | None, str]:
        """The shell is gone, or cannot be saved: its exit code if it had one, and a new shell.

        Unless the box itself was stopped for a limit, which is then told.
        """
        code = self._pty.wait(1.0) if self._pty else None
        limit = self._box.reached()
        self._hang_up()
        try:
            self._start()
        except (RuntimeFault, TerminalFault):
            if not limit or self._box.lost():
                raise
            return Status.STOPPED, code, limit
        return Status.RESTARTED, code, limit

    def _hang_up(self) -> None:
        if self._pty:
            self._pty.close()
            self._pty = None

    def _line(self, command: bytes, nonce: str) -> bytes:
        """What is typed: mark, last status, the command, mark with its status and the folder."""
        begin = f"builtin printf '\\e]7133;B;{nonce}\\a' >&252; ".encode()
        if self._last_status:
            begin += b"[[ $- == *e* ]] || _sbr %d; " % (self._last_status & 0xFF)
        word, pieces = quote(command), b""
        if len(word) > _TYPED_BYTES:
            coded = base64.b64encode(word)
            cut = [coded[i : i + _TYPED_BYTES] for i in range(0, len(coded), _TYPED_BYTES)]
            pieces = b"_sbc=\n" + b"".join(b"_sbc+=%s\n" % piece for piece in cut)
            word = b'"$(eval builtin printf %s "$(base64 -d <<<$_sbc)")"'
        end = (
            f" 252<&-; {{ _sbrc=$?; PS1=; builtin printf '\\e]7133;D;{nonce};%s;%q\\a'"
            ' "$_sbrc" "$PWD" >&252; } 2>/dev/null\n'
        )
        return pieces + begin + b"eval " + word + end.encode()

    def _interrupt(self, scanner: Scanner, nonce: str) -> bool:
        """End the foreground group, gently first. False when the shell is gone."""
        report = f'builtin printf \'\\e]7133;R;{nonce};%s;%q\\a\' "$?" "$PWD" >&252 2>/dev/null\n'
        for signal, seconds in _INTERRUPTS:
            until = self._clock() + seconds
            if signal == b"INT":
                # ^C also throws away what is typed ahead, so the report is typed after it.
                self._type(b"\x03", until)
                if not self._read(scanner, min(until, self._clock() + 0.1)):
                    return False
                if scanner.ended is None:
                    self._type(b"\n" + report.encode(), until)
            else:
                argv = ["sh", "-c", _KILL, "sh", str(self._shell_pid), signal.decode()]
                try:
                    self._box.exec(argv, seconds=30, cwd="/")
                except RuntimeFault:
                    if signal == b"SHELL":
                        raise
                    continue
            if not self._read(scanner, until):
                return False
            if scanner.ended:
                return True
        return False

    def _read(self, scanner: Scanner, until: float) -> bool:
        """Feed the scanner until it has seen the end or time is up. False at the shell's end."""
        while scanner.ended is None:
            left = until - self._clock()
            if left <= 0:
                return True
            try:
                scanner.feed(self._receive(left))
            except EOFError:
                return False
        return True

    def _receive(self, seconds: float) -> bytes:
        """What the terminal printed; empty after `seconds` of silence. EOFError at its end."""
        assert self._stream  # noqa: S101 - for the type checker: there is one between start and end
        try:
            data: bytes = self._stream.read_nonblocking(_READ_BYTES, seconds)
        except pexpect.TIMEOUT:
            return b""
        except (pexpect.EOF, OSError) as e:
            raise EOFError from e
        return data

    def _type(self, data: bytes, until: float) -> bool:
        """Type it all, as fast as it is taken. False when the terminal is gone."""
        assert self._pty  # noqa: S101 - for the type checker: there is one between start and end
        fd = self._pty.fileno()
        while data:
            left = until - self._clock()
            if left <= 0 or not writable(fd, left):
                return True
            try:
                data = data[os.write(fd, data[:1024]) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True


def _typed(text: str) -> bytes | None:
    """Its bytes; None for half a character, as JSON can hold one and models write them."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None
