"""A run in a process of its own: a box with a sleeper in it, until the input ends.

    python -m sandbox.audit.conformance.controller RUNTIME STORE MARKER

Its input begins with what kind of box: a length, then the pickled BoxSpec.
"""

import pickle
import sys
from pathlib import Path

from sandbox.rollout import plugins
from sandbox.runtime.store import Store


def main(kind: str, root: str, marker: str) -> None:
    # Whoever started us wrote it.
    spec = pickle.loads(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))  # noqa: S301
    runtime = plugins.runtime(kind, Store(Path(root)))
    try:
        box = runtime.create(spec)
        box.exec(["sh", "-c", f"sleep {marker} > /dev/null 2>&1 &"], seconds=60)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()
    finally:
        runtime.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
