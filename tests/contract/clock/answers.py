"""What a program said about the time, held against what the box's clock can have been meanwhile."""

import re
from dataclasses import dataclass
from typing import Literal

Mode = Literal["ticking", "fixed", "step"]
MODES: tuple[Mode, ...] = ("ticking", "fixed", "step")
PIN = 1_715_774_400
"""Wednesday 2024-05-15, 12:00:00 UTC."""
COARSE = 0.011
"""How far the kernel's coarse clock, which files get their times from, may be behind."""
STANDING = 4.0
"""Where the clock does not tick, files are as old as this or less, in the order they were made."""
READ_MEANWHILE = 0.02
"""How much nearer a deadline may come by reads between its making and its use, at 1 ms each."""
LATE = 8.0
"""How much longer than it said a wait may take on a busy machine."""
_LINE = re.compile(r"(now|file|started) (\d+(?:\.(\d+))?)|waited ([\d.]+) ([\d.]+)|end (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many lines of each kind a program is to print."""

    now: int = 0
    files: int = 0
    waits: int = 0
    starts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Meanwhile:
    """What the box's clock said just before and just after, in nanoseconds."""

    mode: Mode
    first: int
    last: int
    up: int
    """For how long this machine has run: no box seems to run longer, a whole second aside."""
    passed: int
    """Since the box was begun to be made, on this machine's monotonic clock."""


def asked(command: str) -> str:
    """A script: the command between two looks at the clock, in a program that asks the kernel."""
    return f"/zoo/raw\necho begin\n(\n{command}\n) 2>&1 < /dev/null\necho end $?\n/zoo/raw\n"


def split(output: str) -> tuple[list[str], list[str], list[str]] | None:
    """What was said before, by the command, and after; None when it did not come to its end."""
    before, begun, rest = output.partition("begin\n")
    found = re.search(r"^end \d+\n", rest, re.MULTILINE)
    if not begun or not found:
        return None
    said = rest[: found.end()].splitlines()
    return before.splitlines(), said, rest[found.end() :].splitlines()


def instants(lines: list[str]) -> list[int]:
    """In nanoseconds, of those that are exact."""
    found = (re.fullmatch(r"now (\d+)\.(\d{9})", line) for line in lines)
    return [int(one[1] + one[2]) for one in found if one]


def wrong(said: list[str], counts: Counts, meanwhile: Meanwhile) -> list[str]:
    """What is not as it should be, in words; nothing when all is well."""
    found = []
    told = {"now": 0, "file": 0, "waited": 0, "started": 0}
    for line in said:
        fits = _LINE.fullmatch(line)
        if fits is None:
            found.append(f"said {line!r}")
        elif fits[1]:
            told[fits[1]] += 1
            found += _instant(fits[1], fits[2], len(fits[3] or ""), meanwhile)
        elif fits[4]:
            told["waited"] += 1
            found += _wait(float(fits[4]), float(fits[5]), meanwhile.mode)
        elif fits[6] != "0":
            found.append(f"exit code {fits[6]}")
    wanted = {
        "now": counts.now,
        "file": counts.files,
        "waited": counts.waits,
        "started": counts.starts,
    }
    return found if told == wanted else [*found, f"{told}, and {wanted} were wanted"]


def _instant(kind: str, text: str, digits: int, meanwhile: Meanwhile) -> list[str]:
    whole, _, fraction = text.partition(".")
    at = int(whole + fraction.ljust(9, "0")[:9])
    unit = 10 ** (9 - digits)
    first, last = meanwhile.first, meanwhile.last
    if kind == "started":
        # The kernel counts from its start, which is told as one before the pin, and never stands.
        first, last = PIN * 10**9 - meanwhile.up - 10**9, PIN * 10**9 + meanwhile.passed
    elif meanwhile.mode == "ticking":
        first -= int(COARSE * 1e9)
    elif kind == "file":
        first, last = PIN * 10**9 - int(STANDING * 1e9), PIN * 10**9
    if first - unit < at < last + unit:
        return []
    return [f"{kind} {text} is not from {_seconds(first)} to {_seconds(last)}"]


def _wait(seconds: float, wanted: float, mode: Mode) -> list[str]:
    early = READ_MEANWHILE if mode == "step" else 0.002
    if wanted * 0.99 - early <= seconds <= wanted + LATE:
        return []
    return [f"waited {seconds} s, not {wanted} s"]


def _seconds(ns: int) -> str:
    return f"{ns // 10**9}.{ns % 10**9:09}"
