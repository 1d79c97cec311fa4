"""Runs hidden Rust tests, in the box. Ids: `crate::path::test`, as libtest names them in a crate.

All are built once, offline, and each test is a process of its own: it has passed if that process
ended with 0, and said so. A binary's crate is `bin/NAME`; examples are `example/NAME`.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common
import programs

_PLAIN = ("lib", "rlib", "test", "proc-macro", "cdylib", "dylib", "staticlib")
_RESULT = re.compile(r"test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b")
"""Anywhere in a line: what was printed before it need not have ended its line."""
_OUTCOMES = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}


@dataclass(frozen=True, slots=True)
class Crate:
    name: str
    program: str
    folder: str


class Build:
    """What cargo tells of what it builds."""

    def __init__(self) -> None:
        self.crates: list[Crate] = []
        self.errors: dict[str, str] = {}

    def hear(self, line: bytes) -> None:
        match programs.parsed(line):
            case {
                "reason": "compiler-artifact",
                "executable": str(program),
                "profile": {"test": True},
                "manifest_path": str(manifest),
                "target": target,
            }:
                self.crates.append(Crate(crate_name(target), program, os.path.dirname(manifest)))
            case {
                "reason": "compiler-message",
                "message": {"level": "error", "message": str(said)},
                "target": target,
            }:
                self.errors.setdefault(crate_name(target), said)
            case _:
                pass


def crate_name(target: dict[str, Any]) -> str:
    kind, name = target["kind"][0], str(target["name"])
    return name.replace("-", "_") if kind in _PLAIN else f"{kind}/{name}"


def build(plan: dict[str, Any], tell: common.Teller) -> list[Crate]:
    options = [f"--{name}={value}" for name, value in sorted(plan["options"].items())]
    wanted = [target(name) for name in plan["arguments"]]
    targets = [word for words in wanted for word in words] if all(wanted) else []
    program = ("cargo", "test", "--offline", "--no-run", "--quiet", "--message-format=json")
    # One that only cargo would write in another way is taken as it is: this user cannot write it.
    locked = ["--locked"] if os.path.exists("Cargo.lock") else []
    found = Build()
    ended = programs.run(
        [*program, *locked, *options, *targets], limit=programs.within(None), printed=found.hear
    )
    for name, why in found.errors.items():
        tell({"uncollected": name, "message": common.message(why)})
    if ended.status != 0 and not found.errors:
        words = common.message(f"{ended.how}: {ended.words}")
        tell({"uncollected": "the crates", "message": words})
    return found.crates


def target(argument: str) -> list[str]:
    """`tests/it.rs` is one of them, and `src` the library; anything else is all there is."""
    folder, _, name = argument.rpartition("/")
    if folder.rpartition("/")[2] == "tests":
        return ["--test", name.removesuffix(".rs")]
    return ["--lib"] if argument == "src" else []


def run_crate(crate: Crate, plan: dict[str, Any], tell: common.Teller) -> None:
    names = []

    def hear(line: bytes) -> None:
        name, colon, kind = line.decode("utf-8", "replace").rpartition(": ")
        if colon and kind == "test":
            names.append(name)

    program = [crate.program, "--list", "--format", "terse"]
    limit = programs.within(plan["check_seconds"])
    ended = programs.run(program, limit=limit, cwd=crate.folder, printed=hear)
    if ended.status != 0:
        tell({"uncollected": crate.name, "message": f"it does not list its tests: {ended.how}"})
        return
    if plan["order"] is not None:
        random.Random(plan["order"]).shuffle(names)
    for name in names:
        run_test(crate, name, plan["check_seconds"], tell)


def run_test(crate: Crate, name: str, seconds: float | None, tell: common.Teller) -> None:
    said: set[str] = set()

    def hear(line: bytes) -> None:
        result = _RESULT.search(line.decode("utf-8", "replace"))
        if result and result[1] == name:
            said.add(_OUTCOMES[result[2]])

    # With one thread, libtest names a test before it and says the rest after what it prints.
    program = [crate.program, "--exact", name, "--test-threads=2", "--color=never"]
    limit = programs.within(seconds)
    env = {**os.environ, "CARGO_MANIFEST_DIR": crate.folder}
    ended = programs.run(program, limit=limit, cwd=crate.folder, env=env, printed=hear)
    if ended.status == 0 and len(said) == 1:
        (outcome,), message = said, ""
    else:
        outcome, message = "failed", f"{ended.how}: {ended.words[-700:]}"
    told = {"check": f"{crate.name}::{name}", "outcome": outcome}
    tell({**told, "seconds": round(ended.seconds, 6), "message": common.message(message)})


def _libraries() -> str:
    """Where rustc's own libraries are, which some test programs load."""
    asked = ("rustc", "--print", "target-libdir")
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def main() -> None:
    plan, tell = common.begin()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["CARGO_TARGET_DIR"] = os.path.join(scratch, "target")
        os.environ["CARGO_NET_OFFLINE"] = "true"
        os.environ["CARGO_TERM_COLOR"] = "never"
        os.environ.setdefault("CARGO_HOME", os.path.join(scratch, "home"))
        crates = build(plan, tell)
        if libraries := _libraries():
            deps = os.path.join(scratch, "target", "debug", "deps")
            os.environ["LD_LIBRARY_PATH"] = f"{deps}:{libraries}"
        if plan["order"] is not None:
            random.Random(plan["order"]).shuffle(crates)
        for crate in crates:
            run_crate(crate, plan, tell)
    common.finish(plan, tell, 0, began)


if __name__ == "__main__":
    main()
