"""Every kind of program, in each mode of the clock, on both runtimes: all see it, none hangs.

What is found is also written down, if STILLROOM_CLOCK_TABLE names a file: page.py makes a page of it.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from sandbox.formats import jsonfile
from sandbox.model.image import ImageLock
from sandbox.model.task import Limits
from sandbox.runtime.base import Box, ExecResult
from sandbox.runtime.embedded.still import UPTIME_SECONDS
from sandbox.runtime.image.ensure import ensure
from sandbox.runtime.spec import BoxSpec, Image, Mount, Stillness
from sandbox.runtime.store import Store, default_store
from tests.contract.clock.answers import MODES, PIN, Meanwhile, Mode, asked, instants, split, wrong
from tests.contract.clock.rows import ROWS, Row
from tests.contract.clock.zoo import zoo
from tests.contract.conftest import DOCKER, EMBEDDED, Benches
from tests.support.absent import absent

pytestmark = [pytest.mark.network, pytest.mark.timeout(900)]
LOCK = Path(__file__).parents[2] / "data/zoo/repos/images/zoo.lock.json"
LIMITS = Limits(memory_mib=1024, pids=600, cpus=2.0)
AT_ONCE: dict[Mode, int] = {"ticking": 3, "fixed": 3, "step": 1}
"""Rows in one box. Where each read moves the clock of all, others would bring deadlines nearer."""
KILLED = 137
AXIS_SECONDS = 0.1
"""What this machine and a box may differ by, over what passed between two looks."""


@dataclass(frozen=True, slots=True)
class Found:
    wrong: list[str]
    seconds: float
    """How long its program ran."""


Table = dict[str, Found]


@pytest.fixture(scope="session")
def big_store() -> Store:
    """The user's own: what is in it is pinned, and the image is large."""
    return default_store(os.environ)


@pytest.fixture(scope="session")
def many_programs(big_store: Store) -> Image:
    return ensure(big_store, jsonfile.load(LOCK, ImageLock), lambda *_: None)


@pytest.fixture(scope="session")
def programs(big_store: Store) -> Path:
    return zoo(big_store)


@pytest.fixture(scope="session")
def written() -> Iterator[dict[str, dict[str, Table]]]:
    """Runtime → mode → row → what was found."""
    found: dict[str, dict[str, Table]] = {}
    yield found
    if path := os.environ.get("STILLROOM_CLOCK_TABLE"):
        told = {
            name: {mode: {row: [one.wrong, round(one.seconds, 2)] for row, one in table.items()}
                   for mode, table in modes.items()}
            for name, modes in found.items()
        }  # fmt: skip
        Path(path).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


BOTH = [
    pytest.param((kind.values[0], mode), marks=kind.marks, id=f"{kind.values[0]}, {mode}")
    for kind in (EMBEDDED, DOCKER)
    for mode in MODES
]


@pytest.fixture(scope="module", params=BOTH)
def table(
    request: pytest.FixtureRequest,
    opened: Callable[[str], Benches],
    many_programs: Image,
    programs: Path,
    written: dict[str, dict[str, Table]],
) -> Table:
    """Of one runtime and mode. All rows are run at once, some at a time, as most of them wait."""
    kind, mode = request.param
    bench = opened(kind)(Path())
    if why := bench.runtime.capabilities().still:
        absent(why)
    spec = BoxSpec(
        image=many_programs,
        limits=LIMITS,
        mounts=(Mount(source=programs, target="/zoo"),),
        still=Stillness(at_ns=PIN * 10**9, mode=mode),
    )
    began = time.monotonic_ns()
    with bench.runtime.create(spec) as box, ThreadPoolExecutor(AT_ONCE[mode]) as pool:
        seen = pool.map(partial(look, box, mode, began), ROWS)
        table = {row.name: found for row, found in zip(ROWS, seen, strict=True)}
        box.kill_all()
    written.setdefault(kind, {})[mode] = table
    return table


def look(box: Box, mode: Mode, began: int, row: Row) -> Found:
    """`began`: on this machine's monotonic clock, before the box was made."""
    before = time.monotonic_ns()
    said: list[str] = []
    looks: list[int] = []
    for command in filter(None, (row.command, row.then)):
        # By a program of the box's own: when it takes a runtime to end it, the box ends with it.
        argv = ["timeout", "-sKILL", str(row.seconds), "bash", "-c", asked(command)]
        done = box.exec(argv, seconds=2 * row.seconds, cwd="/tmp")
        parts = split(done.stdout.decode(errors="replace"))
        if parts is None:
            return Found([_unfinished(done)], (time.monotonic_ns() - before) / 1e9)
        first, here, last = parts
        said += here
        looks += [*instants(first), *instants(last)]
    passed = time.monotonic_ns() - before
    if len(looks) < 4:
        return Found([f"the clock was not told: {looks}"], passed / 1e9)
    most = time.monotonic_ns() - began
    # A box may have a machine of its own that has been up for longer; and a clock that stands.
    up = max(time.clock_gettime_ns(time.CLOCK_BOOTTIME), UPTIME_SECONDS * 10**9) + most
    meanwhile = Meanwhile(mode=mode, first=looks[0], last=looks[-1], up=up, passed=most)
    found = [*wrong(said, row.says, meanwhile), *_axis(meanwhile, passed)]
    return Found(found, passed / 1e9)


def _unfinished(done: ExecResult) -> str:
    output = done.stdout.decode(errors="replace")[-300:]
    return f"{'hangs' if done.exit_code == KILLED else 'ended early'}: {output!r}"


def _axis(meanwhile: Meanwhile, passed: int) -> list[str]:
    """The box's own clock against this machine's monotonic one."""
    start, slack = PIN * 10**9, int(AXIS_SECONDS * 1e9)
    first, last = meanwhile.first, meanwhile.last
    right = {
        "ticking": start <= first <= last <= start + meanwhile.passed + slack
        and last - first <= passed + slack,
        "fixed": first == last == start,
        "step": start <= first < last,
    }
    return [] if right[meanwhile.mode] else [f"the box's clock went from {first} to {last}"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace("::", ":"))
def test_it_sees_the_clock_of_its_box_and_does_not_hang(table, row):
    assert table[row.name].wrong == []


def test_there_are_programs_of_many_kinds():
    assert len({row.name for row in ROWS}) == len(ROWS) >= 30
