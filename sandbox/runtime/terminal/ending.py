"""Ending what a command has started, gently first."""

import signal
from collections.abc import Callable

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box
from sandbox.runtime.terminal.follow import CONTINUE, Came, Follower
from sandbox.runtime.terminal.shell import Shell

_STEPS = (
    ("INT", 0.5),
    ("INT", 0.5),
    ("TERM", 1.0),
    ("KILL", 2.0),
    ("SHELL", 2.0),
)
"""What is sent, and for how long it is waited; the first is typed."""
_CONTROL_C = CONTINUE + b"\x03"
"""After ^Q: somebody may have stopped the terminal's output."""
_SETTLE_SECONDS = 0.02
"""After a key that ends it, bash ends the terminal's line, which comes later than its report."""
_WHATEVER = 1 << 62


def interrupt(
    box: Box, shell: Shell, follower: Follower, clock: Callable[[], float]
) -> tuple[Came, tuple[str, ...]]:
    """End what runs in the foreground, with all that it has started.

    Returns the command's end or the shell's death, and what was sent.
    """
    family = set(box.signal(shell.pid, 0))
    sent: list[str] = []
    came = Came.TIME
    for name, seconds in _STEPS:
        if not sent:
            shell.type(_CONTROL_C, seconds)
        elif name == "SHELL":
            _end_shell(box, shell, family)
        else:
            family |= set(box.signal(shell.pid, signal.Signals[f"SIG{name}"], more=sorted(family)))
        sent.append(name)
        came = follower.follow(clock() + seconds, "exit", enough=_WHATEVER)
        if came in (Came.END, Came.DEATH):
            break
    shell.read_rest(_SETTLE_SECONDS)
    left = box.signal(shell.pid, signal.SIGKILL, scope="none", more=sorted(family))
    if left and "KILL" not in sent:
        sent.append("KILL")
    return (came if came is Came.END else Came.DEATH), tuple(sent)


def _end_shell(box: Box, shell: Shell, family: set[int]) -> None:
    try:
        box.signal(shell.pid, signal.SIGKILL, more=[*sorted(family), shell.pid])
    except RuntimeFault:
        box.kill_all()
