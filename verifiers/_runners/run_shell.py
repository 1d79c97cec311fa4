"""Runs hidden checks that are programs, in the box. Ids: a script's path, and the names it tells.

`run` names executable files, folders of them, or JSON files that map names to command lines. Each
is started in the working directory; its own id passes if it ends with 0. It may tell of more, one
JSON object a line, on the descriptor that $STILLROOM_CHECKS names: {"check": NAME, "outcome":
"passed", "message": TEXT} is the check `SCRIPT::NAME`. What it prints is for people.
"""

import json
import os
import random
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common
import programs

_OUTCOMES = {"passed", "failed", "error", "skipped", "xfailed", "xpassed"}


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    program: tuple[str, ...]


def checks(arguments: list[str]) -> Iterator[Check]:
    """Raises OSError, ValueError, TypeError or AttributeError for what is no list of checks."""
    for argument in arguments:
        path = Path(argument)
        if path.is_dir():
            found = (p for p in sorted(path.rglob("*")) if p.is_file() and os.access(p, os.X_OK))
            yield from (Check(str(p), (f"./{p}",)) for p in found)
        elif path.suffix == ".json":
            for name, line in json.loads(path.read_text(encoding="utf-8")).items():
                if not isinstance(line, str):
                    raise TypeError(f"{path}: `{name}` is no command line")
                yield Check(f"{path}::{name}", ("/bin/sh", "-c", line))
        else:
            yield Check(str(path), (f"./{path}",))


def run_check(check: Check, tell: common.Teller, seconds: float | None) -> None:
    odd: deque[bytes] = deque(maxlen=1)

    def hear(line: bytes) -> None:
        match programs.parsed(line):
            case {"check": str(name), "outcome": str(outcome), **more}:
                known = outcome if outcome in _OUTCOMES else "error"
                told = {"check": f"{check.name}::{name}", "outcome": known}
                tell({**told, "message": str(more.get("message", ""))})
            case _:
                odd.append(line)

    env = {**os.environ, "STILLROOM_CHECKS": str(programs.RECORDS)}
    ended = programs.run(check.program, limit=programs.within(seconds), env=env, told=hear)
    outcome, message = "passed", ""
    if ended.status != 0:
        outcome, message = "failed", f"{ended.how}; its last words: {ended.words[-500:]}"
    elif odd:
        outcome, message = "error", "it told what is no record: " + repr(odd[0][:200])
    spent = round(ended.seconds, 6)
    tell({"check": check.name, "outcome": outcome, "seconds": spent, "message": message})


def main() -> None:
    plan, tell = common.begin()
    began = time.monotonic()
    try:
        found = list(checks(plan["arguments"]))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        tell({"uncollected": "the checks", "message": str(error)})
        found = []
    if plan["order"] is not None:
        random.Random(plan["order"]).shuffle(found)
    for check in found:
        run_check(check, tell, plan["check_seconds"])
    common.finish(plan, tell, 0, began)


if __name__ == "__main__":
    main()
