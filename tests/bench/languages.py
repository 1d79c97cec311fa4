"""Tasks in node, Go and Rust, in real boxes: what four agents are judged to have done.

    ci/bench languages [node] [go] [cargo] [--runtime embedded] [--json]

For each, an image is made of Debian packages (Go's and Rust's are large: 100 to 200 MB), and a little task
with it. Then `oracle` has to get 1, `nop` 0, an agent that solves two thirds 2/3, and one whose program
prints what runners tell and what test runners print 0. A test that hangs before the solution has to be
cut at its limit, and named. Exit code 1 if one of these is not so.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support.languages import AGENTS, LANGUAGES, Language, write_task, wrong_with


def ran(home: Path, *arguments: str) -> SimpleNamespace:
    program = (sys.executable, "-P", "-m", "sandbox", *arguments)
    done = subprocess.run(program, cwd=home, capture_output=True, text=True, check=False)
    return SimpleNamespace(status=done.returncode, out=done.stdout, err=done.stderr)


def verdicts(home: Path, language: Language, runtime: str) -> Iterator[dict[str, Any]]:
    for agent in AGENTS:
        began = time.monotonic()
        who = agent if agent in ("oracle", "nop") else f"script:{language.runner}-{agent}.txt"
        options = ("--runtime", runtime, "--json", "--out", f"runs/{language.runner}-{agent}")
        done = ran(home, "run", language.runner, "--agent", who, *options)
        found = [r for r in map(json.loads, done.out.splitlines()) if "task" in r]
        verdict = found[0]["verdict"] if found else None
        yield {
            "runner": language.runner,
            "runtime": runtime,
            "agent": agent,
            "reward": verdict and verdict["reward"],
            "seconds": round(time.monotonic() - began, 1),
            "wrong": wrong_with(language, agent, verdict) if verdict else done.err[-500:],
        }


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/bench languages", description=__doc__)
    parser.add_argument("runners", nargs="*", choices=[*LANGUAGES, []], default=[])
    parser.add_argument("--runtime", default="embedded")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    wrong = False
    for runner in asked.runners or LANGUAGES:
        with tempfile.TemporaryDirectory() as folder:
            home, language = Path(folder), LANGUAGES[runner]
            write_task(lambda *words, home=home: ran(home, *words), home, language)
            for row in verdicts(home, language, asked.runtime):
                wrong = wrong or bool(row["wrong"])
                print(json.dumps(row) if asked.json else _line(row), flush=True)
    return int(wrong)


def _line(row: dict[str, Any]) -> str:
    reward = "void" if row["reward"] is None else f"{row['reward']:.2f}"
    head = f"{row['runner']:6} {row['runtime']:9} {row['agent']:7} {reward}  {row['seconds']:5} s"
    return f"{head}  {row['wrong'] or 'as it should be'}"


if __name__ == "__main__":
    sys.exit(main())
