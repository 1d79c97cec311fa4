"""Terminals on the runtimes of this machine: a box for many of them, as a box costs time."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.audit.conformance import Bench
from sandbox.model.task import Limits
from sandbox.runtime.base import Box
from sandbox.runtime.terminal import ENVIRONMENT, Terminal
from tests.contract.conftest import DOCKER, EMBEDDED, Benches

LIMITS = Limits(memory_mib=256, pids=128, cpus=2.0)
Start = Callable[..., Terminal]


@pytest.fixture(scope="module", params=[EMBEDDED, DOCKER])
def shared(
    request: pytest.FixtureRequest, opened: Callable[[str], Benches]
) -> Iterator[tuple[Bench, Box]]:
    """A runtime, and a box of all tests of a module."""
    bench = opened(request.param)(Path())
    with agents_box(bench) as box:
        yield bench, box


@pytest.fixture
def common_box(shared: tuple[Bench, Box]) -> Box:
    return shared[1]


@pytest.fixture
def own_box(shared: tuple[Bench, Box]) -> Iterator[Box]:
    """For what harms a box."""
    with agents_box(shared[0]) as box:
        yield box


def agents_box(bench: Bench, **limits: float) -> Box:
    env = {**bench.spec.env, **ENVIRONMENT}
    return bench.box(limits=replace(LIMITS, **limits), env=env)


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def start(box: Box, **options: object) -> Terminal:
            settings = {"cwd": "/root", "command_seconds": 20.0, "output_bytes": 1 << 16, **options}
            return stack.enter_context(Terminal(box, **settings))  # type: ignore[arg-type]

        yield start
