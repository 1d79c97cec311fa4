#!/usr/bin/python3 -IBS
"""Runs a task's own test script, in the box of a verdict, and tells what came of it.

One of the hidden tests of a converted task, beside plan.json, which says what it needs. It tells
`KEY`, or `KEY>=LEVEL` where there is credit for a part, and for people `value KEY`, `test NAME` and
`wanted N`.
"""

import contextlib
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
LOGS = "/logs/verifier"
WANTED = "/tmp/stillroom-wanted"
HOME = "/tmp/stillroom-home"
CACHE = "/tmp/stillroom-pytest"
_KEPT_BYTES = 4 << 20
_CHUNK = 1 << 16
_ROUNDING = 1e-9
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")
_SUMMARY = re.compile(r"=+ short test summary info =+")
_LINE = re.compile(r"(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\s+(.+)")
_PANE = {"PASSED": "passed", "SKIPPED": "skipped", "XFAIL": "xfailed", "XPASS": "xpassed"}
_CTRF = {"passed": "passed", "skipped": "skipped", "pending": "skipped"}
_HIDDEN = ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "STILLROOM_CHECKS")
"""Of the environment: a script of somebody else's brings plugins of its own."""


class Unread(Exception):
    """There is no reward, and why."""


def tell(check: str, outcome: str, message: str = "") -> None:
    record = {"check": check, "outcome": outcome, "message": message}
    data = memoryview(json.dumps(record).encode() + b"\n")
    while data:
        data = data[os.write(TO, data) :]


def environment(plan: dict[str, Any], tools: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if k not in _HIDDEN}
    env |= plan["env"]
    home = env["HOME"] = home_of(env)
    env["PATH"] = f"{tools}/bin:{home}/.local/bin:{env.get('PATH', os.defpath)}"
    env["PYTHONPATH"] = ":".join(p for p in (f"{tools}/site", env.get("PYTHONPATH", "")) if p)
    env |= {
        "STILLROOM_TOOLS": f"{HERE}/plan.json",
        "STILLROOM_BIN": f"{tools}/bin",
        "STILLROOM_WANTED": WANTED,
        "PIP_BREAK_SYSTEM_PACKAGES": "1",
        "PIP_NO_INDEX": "1",
        "UV_OFFLINE": "1",
        # The tests' own folder is root's.
        "PYTEST_ADDOPTS": f"{env.get('PYTEST_ADDOPTS', '')} -o cache_dir={CACHE}".strip(),
        "DEBIAN_FRONTEND": "noninteractive",
        "TEST_DIR": plan["tests"],
        "T_BENCH_TEST_DIR": plan["tests"],
        "T_BENCH_CONTAINER_LOGS_PATH": "/logs",
        # Files are root's, and whoever runs this is not.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    return env


def home_of(env: dict[str, str]) -> str:
    """One that can be written to: a working directory in it leaves it as the image has it."""
    home = env.get("HOME", "")
    if home and os.access(home, os.W_OK):
        return home
    os.makedirs(HOME, exist_ok=True)
    return HOME


def installed_before(env: dict[str, str], tools: str) -> None:
    """What an installer of uv leaves behind, so that a script finds it."""
    try:
        folder = os.path.join(env["HOME"], ".local", "bin")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "env"), "w", encoding="utf-8") as f:
            f.write(f'export PATH="{tools}/bin:$PATH"\n')
        for name in ("uv", "uvx"):
            place = os.path.join(folder, name)
            if not os.path.lexists(place):
                os.symlink(f"{tools}/bin/{name}", place)
    except OSError as error:
        print(f"no home to put uv into: {error}", file=sys.stderr)


def own_logs() -> None:
    """Scripts set rights of their folder, which is root's: one of our own takes its place."""
    with contextlib.suppress(OSError):
        if os.stat(LOGS).st_uid != os.getuid():
            os.rmdir(LOGS)
            os.mkdir(LOGS)


def run(plan: dict[str, Any], env: dict[str, str]) -> tuple[int, str]:
    """Its exit code, and what it printed, the last of it."""
    cwd = plan["cwd"] if os.path.isdir(plan["cwd"]) else "/"
    process = subprocess.Popen(
        [*plan["shell"], plan["script"]],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    kept = b""
    assert process.stdout
    while data := os.read(process.stdout.fileno(), _CHUNK):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        kept = (kept + data)[-_KEPT_BYTES:]
    return process.wait(), kept.decode("utf-8", "replace")


def number(value: object, said: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Unread(f"{said} is no number: {value!r}")
    return float(value)


def read_rewards() -> dict[str, float]:
    """As Harbor does: reward.json wins."""
    try:
        with open(f"{LOGS}/reward.json", "rb") as f:
            raw = f.read(_CHUNK)
    except OSError:
        return read_text()
    if not raw.strip():
        raise Unread("reward.json is empty")
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unread(f"reward.json is no JSON: {error}") from None
    if not isinstance(found, dict) or not found:
        raise Unread("reward.json should map names to numbers")
    return {str(k): number(v, f"`{k}` of reward.json") for k, v in found.items()}


def read_text() -> dict[str, float]:
    try:
        with open(f"{LOGS}/reward.txt", "rb") as f:
            text = f.read(_CHUNK).decode("utf-8", "replace").strip()
    except OSError:
        raise Unread("the test script wrote neither reward.json nor reward.txt") from None
    if not text:
        raise Unread("reward.txt is empty")
    try:
        return {"reward": number(float(text), "reward.txt")}
    except ValueError:
        raise Unread(f"reward.txt is no number: {text[:100]!r}") from None


def read_ctrf() -> dict[str, str]:
    """Name of a test → outcome, where the script wrote such a report."""
    try:
        with open(f"{LOGS}/ctrf.json", "rb") as f:
            found = json.loads(f.read(_KEPT_BYTES))
        tests = found["results"]["tests"]
        return {str(t["name"]): _CTRF.get(t["status"], "failed") for t in tests}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def read_pane(text: str) -> dict[str, str]:
    """As Terminal-Bench does, but for an empty summary, which is no success."""
    *_, after = _SUMMARY.split(_TERMINAL.sub("", text), maxsplit=0)
    if not _SUMMARY.search(text):
        raise Unread("there is no test summary in what the tests printed")
    found: dict[str, str] = {}
    for line in after.splitlines():
        if hit := _LINE.match(line.strip()):
            name = hit[2].split(" - ")[0].strip()
            outcome = _PANE.get(hit[1], "failed")
            found[name] = outcome if found.get(name, "passed") != "failed" else "failed"
    return found


def judged(plan: dict[str, Any], text: str) -> tuple[dict[str, float], dict[str, str]]:
    """Rewards by name, and tests by name."""
    if plan["protocol"] == "terminal-bench":
        tests = read_pane(text)
        return {"reward": float(bool(tests) and good(plan, tests))}, tests
    return read_rewards(), read_ctrf()


def good(plan: dict[str, Any], tests: dict[str, str]) -> bool:
    """Did all of them pass, and every one that has to be there? TB counts what is skipped."""
    fine = {name for name, outcome in tests.items() if outcome != "failed"}
    return len(fine) == len(tests) and fine >= set(plan["expected"])


def checks(plan: dict[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Each by name, with the reward that it looks at, and at which level."""
    for key, levels in plan["keys"].items():
        for level in levels:
            yield (key if levels == [1.0] else f"{key}>={level:g}"), key, level


def report(plan: dict[str, Any], rewards: dict[str, float], tests: dict[str, str]) -> None:
    for name, outcome in tests.items():
        tell(f"test {name}", outcome)
    for key, value in rewards.items():
        tell(f"value {key}", "passed", repr(value))
    untrue = plan["expected"] and not good(plan, tests)
    for name, key, level in checks(plan):
        if key not in rewards:
            tell(name, "failed", f"there is no `{key}` among {', '.join(rewards)}")
        elif rewards[key] >= 1 and untrue:
            tell(name, "failed", "its own report of tests does not say that all of them passed")
        else:
            passed = rewards[key] + _ROUNDING >= level
            tell(name, "passed" if passed else "failed", f"{key} is {rewards[key]:g}")


def wanted() -> list[str]:
    try:
        with open(WANTED, encoding="utf-8", errors="replace") as f:
            return list(dict.fromkeys(line.strip() for line in f if line.strip()))
    except OSError:
        return []


def main() -> None:
    with open(f"{HERE}/plan.json", encoding="utf-8") as f:
        plan = json.load(f)
    env = environment(plan, HERE)
    for stale in (WANTED, *(f"{LOGS}/{n}" for n in ("reward.json", "reward.txt", "ctrf.json"))):
        with contextlib.suppress(OSError):
            os.unlink(stale)
    own_logs()
    installed_before(env, HERE)
    status, text = run(plan, env)
    lacks = wanted()
    for n, line in enumerate(lacks):
        tell(f"wanted {n}", "error", line)
    try:
        rewards, tests = judged(plan, text)
    except Unread as error:
        more = f"; it wanted {', '.join(lacks)}" if lacks else ""
        for name, _, _ in checks(plan):
            tell(name, "error", f"{error} (exit code {status}){more}")
        return
    report(plan, rewards, tests)
    if "STILLROOM_WRITE" in os.environ:
        write(plan, rewards, tests)


def write(plan: dict[str, Any], rewards: dict[str, float], tests: dict[str, str]) -> None:
    """For another tool that reads this file: where no runner of ours listens."""
    untrue = bool(plan["expected"]) and not good(plan, tests)
    kept = {key: 0.0 if untrue and value >= 1 else value for key, value in rewards.items()}
    os.makedirs(LOGS, exist_ok=True)
    with open(f"{LOGS}/reward.json", "w", encoding="utf-8") as f:
        json.dump(kept, f)


TO = int(os.environ.get("STILLROOM_CHECKS", "1"))
if __name__ == "__main__":
    main()
