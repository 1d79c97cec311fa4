"""Two evidence.json of a check → checks.yaml on standard output.

    python3 docs/examples/find_checks.py RUN/oracle/rollouts/TASK/0/evidence.json \
        RUN/nop/rollouts/TASK/0/evidence.json > verifiers/TASK/checks.yaml

Scored: passes with the reference solution only. Gate: passes with it and without. Excluded: the rest.
"""

import json
import sys
from pathlib import Path


def outcomes(path: str) -> dict[str, str]:
    """Test id → outcome: of every test that ran, declared or not."""
    report = json.loads(Path(path).read_text(encoding="utf-8"))["report"]
    return {name: seen["outcome"] for name, seen in report.items()}


def main() -> None:
    after, before = map(outcomes, sys.argv[1:3])
    good = [name for name, outcome in after.items() if outcome == "passed"]
    gates = [name for name in good if before.get(name) == "passed"]
    scored = [name for name in good if name not in gates]
    print("schema: 1")
    for title, names in (("scored", scored), ("gates", gates)):
        if names:
            print(f"{title}:")
        for name in names:
            print(f"  - {json.dumps(name)}")  # a JSON string is a YAML string
    rest = {name: outcome for name, outcome in after.items() if outcome != "passed"}
    if rest:
        print("excluded:")
    for name, outcome in rest.items():
        why = json.dumps(f"{outcome} with the reference solution")
        print(f"  - id: {json.dumps(name)}\n    reason: {why}")


if __name__ == "__main__":
    main()
