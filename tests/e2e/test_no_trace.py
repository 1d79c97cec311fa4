"""Two rollouts in a row leave no byte for each other, nor the agent's box for the verifier's."""

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import RuntimeFault
from sandbox.formats.taskfile import load_task
from sandbox.model.step import Action, Observation, Run, Submit
from sandbox.rollout import plugins
from sandbox.rollout.agent import Opening
from sandbox.rollout.folder import RolloutFolder
from sandbox.rollout.run import Attempt, Stopwatch, World, agent_box, rollout
from sandbox.runtime.base import Box, Runtime
from sandbox.runtime.locks import new_task
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot
from tests.support.absent import absent

pytestmark = [pytest.mark.box, pytest.mark.network, pytest.mark.timeout(900)]
INSIDE = Path(__file__).with_name("inside")
PLANT, FIND = ((INSIDE / name).read_text(encoding="utf-8") for name in ("plant.py", "find.py"))
SECONDS = 120.0
SEEN_BY_ITSELF = {
    "names",
    "files",
    "links",
    "objects",
    "times",
    "shared memory",
    "message queue",
    "semaphore",
    "posix memory",
    "posix queue",
    "abstract socket",
    "port",
    "process cmdline",
    "process environ",
    "process comm",
    "process memory",
    "process fd",
}
"""Where the search finds the token in the box that it was planted in: it does look."""
EVERYWHERE = ("files", "settings", "process cmdline")
"""What every search has to have looked at."""


def token() -> str:
    return f"stray-{secrets.token_hex(5)[:9]}"


def told(said: str) -> dict[str, Any]:
    """The last line of a program in a box."""
    lines = [line for line in said.splitlines() if line.startswith("told ")]
    assert lines, said
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("told "))
    return found


def inside(box: Box, program: str, word: str, cwd: str | None = None) -> dict[str, Any]:
    argv = ["/usr/bin/python3", "-", word]
    done = box.exec(argv, input=program.encode(), seconds=SECONDS, cwd=cwd, output_bytes=64 << 20)
    assert done.exit_code == 0, done.stderr.decode("utf-8", "replace")
    return told(done.stdout.decode())


def traces(box: Box, word: str) -> dict[str, list[str]]:
    seen = inside(box, FIND, word[::-1])
    assert set(EVERYWHERE) <= seen["looked"].keys()
    assert seen["looked"]["files"] > 1000
    found: dict[str, list[str]] = seen["found"]
    return found


class Watched:
    """A runtime, and what a search of each new box for `word` finds before anybody uses it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.word = ""
        self.found: list[tuple[str, dict[str, list[str]]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def create(self, spec: BoxSpec) -> Box:
        box = self._runtime.create(spec)
        if self.word:
            self.found.append((spec.labels.get("role", "?"), traces(box, self.word)))
        return box


class Planter:
    """An agent that leaves the token wherever it can, through its terminal."""

    name = "planter"

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._word = token()
        self.said = ""

    def begin(self, opening: Opening) -> "Planter":
        """From here on, boxes are searched."""
        del opening
        self._watched.word = self._word
        return self

    def act(self, seen: Observation) -> Action:
        if seen.output:
            self.said += seen.output
            return Submit()
        word = self._word
        command = f"export STRAY={word}; cat > /tmp/plant.py; python3 /tmp/plant.py {word}"
        return Run(command, seconds=SECONDS, tty=False, stdin=PLANT)

    def close(self) -> None: ...


class Bench:
    def __init__(self, home: Path, store: Store, runtime: Runtime) -> None:
        self.runtime = Watched(runtime)
        self.depot = Depot(store, lambda *_: None)
        new_task(store, home, "trace-1")
        self.task = load_task(home, "trace-1")
        self.spec = agent_box(self.task, self.depot.supply(self.task))

    def attempt(self, number: int, folder: Path) -> Attempt:
        world = World(runtime=self.runtime, depot=self.depot)
        files = RolloutFolder(folder / str(number))
        files.fresh()
        return Attempt(
            task=self.task,
            number=number,
            world=world,
            folder=files,
            watch=Stopwatch(world.clocks.ticks),
        )


@pytest.fixture(params=["embedded", pytest.param("docker", marks=pytest.mark.docker)])
def bench(request: pytest.FixtureRequest, tmp_path: Path, store: Store) -> Iterator[Bench]:
    with closing(plugins.runtime(request.param, store)) as runtime:
        try:
            runtime.capabilities()
        except RuntimeFault as e:
            absent(f"{request.param} cannot run here: {e}")
        yield Bench(tmp_path / "home", store, runtime)


def test_neither_the_verifiers_box_nor_the_next_agents_has_a_byte(bench: Bench, tmp_path: Path):
    planter = Planter(bench.runtime)
    never = threading.Event()
    first = rollout(bench.attempt(0, tmp_path), planter, never)
    planted = told(planter.said)
    assert planted["files"] == planted["stayer"] == planted["shared_memory"] == "planted"
    second = rollout(bench.attempt(1, tmp_path), plugins.agent("nop", bench.depot.store), never)
    assert first.fault is None
    assert second.fault is None
    roles = [role for role, _ in bench.runtime.found]
    assert roles.count("agent") == 1
    assert roles[0] != "agent"
    assert len(roles) >= 3
    assert [(role, found) for role, found in bench.runtime.found if found] == []


def test_a_box_that_is_reset_and_one_that_was_warm_have_none(bench: Bench):
    word = token()
    bench.runtime.warm(bench.spec, 1)
    with bench.runtime.create(bench.spec) as box:
        inside(box, PLANT, word)
        # The search is worth something: it finds what was planted beside it.
        assert traces(box, word).keys() >= SEEN_BY_ITSELF
        with bench.runtime.create(bench.spec) as warm:
            assert traces(warm, word) == {}
        box.reset()
        assert traces(box, word) == {}
    bench.runtime.warm(bench.spec, 0)
