"""What a rollout costs beyond its tests: the core suite, warm, on each runtime.

    .venv/bin/python tests/bench/overhead.py [--runtime embedded] [--jobs 2] [--rounds 1]

Prints a table and writes a JSON file. Timings are wall seconds of this machine, now: compare within
one run only.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

PHASES = ("box", "agent", "collect", "verify")


def measure(runtime: str, jobs: int, rounds: int) -> dict[str, Any]:
    """Medians over all rollouts of all rounds, after one that only warms up."""
    rollouts: list[dict[str, Any]] = []
    for number in range(rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            argv = [sys.executable, "-m", "sandbox", "run", "--suite", "core", "--agent", "oracle"]
            options = ["-j", str(jobs), "--runtime", runtime, "--json", "--quiet", "--out", "out"]
            done = subprocess.run(
                [*argv, *options], cwd=folder, capture_output=True, text=True, check=True
            )
        lines = [json.loads(line) for line in done.stdout.splitlines()[:-1]]
        assert all(line["verdict"]["resolved"] for line in lines)
        if number:
            rollouts += lines
    seconds = [r["seconds"] for r in rollouts]
    parts = {p: round(median(s[p] for s in seconds), 3) for p in PHASES}
    parts["verify"] = round(median(s["verify"] - s["checks"] for s in seconds), 3)
    return {
        "runtime": runtime,
        "jobs": jobs,
        "rollouts": len(rollouts),
        "median_overhead_seconds": round(median(s["total"] - s["checks"] for s in seconds), 3),
        "median_phase_seconds": parts,
        "median_checks_seconds": round(median(s["checks"] for s in seconds), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", action="append", choices=["embedded", "docker"])
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 2))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench-overhead.json"))
    options = parser.parse_args()
    runtimes = options.runtime or ["embedded", "docker"]
    found = [measure(name, options.jobs, options.rounds) for name in runtimes]
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{'runtime':<10} {'overhead':>9} " + " ".join(f"{p:>8}" for p in PHASES) + "   checks")
    for f in found:
        phases = " ".join(f"{f['median_phase_seconds'][p]:>8.3f}" for p in PHASES)
        overhead, checks = f["median_overhead_seconds"], f["median_checks_seconds"]
        print(f"{f['runtime']:<10} {overhead:>9.3f} {phases} {checks:>8.3f}")


if __name__ == "__main__":
    main()
