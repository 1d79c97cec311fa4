"""What a row of the tables says: a command, exactly what is to come of it, and what is so after."""

import re
import shutil
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from sandbox.model.step import Status
from tests.support.absent import absent

Mode = Literal["tty", "pipe"]
Wanted = str | re.Pattern[str]
ANY = re.compile(".*", re.DOTALL)
"""Only where the row says why."""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    command: str
    output: Wanted
    code: int | None = 0
    status: Status = Status.EXITED
    _: KW_ONLY
    before: tuple[str, ...] = ()
    """Run first, in the same shell."""
    after: tuple[str, ...] = ()
    """Run before the shell is looked at: puts right what was to be put wrong, ends jobs."""
    piped: Wanted | None = None
    """The output in pipe mode, when it is another."""
    modes: tuple[Mode, ...] = ("tty", "pipe")
    background: Wanted = ""
    """What came beside the output, in tty mode."""
    beside: Wanted | None = None
    """And in pipe mode, when it is another."""
    seconds: float | None = None
    waits: bool = False
    """For input, and that is told."""
    why: str = ""
    """Why it is no exact text that is wanted, or an unlikely one."""
    stays: bool = True
    """The shell is the same one afterwards."""
    changes_terminal: bool = False
    """And leaves it so."""
    breaks_box: bool = False
    """It wants a box for itself."""

    def wanted(self, mode: Mode) -> Wanted:
        return self.output if mode == "tty" or self.piped is None else self.piped

    def wanted_beside(self, mode: Mode) -> Wanted:
        return self.background if mode == "tty" or self.beside is None else self.beside


Ends = Literal["INT", "TERM", "KILL"]
_CODES = {"INT": 130, "TERM": 143, "KILL": 137}
_WORDS = {"INT": "", "TERM": "Terminated\n", "KILL": "Killed\n"}
ECHOED = re.compile(r"(\^C\n?)?")
"""Of the key that is typed to end it; the newline is bash's."""


def hangs(name: str, command: str, shown: str = "", ends: Ends = "INT", **rest: Any) -> Case:
    """It never ends by itself, and has a second. `ends`: what it takes."""
    words = _WORDS[ends] or "\n"
    options = {
        "seconds": 1.0,
        "piped": shown + _WORDS[ends],
        "beside": ECHOED,
        **rest,
    }
    output = options.pop("output", f"{shown}^C{words}")
    code = options.pop("code", _CODES[ends])
    return Case(name, command, output, code, Status.TIMED_OUT, **options)


def like(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


def skip_without(command: str) -> None:
    """The box has what this machine has: it may lack one of these."""
    for program in ("vi", "less", "script"):
        if re.search(rf"\b{program} -|\b{program}$", command) and not shutil.which(program):
            absent(f"this machine has no {program}")


def fits(found: str, wanted: Wanted) -> bool:
    if isinstance(wanted, str):
        return found == wanted
    return wanted.fullmatch(found) is not None
