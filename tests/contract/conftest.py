"""The runtimes on this machine, each to be held to the same contract."""

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import RuntimeFault
from sandbox.model.task import Limits
from sandbox.runtime.base import Box, BoxSpec, Image, Runtime
from sandbox.runtime.store import Store
from tests.support.tinyimage import tiny_image

RUNTIMES = {
    "embedded": "sandbox.runtime.embedded.host:EmbeddedRuntime",
    "docker": "sandbox.runtime.docker:DockerRuntime",
}
LIMITS = Limits(memory_mib=128, pids=64, cpus=2.0)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def image(store: Store) -> Image:
    return tiny_image(store)


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("embedded", marks=pytest.mark.box),
        pytest.param("docker", marks=[pytest.mark.box, pytest.mark.docker]),
    ],
)
def runtime(request: pytest.FixtureRequest, store: Store, image: Image) -> Iterator[Runtime]:
    """One that has just shown that it can make a box. In CI each of them must."""
    made = None
    try:
        made = open_runtime(request.param, store)
        made.create(BoxSpec(image=image, limits=LIMITS)).destroy()
    except (RuntimeFault, ModuleNotFoundError) as e:
        if made is not None:
            made.close()
        if os.environ.get("CI") == "true":
            pytest.fail(f"{request.param} cannot run here: {e}")
        pytest.skip(f"{request.param} cannot run here: {e}")
    yield made
    made.close()


@pytest.fixture
def spec(image: Image) -> BoxSpec:
    return BoxSpec(image=image, limits=LIMITS, env={"TASK": "one two"}, workdir="/root")


@pytest.fixture
def box(runtime: Runtime, spec: BoxSpec) -> Iterator[Box]:
    with runtime.create(spec) as made:
        yield made


def open_runtime(name: str, store: Store) -> Runtime:
    module, _, attribute = RUNTIMES[name].partition(":")
    made: Any = getattr(importlib.import_module(module), attribute)(store)
    checked: Runtime = made
    return checked


def host_processes(marker: str) -> list[int]:
    """Ids of this machine's `sleep <marker>`s."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().split(b"\0")[-3:-1] == [b"sleep", marker.encode()]:
                found.append(int(path.parent.name))
        except OSError:  # it ended while we looked
            continue
    return found
