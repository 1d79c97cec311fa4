"""Our terminal, on either runtime, as an agent gets it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal

from sandbox.model.step import Observation, Run, Status
from sandbox.model.task import Limits
from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.spec import BoxSpec, Image
from sandbox.runtime.store import Store
from sandbox.runtime.terminal import Terminal

Kind = Literal["embedded", "docker"]
KINDS: tuple[Kind, ...] = ("embedded", "docker")
MODES = ("tty", "pipe")
OUTPUT_BYTES = 65_536
SHOWN = OUTPUT_BYTES + 100
"""With the line that says how much was left out."""
COMMAND_SECONDS = 300.0
LIMITS = Limits(memory_mib=1024, pids=1024, cpus=2.0)


@contextmanager
def boxes(kind: Kind, store: Store, image: Image, count: int = 1) -> Iterator[list[Box]]:
    runtime: Runtime = DockerRuntime(store) if kind == "docker" else EmbeddedRuntime(store)
    with ExitStack() as stack:
        stack.callback(runtime.close)
        spec = BoxSpec(image=image, limits=LIMITS)
        yield [stack.enter_context(runtime.create(spec)) for _ in range(count)]


def terminal(box: Box) -> Terminal:
    return Terminal(box, cwd="/", command_seconds=COMMAND_SECONDS, output_bytes=OUTPUT_BYTES)


def must(seen: Observation) -> Observation:
    """It ended by itself, and well."""
    if seen.status is not Status.EXITED or seen.exit_code != 0:
        raise OSError(f"{seen.status}, exit code {seen.exit_code}: {seen.output[:500]!r}")
    return seen


def true(mode: str) -> Run:
    return Run("true", tty=mode == "tty")
