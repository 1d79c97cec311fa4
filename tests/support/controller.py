"""A run in a process of its own: a box with a sleeper in it, until the input ends.

Its input begins with what kind of box: a length, then the pickled BoxSpec.
"""

import pickle
import sys
from pathlib import Path

from sandbox.runtime.store import Store
from tests.contract.conftest import open_runtime


def main(name: str, root: str, marker: str) -> None:
    spec = pickle.loads(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))
    runtime = open_runtime(name, Store(Path(root)))
    try:
        box = runtime.create(spec)
        box.exec(["sh", "-c", f"sleep {marker} > /dev/null 2>&1 &"], seconds=30)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()
    finally:
        runtime.close()


main(*sys.argv[1:])
