"""A runner of hidden tests, on this machine and without a box: what it tells."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_RUNNERS = Path(__file__).resolve().parents[2] / "verifiers" / "_runners"
_SECONDS = 200


@dataclass(frozen=True, slots=True)
class Told:
    records: list[dict[str, Any]]
    log: str

    @property
    def checks(self) -> dict[str, str]:
        """Id → outcome; of one that was told twice, the first that is no pass."""
        found: dict[str, str] = {}
        for record in self.records:
            if "check" in record and found.get(record["check"], "passed") == "passed":
                found[record["check"]] = record["outcome"]
        return found

    @property
    def order(self) -> list[str]:
        return [r["check"] for r in self.records if "check" in r]

    @property
    def uncollected(self) -> list[str]:
        return [r["uncollected"] for r in self.records if "uncollected" in r]

    def message(self, check: str) -> str:
        return str(next(r["message"] for r in self.records if r.get("check") == check))


def write(folder: Path, files: dict[str, str]) -> None:
    """Those that begin with `#!` can be run."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o755)


def told(runner: str, folder: Path, *arguments: str, **plan: Any) -> Told:
    given = {
        "workdir": str(folder),
        "arguments": list(arguments),
        "options": {},
        "environment": {},
        "check_seconds": None,
        "umask": 0o022,
        "order": None,
        "draw": False,
        "traceback": "short",
        "raw": False,
        **plan,
    }
    beside = folder.parent / f"{folder.name}-run"
    beside.mkdir(exist_ok=True)
    (beside / "plan.json").write_text(json.dumps(given))
    program = [sys.executable, "-P", "-s", str(_RUNNERS / f"run_{runner}.py")]
    kept = {k: os.environ[k] for k in ("PATH", "HOME", "RUSTUP_HOME") if k in os.environ}
    with (beside / "records").open("w+b") as records:
        done = subprocess.run(
            [*program, str(beside / "plan.json"), str(records.fileno())],
            env={**kept, "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1"},
            pass_fds=[records.fileno()],
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
        records.seek(0)
        found = [json.loads(line) for line in records]
    assert "probe" in found[0]
    assert found[-1]["end"] == 0
    return Told(found, done.stderr.decode())
