"""A controller to be killed: boxes, each with a sleeper and a daemon in it, until the input ends.

    python -m tests.bench.owner RUNTIME STORE BOXES MARKER     (the pickled spec on standard input)

`MARKER`: how long they sleep; by that number they are known from outside.
"""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.store import Store

_SCRIPT = """
sleep {0} > /dev/null 2>&1 &
(setsid sh -c 'setsid sleep {0} & exec sleep {0}' < /dev/null > /dev/null 2>&1 &)
"""


def main(name: str, root: str, boxes: str, marker: str) -> None:
    spec = pickle.loads(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))
    store = Store(Path(root))
    runtime: Any = DockerRuntime(store) if name == "docker" else EmbeddedRuntime(store)

    def fill(_: int) -> None:
        box = runtime.create(spec)
        box.exec(["sh", "-c", _SCRIPT.format(marker)], seconds=120)

    try:
        with ThreadPoolExecutor(4) as workers:
            list(workers.map(fill, range(int(boxes))))
        print("ready", flush=True)
        sys.stdin.buffer.read()
    finally:
        runtime.close()


main(*sys.argv[1:])
