#!/usr/bin/python3 -IBS
"""Judges an exported task in another tool's container: hidden tests in, reward.json and CTRF out.

Beside it lie export.json, the hidden tests in bundle/, and the runners that Stillroom itself uses.
A check that is not told has not passed. It is run by whoever runs the tests there, in the same
container as the work: what Stillroom does about that, it does only where it runs boxes itself.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
LOGS = os.environ.get("STILLROOM_LOGS", "/logs/verifier")
_CTRF = {"passed": "passed", "skipped": "skipped", "xfailed": "other", "xpassed": "other"}


def put_tests(given: dict[str, Any]) -> None:
    """In place of what the working directory has there."""
    for path in given["bundle"]:
        place = os.path.join(given["workdir"], path)
        if os.path.isdir(place) and not os.path.islink(place):
            shutil.rmtree(place)
        elif os.path.lexists(place):
            os.unlink(place)
    put(f"{HERE}/bundle", given["workdir"])


def put(source: str, target: str) -> None:
    """Folders that are there stay as they are: they may be somebody else's."""
    for entry in os.scandir(source):
        place = os.path.join(target, entry.name)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), place)
        elif entry.is_dir():
            os.makedirs(place, exist_ok=True)
            put(entry.path, place)
        else:
            shutil.copy(entry.path, place)


def run(given: dict[str, Any]) -> list[dict[str, Any]]:
    """What the runner told."""
    told, end = os.pipe()
    program = ["/usr/bin/python3", "-P", "-s", f"{HERE}/runners/{given['runner']}"]
    process = subprocess.Popen(
        [*program, f"{HERE}/runners/plan.json", str(end)],
        pass_fds=[end],
        env={**os.environ, **given["variables"]},
        stdin=subprocess.DEVNULL,
        cwd="/",
    )
    os.close(end)
    with open(told, "rb") as f:
        lines = f.read().split(b"\n")
    process.wait()
    return [record for line in lines if (record := parsed(line)) is not None]


def parsed(line: bytes) -> Any:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def outcomes(records: list[dict[str, Any]]) -> dict[str, str]:
    """A check is told once. If it is told again, what was not a pass stays."""
    found: dict[str, str] = {}
    for record in records:
        if "check" in record and found.get(record["check"], "passed") == "passed":
            found[record["check"]] = str(record.get("outcome"))
    ended = any("end" in record for record in records)
    return found if ended else {k: v for k, v in found.items() if v != "passed"}


def rewarded(checks: list[dict[str, Any]], found: dict[str, str]) -> float:
    """The weighted share of what passed; 0 where a gate did not.

    A check of weight 0 earns nothing; one that did not pass counts as one of weight 1.
    """
    good = [c for c in checks if found.get(c["id"]) in ("passed", *c["accept"])]
    if len(good) == len(checks):
        return 1.0
    if any(c["gate"] and c not in good for c in checks):
        return 0.0
    failed = sum(not c["gate"] and not c["weight"] and c not in good for c in checks)
    total = sum(c["weight"] for c in checks) + failed
    return min(sum(c["weight"] for c in good) / total, 1.0 - 1e-6) if total else 0.0


def write(name: str, data: object) -> None:
    os.makedirs(LOGS, exist_ok=True)
    with open(f"{LOGS}/{name}", "w", encoding="utf-8") as f:
        json.dump(data, f)


def ctrf(checks: list[dict[str, Any]], found: dict[str, str]) -> dict[str, Any]:
    told = [(c["id"], _CTRF.get(found.get(c["id"], ""), "failed")) for c in checks]
    counts = {kind: len([1 for _, k in told if k == kind]) for kind in ("passed", "failed")}
    now = int(time.time() * 1000)
    summary = {
        "tests": len(told),
        **counts,
        "skipped": len([1 for _, k in told if k == "skipped"]),
        "pending": 0,
        "other": len([1 for _, k in told if k == "other"]),
        "start": now,
        "stop": now,
    }
    tests = [{"name": name, "status": status, "duration": 0} for name, status in told]
    return {"results": {"tool": {"name": "stillroom"}, "summary": summary, "tests": tests}}


def main() -> None:
    with open(f"{HERE}/export.json", encoding="utf-8") as f:
        given = json.load(f)
    for name in ("reward.json", "reward.txt", "ctrf.json"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{LOGS}/{name}")
    put_tests(given)
    found = outcomes(run(given))
    write("ctrf.json", ctrf(given["checks"], found))
    write("reward.json", {"reward": rewarded(given["checks"], found)})
    for check in given["checks"]:
        print(f"{found.get(check['id'], 'missing'):8} {check['id']}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
