"""The embedded runtime where its own process has hardly any descriptors left."""

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from sandbox.errors import RuntimeFault
from sandbox.runtime.embedded.box import EmbeddedBox
from tests.contract.conftest import Benches
from tests.support.waiting import eventually

pytestmark = pytest.mark.box

MANY = 1024


@pytest.fixture
def box(opened: Callable[[str], Benches], tmp_path: Path) -> Iterator[EmbeddedBox]:
    with opened("embedded")(tmp_path).box() as made:
        assert isinstance(made, EmbeddedBox)
        yield made


def are_open() -> set[int]:
    found = set()
    for number in range(MANY):
        with suppress(OSError):
            os.fstat(number)
            found.add(number)
    return found


@contextmanager
def room_for(count: int) -> Iterator[None]:
    """Only so many descriptors can still be opened."""
    free = sorted(set(range(MANY)) - are_open())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[count], hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("room", range(12))
def test_a_terminal_that_cannot_be_opened_is_a_fault_and_leaves_nothing_open(
    box: EmbeddedBox, room: int
):
    before = are_open()
    with suppress(RuntimeFault), room_for(room), closing(box.open_pty(["cat"], wires=True)):
        assert room > 0
    assert are_open() == before


@pytest.mark.parametrize("room", range(12))
def test_so_is_a_program_that_cannot_be_run(box: EmbeddedBox, room: int):
    before = are_open()
    with suppress(RuntimeFault), room_for(room):
        assert box.exec(["echo", "ran"], seconds=30).stdout == b"ran\n"
        assert room > 0
    assert are_open() == before


def test_a_terminal_that_gets_lost_on_its_way_is_a_fault_and_leaves_nothing_open(box: EmbeddedBox):
    """The kernel drops a descriptor for which there is no room when it arrives."""
    before = are_open()
    first = box._body.pidfd
    with ThreadPoolExecutor(1) as pool:
        signal.pidfd_send_signal(first, signal.SIGSTOP)
        asked = pool.submit(box.open_pty, ["cat"], wires=True)
        assert eventually(lambda: len(are_open() - before) == 7)
        time.sleep(0.1)
        with room_for(0):
            signal.pidfd_send_signal(first, signal.SIGCONT)
            assert isinstance(asked.exception(30), RuntimeFault)
    assert are_open() == before
    assert box.exec(["echo", "ran"], seconds=30).stdout == b"ran\n"
