"""The runtimes on this machine, each to be held to the same contract."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox.audit.conformance import Bench, workbench
from sandbox.audit.conformance.bench import host_processes as host_processes  # noqa: PLC0414
from sandbox.errors import RuntimeFault
from sandbox.model.task import Limits
from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.spec import BoxSpec, Image
from sandbox.runtime.store import Store
from tests.support.absent import absent
from tests.support.tinyimage import tiny_image

if TYPE_CHECKING:
    from sandbox.runtime.docker import DockerRuntime

LIMITS = Limits(memory_mib=128, pids=64, cpus=2.0)
EMBEDDED = pytest.param("embedded", marks=pytest.mark.box)
DOCKER = pytest.param("docker", marks=[pytest.mark.box, pytest.mark.docker])
Benches = Callable[[Path], Bench]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def image(store: Store) -> Image:
    return tiny_image(store)


@pytest.fixture(scope="session")
def opened(store: Store, image: Image) -> Iterator[Callable[[str], Benches]]:
    """The runtimes by name, each opened once, when it is first asked for."""
    with ExitStack() as stack:
        made: dict[str, Benches] = {}

        def open_once(name: str) -> Benches:
            if name not in made:
                made[name] = usable(name, store, image, stack)
            return made[name]

        yield open_once


@pytest.fixture(params=[EMBEDDED, DOCKER])
def benches(request: pytest.FixtureRequest, opened: Callable[[str], Benches]) -> Benches:
    """A runtime that has shown that it can make a box. In CI each of them must."""
    return opened(request.param)


@pytest.fixture
def bench(benches: Benches, tmp_path: Path) -> Bench:
    return benches(tmp_path)


@pytest.fixture
def runtime(bench: Bench) -> Runtime:
    return bench.runtime


@pytest.fixture(scope="module")
def docker_runtime(store: Store, image: Image) -> Iterator["DockerRuntime"]:
    """For what is particular to it. In CI it must be able to make a box."""
    from sandbox.runtime.docker import DockerRuntime  # noqa: PLC0415 - it may not be installed

    with closing(DockerRuntime(store)) as made:
        try:
            made.create(BoxSpec(image=image, limits=LIMITS)).destroy()
        except RuntimeFault as e:
            absent(f"docker cannot run here: {e}")
        yield made


@pytest.fixture
def spec(image: Image) -> BoxSpec:
    return BoxSpec(image=image, limits=LIMITS, env={"TASK": "one two"}, workdir="/root")


@pytest.fixture
def box(runtime: Runtime, spec: BoxSpec) -> Iterator[Box]:
    with runtime.create(spec) as made:
        yield made


def usable(name: str, store: Store, image: Image, stack: ExitStack) -> Benches:
    try:
        made = stack.enter_context(workbench(name, store, image))
        made(Path()).box().destroy()
    except (RuntimeFault, ModuleNotFoundError) as e:
        absent(f"{name} cannot run here: {e}")
    return made
