"""The terminal: an agent's actions in, observations out. Nothing it sees here is evidence."""

import signal
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, assert_never

from sandbox.errors import RuntimeFault, TerminalFault
from sandbox.model.step import Keys, Observation, Run, Screen, Signal, Status, TerminalAction, Wait
from sandbox.runtime import limits
from sandbox.runtime.base import Box
from sandbox.runtime.terminal import keys, lines
from sandbox.runtime.terminal.ending import interrupt
from sandbox.runtime.terminal.exchange import Exchange
from sandbox.runtime.terminal.follow import CONTINUE, Came, Follower
from sandbox.runtime.terminal.paste import whole
from sandbox.runtime.terminal.shell import OUTPUT_BYTES, Shell
from sandbox.runtime.terminal.sink import SPOOLED_BYTES, Sink
from sandbox.runtime.terminal.tape import Tape

ENVIRONMENT = {"TERM": "xterm-256color", "PAGER": "cat", "GIT_PAGER": "cat", "NO_COLOR": "1"}
"""Added to the agent's box: programs that page would wait for a key."""
_PROMPT_SECONDS, _LAST_SECONDS, _MARK_SECONDS = 5.0, 0.5, 5.0
_LABEL = 200
_NOT_DONE = "the shell had ended before: this was not done\n"
_NOT_KNOWN = "the shell has ended: whether this was begun is not known\n"
_BUSY = (
    "a program is still running in the foreground: type into it with keys, look at it with wait,"
    " or end it with signal"
)
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Job:
    """What runs in the foreground."""

    exchange: Exchange
    follower: Follower
    prompt: bool = False
    """A bash that was started to take keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of it, for an observation."""

    status: Status
    exit_code: int | None = None
    output: str = ""
    """In place of what a command has printed."""
    limit: str = ""
    signals: tuple[str, ...] = ()


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
        self._job: Job | None = None
        self._lost = Status.SHELL_LOST
        """Why there is no shell, once there is none."""
        self._last_status = 0
        self._outputs = 0
        self._spool_left = SPOOLED_BYTES

    def __enter__(self) -> Self:
        """Raises RuntimeFault or TerminalFault."""
        self._shell = self._fresh()
        self._shell.drain(on=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._job:
            self._job.exchange.sink.close()
        if self._shell:
            self._shell.close()
            self._shell = None

    def do(self, action: TerminalAction) -> Observation:
        """Carry it out, and show what came of it."""
        if self._shell is None:
            return self._refusal("there is no shell any more", self._lost)
        began = self._clock()
        self._shell.drain(on=False)
        self._shell.read_rest()
        try:
            return self._do(action, self._shell, began)
        except (RuntimeFault, TerminalFault):
            return self._observe(Outcome(status=self._give_up("")), began)
        finally:
            self._drain()

    def resize(self, rows: int, cols: int) -> None:
        self._size = rows, cols
        if self._shell:
            self._shell.resize(rows, cols)

    def _drain(self) -> None:
        """Until the next action. It may be another shell by now, or none."""
        if self._shell:
            self._shell.drain(on=True)

    def _do(self, action: TerminalAction, shell: Shell, began: float) -> Observation:
        if shell.ended and not isinstance(action, Wait):
            sink = self._job.exchange.sink if self._job else None
            return self._observe(self._replace(shell), began, sink)
        if self._job and self._job.exchange.report and not self._job.exchange.over:
            self._job.follower.follow(self._clock() + _MARK_SECONDS, "exit")  # for a missing mark
        if self._job and self._job.exchange.over and not isinstance(action, Wait):
            if isinstance(action, Keys) and not self._job.prompt:
                # They were meant for what has ended; a shell might carry them out.
                return self._seen(Came.END, shell, self._job, began, keep=True, screen=False)
            shell.put_aside(self._ended(shell, self._job).raw())
        match action:
            case Run():
                return self._run(action, shell, began)
            case Keys():
                return self._keys(action, shell, began)
            case Wait():
                return self._wait(action, shell, began)
            case Signal():
                return self._signal(action, shell, began)
            case _:
                assert_never(action)

    def _run(self, action: Run, shell: Shell, began: float) -> Observation:
        command, stdin = _bytes(action.command), _bytes(action.stdin or "")
        if command is None or stdin is None or b"\0" in command + stdin:
            return self._refusal("a command cannot hold a NUL byte, or half a character")
        if self._job and self._job.prompt:
            shell = self._leave_prompt(shell, self._job)
        if self._job:
            return self._refusal(_BUSY)
        given = None if action.stdin is None else stdin
        seconds = self._command_seconds if action.seconds is None else action.seconds
        keep = action.on_timeout == "keep"
        job = self._begin(shell, command, tty=action.tty, stdin=given, fold=action.fold)
        came = job.follower.follow(began + seconds, "input" if keep else "exit")
        return self._seen(came, shell, job, began, keep=keep, screen=action.screen)

    def _keys(self, action: Keys, shell: Shell, began: float) -> Observation:
        typed, text = _bytes(action.keys), _bytes(action.text or "")
        codes = [keys.named(name) for name in action.named]
        if typed is None or text is None:
            return self._refusal("half a character cannot be typed")
        if None in codes:
            return self._refusal(f"there is no key `{action.named[codes.index(None)][:_LABEL]}`")
        job = self._job or self._open_prompt(shell)
        if action.fold:
            job.exchange.sink.fold()
        self._tape.marker(f"keys: {typed[:_LABEL].decode('utf-8', 'replace')!r}")
        data = whole(typed + b"".join(filter(None, codes)), self._box, shell.pid)
        taken = shell.type(data, max(action.seconds, 0.0))
        came = job.follower.follow(began + action.seconds, action.until, text=text)
        seen = self._seen(came, shell, job, began, keep=True, screen=action.screen)
        if taken == len(data):
            return seen
        words = f"{taken} of {len(data)} bytes were typed: the program took no more in time"
        return replace(seen, limit=limits.join([seen.limit, words]))

    def _wait(self, action: Wait, shell: Shell, began: float) -> Observation:
        text = _bytes(action.text or "")
        if text is None:
            return self._refusal("half a character is never printed")
        job, until = self._job, began + action.seconds
        if job is None:
            while action.until == "quiet" and shell.pump(until - self._clock()):
                pass
            return self._observe(Outcome(status=Status.EXITED), began, screen=action.screen)
        if action.fold:
            job.exchange.sink.fold()
        self._tape.marker("wait")
        if text and text in job.exchange.sink.raw():
            until = began  # it was printed since somebody last looked
        came = job.follower.follow(until, action.until, text=text)
        return self._seen(came, shell, job, began, keep=True, screen=action.screen)

    def _signal(self, action: Signal, shell: Shell, began: float) -> Observation:
        name = action.name.upper().removeprefix("SIG")
        if f"SIG{name}" not in signal.Signals.__members__:
            return self._refusal(f"there is no signal `{action.name[:_LABEL]}`")
        job = self._job
        if job is None and action.target == "foreground":
            return self._refusal("nothing runs in the foreground")
        self._tape.marker(f"signal: {name}")
        number = signal.Signals[f"SIG{name}"]
        there = self._box.signal(shell.pid, number, scope=action.target)
        if job is None:
            if not there:
                return self._refusal("nothing runs")
            return self._observe(Outcome(status=Status.EXITED), began, screen=action.screen)
        if not there and action.target == "foreground":  # it is the shell itself that is at work
            self._box.signal(shell.pid, number, scope="none", more=[shell.pid])
        came = self._over_after_signal(shell, job, began + action.seconds)
        return self._seen(came, shell, job, began, keep=True, screen=action.screen)

    def _over_after_signal(self, shell: Shell, job: Job, until: float) -> Came:
        came = job.follower.follow(until, "exit")
        if came is Came.TIME and not self._box.signal(shell.pid, 0):
            # Nothing is left but the shell, which cannot say so: somebody has typed ^S.
            shell.type(CONTINUE, 0.0)
            came = job.follower.follow(self._clock() + _LAST_SECONDS, "exit")
        return came

    def _begin(
        self, shell: Shell, command: bytes, *, tty: bool = True, stdin: bytes | None = None,
        fold: bool = False, prompt: bool = False,
    ) -> Job:  # fmt: skip
        nonce = lines.fresh_nonce()
        self._tape.marker(command[:_LABEL].decode("utf-8", "replace"))
        self._tape.output(b"$ " + command.replace(b"\n", b"\r\n") + b"\r\n")
        sink = self._sink()
        if fold:
            sink.fold()
        exchange = Exchange(nonce, sink, tty=tty, printed=shell.printed, aside=shell.put_aside)
        shell.exchange = exchange
        shell.send(lines.command(command, nonce, last=self._last_status, tty=tty, stdin=stdin))
        self._job = Job(exchange, Follower(shell, exchange, self._clock), prompt)
        return self._job

    def _open_prompt(self, shell: Shell) -> Job:
        """Keys are typed to somebody: to a bash that reads the terminal, as a person's does."""
        job = self._begin(shell, lines.PROMPT, prompt=True)
        job.follower.follow(self._clock() + _PROMPT_SECONDS, "quiet")
        return job

    def _leave_prompt(self, shell: Shell, job: Job) -> Shell:
        """Back to the shell itself, or to another if it did not survive that."""
        self._box.signal(shell.pid, signal.SIGKILL)
        if self._over_after_signal(shell, job, self._clock() + _PROMPT_SECONDS) is Came.END:
            self._ended(shell, job)
            return shell
        self._replace(shell)
        if self._shell is None:
            raise TerminalFault("the shell is gone")
        return self._shell

    def _ended(self, shell: Shell, job: Job) -> Sink:
        """It is over, or its shell is: nothing runs in the foreground any more."""
        exchange, self._job, shell.exchange = job.exchange, None, None
        exchange.finish()
        if exchange.report:
            self._last_status, self._cwd = exchange.report.status, exchange.report.cwd
        self._close(exchange.sink)
        return exchange.sink

    def _seen(
        self, came: Came, shell: Shell, job: Job, began: float, *, keep: bool, screen: bool
    ) -> Observation:
        """What to do about it, and what to show."""
        limit, status = "", Status.EXITED
        sent: tuple[str, ...] = ()
        if came is Came.FULL or (came is Came.TIME and not keep):
            status = Status.TIMED_OUT
            limit = self._why(came, job.follower, began)
            came, sent = interrupt(self._box, shell, job.follower, self._clock)
        if came is Came.DEATH:
            outcome = self._replace(shell, limit, sent)
            return self._observe(outcome, began, job.exchange.sink, screen=screen)
        if came is not Came.END:
            status = Status.AWAITING_INPUT if came is Came.INPUT else Status.RUNNING
            sink = job.exchange.sink
            self._close(sink)
            job.exchange.sink = self._sink()
            return self._observe(Outcome(status=status), began, sink, screen=screen)
        sink = self._ended(shell, job)
        code = self._last_status
        if code or status is Status.TIMED_OUT:
            limit = limits.join([limit, self._box.reached()])
        outcome = Outcome(status=status, exit_code=code, limit=limit, signals=sent)
        return self._observe(outcome, began, sink, screen=screen)

    def _why(self, came: Came, follower: Follower, began: float) -> str:
        """In words, what ends it."""
        if came is Came.FULL:
            return f"the output limit of {OUTPUT_BYTES >> 20} MiB for one command was reached"
        waited = ", while it waited for input" if follower.awaits_input else ""
        return f"the time limit of {self._clock() - began:.1f} seconds was reached{waited}"

    def _replace(self, old: Shell, limit: str = "", sent: tuple[str, ...] = ()) -> Outcome:
        """The shell is gone, or cannot be saved: another one, where it was."""
        self._shell = None
        with closing(old):
            code = old.exit_code(_LAST_SECONDS)
            old.read_rest()
            output = _NOT_DONE
            if job := self._job:
                output = "" if job.exchange.begun else _NOT_DONE if old.heard_all else _NOT_KNOWN
                self._ended(old, job)
            limit = limits.join([limit, self._box.reached()])
        self._last_status = 0
        try:
            self._shell, status = self._fresh_in_any_case(), Status.RESTARTED
            self._shell.put_aside(old.aside.raw())
        except (RuntimeFault, TerminalFault):
            status = self._give_up(limit)
        return Outcome(status=status, exit_code=code, output=output, limit=limit, signals=sent)

    def _give_up(self, limit: str) -> Status:
        if self._shell:
            self._shell.close()
            self._shell = None
        if self._box.lost():
            self._lost = Status.BOX_LOST
        elif limit:
            self._lost = Status.STOPPED
        return self._lost

    def _fresh_in_any_case(self) -> Shell:
        try:
            return self._fresh()
        except (RuntimeFault, TerminalFault):
            if self._box.lost():
                raise
            self._box.kill_all()  # there may have been no room for it
            return self._fresh()

    def _fresh(self) -> Shell:
        cwd = self._existing_cwd()
        try:
            shell = self._start(cwd)
        except RuntimeFault:
            if cwd == "/" or self._box.lost():
                raise
            shell = self._start("/")  # not every engine takes every name
        self._cwd = shell.cwd
        return shell

    def _start(self, cwd: str) -> Shell:
        rows, cols = self._size
        return Shell(self._box, cwd, rows=rows, cols=cols, tape=self._tape)

    def _existing_cwd(self) -> str:
        """Where the shell was, if that is still there."""
        found = self._box.exec(["test", "-d", self._cwd], seconds=30, cwd="/")
        return self._cwd if found.exit_code == 0 else "/"

    def _sink(self) -> Sink:
        self._outputs += 1
        spool = self._folder and self._folder / f"output-{self._outputs:04}.txt"
        return Sink(self._output_bytes, spool, self._spool_left)

    def _close(self, sink: Sink) -> None:
        sink.close()
        self._spool_left -= sink.spooled_bytes

    def _refusal(self, why: str, status: Status = Status.REFUSED) -> Observation:
        return Observation(output=why, status=status, cwd=self._cwd)

    def _observe(
        self, outcome: Outcome, began: float, sink: Sink | None = None, *, screen: bool = False
    ) -> Observation:
        return Observation(
            output=(sink.text() if sink else "") or outcome.output,
            status=outcome.status,
            exit_code=outcome.exit_code,
            cwd=self._cwd,
            truncated=bool(sink and sink.truncated),
            total_bytes=sink.total if sink else 0,
            sha256=sink.sha256 if sink else "",
            spool=sink.spooled if sink else "",
            background=self._shell.take_aside() if self._shell else "",
            limit=outcome.limit,
            signals=outcome.signals,
            screen=self._screen() if screen else None,
            seconds=self._clock() - began,
        )

    def _screen(self) -> Screen | None:
        from sandbox.runtime.terminal.screen import drawn  # noqa: PLC0415 - few ask for one

        return drawn(bytes(self._shell.drawn), *self._size) if self._shell else None


def _bytes(text: str | bytes) -> bytes | None:
    """None for half a character, as JSON can hold one and models write them."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None
