"""What an agent does, and what it sees."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal

from sandbox.model.task import STRICT

Until = Literal["quiet", "input", "exit"]
"""What to look for: nothing more is printed, input is awaited, or the command is over.

`quiet` includes the other two, and `input` the last.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """What an agent tells of the model that chose an action. It is carried, and never worked out.

    None is what was not told, which is not 0.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str = ""
    message: str = ""
    """What it said beside the action."""
    reasoning: str = ""
    calls: int | None = None
    """How many times a model was asked for this action."""
    prompt_tokens: int | None = None
    """Those that were cached included."""
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    """Of the completion's tokens, one each."""


@dataclass(frozen=True, slots=True)
class Run:
    """Run a command line in the persistent shell."""

    command: str
    seconds: float | None = None
    """At most; None: as long as the task allows for one command."""
    tty: bool = True
    """False: its output goes through a pipe, byte for byte and many times as fast, and its standard
    input is empty. It still has a terminal as /dev/tty."""
    stdin: str | None = None
    """Text for its standard input; None: the terminal, or nothing if `tty` is False."""
    on_timeout: Literal["interrupt", "keep"] = "interrupt"
    """What is done when its time is up: end it, or leave it running. What is to be kept is also
    left as soon as it waits for input: type into it with Keys."""
    fold: bool = False
    """Of a line that was drawn over and over, as progress bars are, show the last state only."""
    screen: bool = False
    """Show the terminal's screen too."""
    model: ModelCall | None = field(default=None, kw_only=True)
    """Who chose this, if the agent tells."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Type into whatever is in the foreground, then look.

    When nothing is, an interactive bash is started to take them, and ended by the next Run.
    """

    keys: str | bytes = ""
    seconds: float = 1.0
    """At most."""
    named: tuple[str, ...] = ()
    """Typed after `keys`: Enter, Tab, Escape, Up, F1, C-c, M-x and the like."""
    until: Until = "quiet"
    text: str | None = None
    """Stop looking as soon as this is printed."""
    fold: bool = False
    screen: bool = False
    model: ModelCall | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Wait:
    """Look at what runs, without typing."""

    seconds: float = 1.0
    until: Until = "exit"
    text: str | None = None
    fold: bool = False
    screen: bool = False
    model: ModelCall | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Signal:
    """Send a signal to all of the foreground program, or to all that runs in the session.

    The session: background jobs too, never the shell itself.
    """

    name: str
    """INT, TERM, KILL and the like, with or without SIG."""
    target: Literal["foreground", "session"] = "foreground"
    seconds: float = 1.0
    """How long to look for what comes of it, at most."""
    screen: bool = False
    model: ModelCall | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Submit:
    """Done. Nothing the agent does after this counts."""

    model: ModelCall | None = field(default=None, kw_only=True)


TerminalAction = Run | Keys | Wait | Signal
Action = TerminalAction | Submit
"""A closed union: every `match` on it must be exhaustive (mypy checks)."""


class Status(StrEnum):
    EXITED = "exited"
    RUNNING = "running"
    """Still going: type into it with Keys, look with Wait, end it with Signal."""
    AWAITING_INPUT = "awaiting_input"
    """Still going, and the kernel says that it waits for somebody to type."""
    TIMED_OUT = "timed_out"
    """Its time was up and it was ended; `signals` says how."""
    RESTARTED = "restarted"
    """The shell itself ended and was replaced; directory kept, variables lost."""
    SHELL_LOST = "shell_lost"
    """The shell ended and no other could be started; the rollout is over."""
    STOPPED = "stopped"
    """The whole box was stopped for a limit that is told in `limit`; the rollout is over."""
    BOX_LOST = "box_lost"
    """The box is gone, and nothing in it did that; the rollout is void."""
    REFUSED = "refused"
    """The action cannot be carried out now, or not at all; `output` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What a terminal's window shows."""

    lines: tuple[str, ...]
    """`rows` of them, without trailing blanks."""
    row: int
    """The cursor's, from 0; `col` likewise."""
    col: int
    cols: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    output: str = ""
    """Bytes that are no UTF-8, and NUL, are shown as \\x.. ; CR LF as a line's end."""
    status: Status = Status.EXITED
    exit_code: int | None = None
    """None: nothing ended."""
    cwd: str = ""
    truncated: bool = False
    total_bytes: int = 0
    """What the program printed; `output` keeps the head and the tail."""
    sha256: str = ""
    """Of all that it printed; empty when that was nothing."""
    spool: str = ""
    """A file in the rollout's folder with all of it, if it was truncated; up to a limit."""
    background: str = ""
    """What came on the terminal beside the command's output: of background jobs, and in pipe mode
    of programs that write to /dev/tty. Its end is kept."""
    limit: str = ""
    """Which limit was reached meanwhile, in words; empty when none was."""
    signals: tuple[str, ...] = ()
    """What was sent to end it, in order: INT, TERM, KILL; SHELL when the shell had to go too."""
    screen: Screen | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    action: Action
    observation: Observation
