"""Runs the hidden tests as a plain program, in the box: `python3 -P -s run_plain.py plan.json FD`.

There is no test runner here, and the code under test can see none: what is right only while it is
being tested is not right. The records are those of run_pytest.py, and `__observe__` of a hidden
test tells the host a value instead of comparing it with what is expected.
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

Tell = Callable[[dict[str, Any]], None]
_MOST_OBSERVED = 50_000
_PARTS = tuple(
    f"plain_{part}"
    for part in (
        "encode",
        "standin",
        "ids",
        "load",
        "fixtures",
        "folders",
        "builtin",
        "collect",
        "call",
    )
)
"""Each after those that it imports."""
_PROGRAM = "main.py"
_FIRST = """\
import json, os
with os.fdopen({fd}) as f: told = json.load(f)
exec(compile(told["run_plain"], "main.py", "exec"), {{"__name__": "__main__", "TOLD": told}})
"""


def start() -> None:
    """Again, as a program of another name: neither this file nor its arguments are to be seen."""
    here = Path(__file__).parent
    names = ("common", *_PARTS, Path(__file__).stem)
    told: dict[str, Any] = {name: (here / f"{name}.py").read_text("utf-8") for name in names}
    told["run_plain"], told["arguments"] = told[Path(__file__).stem], sys.argv[1:]
    fd = os.memfd_create("main", 0)
    with os.fdopen(os.dup(fd), "w") as f:
        json.dump(told, f)
    os.lseek(fd, 0, os.SEEK_SET)
    os.set_inheritable(int(sys.argv[2]), True)  # noqa: FBT003 - it has no name
    os.execv(sys.executable, [sys.executable, "-P", "-s", "-c", _FIRST.format(fd=fd)])


def parts(sources: dict[str, Any]) -> dict[str, Any]:
    """Executed, and not left where programs look for modules."""
    made: dict[str, Any] = {}
    for name in ("common", *_PARTS):
        module = made[name] = sys.modules[name] = ModuleType(name)
        exec(compile(sources[name], _PROGRAM, "exec", dont_inherit=True), vars(module))
    for name in made:
        del sys.modules[name]
    return made


class Observations:
    """Tells the host what was observed under each key, every value once."""

    def __init__(self, tell: Tell, encode: Callable[[object], str]) -> None:
        self._tell, self._encode = tell, encode
        self._told: set[tuple[str, str]] = set()

    def observe(self, key: str, value: object) -> None:
        told = key, self._encode(value)
        if told not in self._told and len(self._told) < _MOST_OBSERVED:
            self._told.add(told)
            self._tell({"observe": told[0], "value": told[1]})


def run(plan: dict[str, Any], tell: Tell, made: dict[str, Any]) -> None:
    observed = Observations(tell, made["plain_encode"].encode)
    workdir = Path(plan["workdir"]).resolve()
    arguments = [a for a in plan["arguments"] if not a.startswith("-")]
    places = [Path(p).resolve() for p in plan["sealed"]]
    standin = made["plain_standin"].StandIn(MonkeyPatch=made["plain_builtin"].MonkeyPatch)
    given = {"__observe__": observed.observe}
    sys.meta_path.insert(0, made["plain_load"].Finder(places, standin, given))

    def trouble(name: str, e: BaseException) -> None:
        tell({"uncollected": name, "message": cut(f"{type(e).__name__}: {e}")})

    cut = made["common"].message
    ini = made["plain_collect"].read_ini(plan["ini"])
    items = made["plain_collect"].Collector(workdir, ini, trouble).items(arguments)
    done = frozenset(plan.get("done", ()))
    items = [item for item in items if item.id not in done]
    if plan["order"] is not None:
        items.sort(key=lambda item: item.id)
        random.Random(plan["order"]).shuffle(items)
    filters = [line for line in ini.get("filterwarnings", "").splitlines() if line.strip()]
    caller = made["plain_call"].Caller(filters)
    clock = time.monotonic
    for item, following in zip(items, [*items[1:], None], strict=True):
        tell({"begin": item.id})
        began = clock()
        outcome, message = caller.call(item, following)
        seconds = round(clock() - began, 6)
        told = {"check": item.id, "outcome": outcome, "seconds": seconds, "message": cut(message)}
        tell(told)


def main(told: dict[str, Any]) -> None:
    made = parts(told)
    sys.argv = [_PROGRAM, *told["arguments"]]
    common = made["common"]
    plan, tell = common.begin()
    sys.argv = sys.orig_argv = [_PROGRAM]
    for name in [n for n in os.environ if n.startswith("PYTEST")]:
        del os.environ[name]
    sys.dont_write_bytecode = True
    sys.path += [p for p in plan["environment"].get("PYTHONPATH", "").split(":") if p]
    vars(sys.modules["__main__"]).pop("told", None)
    began = time.monotonic()
    run(plan, tell, made)
    common.finish(plan, tell, 0, began)


if __name__ == "__main__":
    if "TOLD" in globals():
        main(globals().pop("TOLD"))
    else:
        start()
