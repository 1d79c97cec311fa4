"""The image in the Docker engine while a bench runs: what was not there before is not there after."""

import subprocess
from contextlib import ExitStack

from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store
from tests.bench.product import spec_of


def load(store: Store, image: Image, stack: ExitStack) -> None:
    """Have it in the engine until the stack is left. Raises Fault or OSError without an engine."""
    runtime = DockerRuntime(store)
    there = _docker("image", "inspect", image.digest) == 0
    try:
        runtime.create(spec_of(image)).destroy()
    finally:
        runtime.close()
    if not there:
        stack.callback(_docker, "image", "rm", image.digest)


def _docker(*words: str) -> int:
    try:
        return subprocess.run(["docker", *words], capture_output=True, check=False).returncode
    except OSError:
        return 127
