"""The smallest agent worth the name: looks around, changes nothing, submits.

    stillroom run h11-0.14.0 --agent 'shell:python3 docs/examples/agent.py'

Standard library only. Replace `think` by something that thinks.
"""

import json
import sys


def say(action: dict) -> None:
    """One action: one line of JSON. Without the flush, both sides would wait for ever."""
    print(json.dumps(action), flush=True)


def think(seen: dict, step: int) -> dict:
    """What has been seen → what to do next."""
    if step == 0:
        return {"type": "run", "command": "ls", "seconds": 10}
    print(f"exit code {seen['exit_code']}: {seen['output']!r}", file=sys.stderr)
    return {"type": "submit"}


def main() -> None:
    for step, line in enumerate(sys.stdin):  # first the task, then an observation per action
        said = json.loads(line)
        if said["type"] == "task":
            print(f"{said['task']}: {len(said['instruction'])} characters", file=sys.stderr)
        say(think(said, step))


if __name__ == "__main__":
    main()
