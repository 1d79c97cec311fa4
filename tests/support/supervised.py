"""What comes out of a box in which a supervisor watched a runner."""

import json


def supervised(records: bytes, exit_code: int | None, how: str = "exited") -> bytes:
    """What the runner told, and how it ended; None: not even the supervisor came to its end."""
    lines = [b"." + line for line in records.split(b"\n")]
    if exit_code is not None:
        ended = {"ended": how, "exit": exit_code, "others": 0, "runs": 1, "seconds": 2.5}
        lines.append(b"!" + json.dumps(ended).encode())
    return b"\n".join(lines) + b"\n"
