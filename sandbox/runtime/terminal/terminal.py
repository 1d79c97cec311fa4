"""The terminal: an agent's actions in, observations out. Nothing it sees here is evidence."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self, assert_never

from sandbox.errors import RuntimeFault, TerminalFault
from sandbox.model.step import (
    Keys,
    Observation,
    Run,
    Screen,
    Signal,
    Status,
    TerminalAction,
    Wait,
)
from sandbox.runtime.base import Box
from sandbox.runtime.terminal import ending, keys, lines
from sandbox.runtime.terminal.exchange import Exchange
from sandbox.runtime.terminal.follow import Came, Follower
from sandbox.runtime.terminal.shell import OUTPUT_BYTES, Shell
from sandbox.runtime.terminal.sink import Sink
from sandbox.runtime.terminal.tape import Tape

ENVIRONMENT = {"TERM": "xterm-256color", "PAGER": "cat", "GIT_PAGER": "cat", "NO_COLOR": "1"}
"""Added to the agent's box: programs that page would wait for a key."""
_STEPS = (("INT", 0.5), ("INT", 0.5), ("TERM", 1.0), ("KILL", 2.0), ("SHELL", 2.0))
_PROMPT_SECONDS = 5.0
_LAST_SECONDS = 0.5
_LABEL = 200
Clock = Callable[[], float]


class Terminal:
    """Use it in a `with`. Every action returns an observation, whatever becomes of the box."""

    def __init__(
        self, box: Box, *, cwd: str, command_seconds: float, output_bytes: int,
        rows: int = 40, cols: int = 160, folder: Path | None = None, tape: Tape | None = None,
        clock: Clock = time.monotonic,
    ) -> None:  # fmt: skip
        """`folder`: where output is kept that is longer than `output_bytes`."""
        self._box = box
        self._cwd = cwd
        self._command_seconds = command_seconds
        self._output_bytes = output_bytes
        self._size = rows, cols
        self._folder = folder
        self._tape = tape or Tape()
        self._clock = clock
        self._shell: Shell | None = None
        self._running: Follower | None = None
        self._exchange: Exchange | None = None
        """Of what runs in the foreground."""
        self._prompt = False
        """That is a bash which was started to take keys."""
        self._last_status = 0
        self._outputs = 0

    def __enter__(self) -> Self:
        """Raises RuntimeFault or TerminalFault."""
        self._shell = self._fresh()
        self._shell.drain(on=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._shell:
            self._shell.close()
            self._shell = None
        if self._exchange:
            self._exchange.sink.close()

    @property
    def cwd(self) -> str:
        return self._cwd

    def do(self, action: TerminalAction) -> Observation:
        """Carry it out, and show what came of it."""
        if self._shell is None:
            return self._refusal("there is no shell any more", Status.SHELL_LOST)
        began = self._clock()
        self._shell.drain(on=False)
        self._shell.read_rest()
        try:
            match action:
                case Run():
                    return self._run(action, began)
                case Keys():
                    return self._keys(action, began)
                case Wait():
                    return self._wait(action, began)
                case Signal():
                    return self._signal(action, began)
                case _:
                    assert_never(action)
        except (RuntimeFault, TerminalFault):
            if not self._box.lost():
                raise
            return Observation(status=Status.BOX_LOST, cwd=self._cwd)
        finally:
            if self._shell:
                self._shell.drain(on=True)

    def resize(self, rows: int, cols: int) -> None:
        self._size = rows, cols
        if self._shell:
            self._shell.resize(rows, cols)

    def _run(self, action: Run, began: float) -> Observation:
        command, stdin = _bytes(action.command), _bytes(action.stdin or "")
        if command is None or stdin is None or b"\0" in command + stdin:
            return self._refusal("a command cannot hold a NUL byte, or half a character")
        if self._prompt:
            self._leave_prompt()
        self._forget_if_over()
        if self._exchange:
            return self._refusal(
                "a program is still running in the foreground: type into it with keys, look at it"
                " with wait, or end it with signal"
            )
        given = None if action.stdin is None else stdin
        seconds = self._command_seconds if action.seconds is None else action.seconds
        follower = self._begin(command, tty=action.tty, stdin=given, fold=action.fold)
        keep = action.on_timeout == "keep"
        came = follower.follow(began + seconds, "input" if keep else "exit")
        return self._seen(came, action.screen, began, keep=keep)

    def _keys(self, action: Keys, began: float) -> Observation:
        typed = _bytes(action.keys)
        codes = [keys.named(name) for name in action.named]
        if typed is None:
            return self._refusal("half a character cannot be typed")
        if None in codes:
            return self._refusal(f"there is no key `{action.named[codes.index(None)]}`")
        self._forget_if_over()
        if self._running is None:
            self._open_prompt()
        assert self._shell and self._running and self._exchange  # noqa: S101 - for the type checker
        if action.fold:
            self._exchange.sink.fold()
        self._tape.marker(f"keys: {typed[:_LABEL].decode('utf-8', 'replace')!r}")
        until = began + action.seconds
        data = typed + b"".join(code for code in codes if code)
        self._shell.type(data, max(action.seconds, 0.0))
        came = self._running.follow(until, action.until, text=_bytes(action.text or "") or b"")
        return self._seen(came, action.screen, began, keep=True)

    def _wait(self, action: Wait, began: float) -> Observation:
        self._forget_if_over()
        assert self._shell  # noqa: S101 - for the type checker
        if self._running is None or self._exchange is None:
            while action.until == "quiet" and self._shell.pump(_left(began, action, self._clock)):
                pass
            return self._observe(Status.EXITED, None, began, None)
        if action.fold:
            self._exchange.sink.fold()
        self._tape.marker("wait")
        text = _bytes(action.text or "") or b""
        came = self._running.follow(began + action.seconds, action.until, text=text)
        return self._seen(came, action.screen, began, keep=True)

    def _signal(self, action: Signal, began: float) -> Observation:
        name = action.name.upper().removeprefix("SIG")
        if f"SIG{name}" not in signal.Signals.__members__:
            return self._refusal(f"there is no signal `{action.name}`")
        self._forget_if_over()
        assert self._shell  # noqa: S101 - for the type checker
        if self._running is None and action.target == "foreground":
            return self._refusal("nothing runs in the foreground")
        self._tape.marker(f"signal: {name}")
        ending.signalled(self._box, self._shell.pid, name, scope=action.target)
        if self._running is None:
            return self._observe(Status.EXITED, None, began, None)
        came = self._running.follow(began + action.seconds, "exit")
        return self._seen(came, action.screen, began, keep=True)

    def _begin(
        self, command: bytes, *, tty: bool, stdin: bytes | None = None, fold: bool = False
    ) -> Follower:
        assert self._shell  # noqa: S101 - for the type checker
        shell, nonce = self._shell, lines.fresh_nonce()
        label = command[:_LABEL].decode("utf-8", "replace")
        self._tape.marker(label)
        self._tape.output(b"$ " + command.replace(b"\n", b"\r\n") + b"\r\n")
        exchange = Exchange(
            nonce, self._sink(fold=fold), tty=tty, printed=shell.printed, aside=shell.put_aside
        )
        shell.exchange = exchange
        shell.send(lines.command(command, nonce, last=self._last_status, tty=tty, stdin=stdin))
        self._exchange, self._running = exchange, Follower(shell, exchange, self._clock)
        return self._running

    def _open_prompt(self) -> None:
        """Keys are typed to somebody: to a bash that reads the terminal, as a person's does."""
        follower = self._begin(lines.PROMPT, tty=True)
        self._prompt = True
        follower.follow(self._clock() + _PROMPT_SECONDS, "input")

    def _leave_prompt(self) -> None:
        assert self._shell and self._running  # noqa: S101 - for the type checker
        ending.signalled(self._box, self._shell.pid, "KILL")
        came = self._running.follow(self._clock() + _PROMPT_SECONDS, "exit")
        if came is not Came.END:
            self._replace()
        self._forget_if_over()
        self._prompt = False

    def _forget_if_over(self) -> None:
        """What ran on has ended since it was last looked at, and nobody has seen its last words."""
        if self._exchange and self._exchange.over and self._shell:
            self._exchange.finish()
            self._close_exchange(self._shell)

    def _close_exchange(self, shell: Shell) -> None:
        exchange, self._exchange, self._running, self._prompt = self._exchange, None, None, False
        assert exchange  # noqa: S101 - for the type checker
        shell.exchange = None
        if exchange.report:
            self._last_status, self._cwd = exchange.report.status, exchange.report.cwd
        exchange.sink.close()

    def _seen(self, came: Came, screen: bool, began: float, *, keep: bool) -> Observation:  # noqa: FBT001
        """What to do about it, and what to show."""
        assert self._exchange and self._shell  # noqa: S101 - for the type checker
        exchange, sent, limit = self._exchange, (), ""
        status = Status.EXITED
        if came is Came.FULL:
            limit = f"the output limit of {OUTPUT_BYTES >> 20} MiB for one command was reached"
        if came is Came.FULL or (came is Came.TIME and not keep):
            status = Status.TIMED_OUT
            came, sent = self._interrupt()
        if came is Came.DEATH:
            return self._death(began, sent, limit)
        if came is not Came.END:
            waits = came is Came.INPUT
            status = Status.AWAITING_INPUT if waits else Status.RUNNING
            seen = self._observe(status, None, began, exchange.sink, screen=screen)
            exchange.sink.close()
            exchange.sink = self._sink(fold=False)
            return seen
        exchange.finish()
        assert exchange.report  # noqa: S101 - it is over
        code = exchange.report.status
        self._close_exchange(self._shell)
        if code or status is Status.TIMED_OUT:
            limit = "; ".join(filter(None, (limit, self._box.reached())))
        return self._observe(
            status, code, began, exchange.sink, screen=screen, limit=limit, signals=sent
        )

    def _interrupt(self) -> tuple[Came, tuple[str, ...]]:
        """End what runs in the foreground, gently first, with all that it has started."""
        assert self._shell and self._running  # noqa: S101 - for the type checker
        box, shell, follower = self._box, self._shell, self._running
        family = ending.signalled(box, shell.pid, "LIST")
        sent: list[str] = []
        came = Came.TIME
        for name, seconds in _STEPS:
            if not sent:
                shell.type(b"\x03", seconds)
            elif name == "SHELL" and not ending.signalled(box, shell.pid, name, family):
                box.kill_all()
            elif name != "SHELL":
                family += ending.signalled(box, shell.pid, name, family)
            sent.append(name)
            came = follower.follow(self._clock() + seconds, "exit", enough=1 << 62)
            if came in (Came.END, Came.DEATH):
                break
        if family and ending.signalled(box, shell.pid, "LEFT", family) and "KILL" not in sent:
            sent.append("KILL")
        return (came if came is Came.END else Came.DEATH), tuple(sent)

    def _death(self, began: float, sent: tuple[str, ...], limit: str) -> Observation:
        assert self._exchange  # noqa: S101 - for the type checker
        sink = self._exchange.sink
        status, code, reached = self._replace()
        limit = "; ".join(filter(None, (limit, reached)))
        return self._observe(status, code, began, sink, limit=limit, signals=sent)

    def _replace(self) -> tuple[Status, int | None, str]:
        """The shell is gone, or cannot be saved: its exit code if it had one, and a new shell."""
        assert self._shell  # noqa: S101 - for the type checker
        old, self._shell = self._shell, None
        code = old.exit_code(_LAST_SECONDS)
        old.read_rest()
        if self._exchange:
            self._exchange.finish()
            self._close_exchange(old)
        self._last_status = 0
        limit = self._box.reached()
        old.close()
        try:
            self._shell = self._fresh()
        except (RuntimeFault, TerminalFault):
            if self._box.lost():
                return Status.BOX_LOST, code, limit
            return (Status.STOPPED if limit else Status.SHELL_LOST), code, limit
        self._shell.put_aside(old.aside.raw())
        return Status.RESTARTED, code, limit

    def _fresh(self) -> Shell:
        rows, cols = self._size
        shell = Shell(self._box, self._existing_cwd(), rows=rows, cols=cols, tape=self._tape)
        self._cwd = shell.cwd
        return shell

    def _existing_cwd(self) -> str:
        """Where the shell was, if that is still there."""
        found = self._box.exec(["test", "-d", self._cwd], seconds=30, cwd="/")
        return self._cwd if found.exit_code == 0 else "/"

    def _sink(self, *, fold: bool) -> Sink:
        self._outputs += 1
        spool = self._folder and self._folder / f"output-{self._outputs:04}.txt"
        return Sink(self._output_bytes, spool, fold=fold)

    def _refusal(self, why: str, status: Status = Status.REFUSED) -> Observation:
        return Observation(output=why, status=status, cwd=self._cwd)

    def _observe(
        self, status: Status, code: int | None, began: float, sink: Sink | None, *,
        screen: bool = False, limit: str = "", signals: tuple[str, ...] = (),
    ) -> Observation:  # fmt: skip
        return Observation(
            output=sink.text() if sink else "",
            status=status,
            exit_code=code,
            cwd=self._cwd,
            truncated=bool(sink and sink.truncated),
            total_bytes=sink.total if sink else 0,
            sha256=sink.sha256 if sink else "",
            spool=sink.spooled if sink else "",
            background=self._shell.take_aside() if self._shell else "",
            limit=limit,
            signals=signals,
            screen=self._screen() if screen else None,
            seconds=self._clock() - began,
        )

    def _screen(self) -> Screen | None:
        from sandbox.runtime.terminal.screen import drawn

        rows, cols = self._size
        return drawn(bytes(self._shell.drawn), rows, cols) if self._shell else None


def _left(began: float, action: Wait, clock: Clock) -> float:
    return began + action.seconds - clock()


def _bytes(text: str | bytes) -> bytes | None:
    """None for half a character, as JSON can hold one and models write them."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None
