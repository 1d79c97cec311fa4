"""Who is signalled: what runs in front of a terminal, all it has started, and nobody else."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.runtime import family
from tests.support.jobs import Terminal
from tests.support.waiting import eventually


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    made.close()


def started(terminal, command: str, name: str) -> int:
    """Its process id, once it runs."""
    terminal.run(command)
    found: list[int] = []

    def there() -> bool:
        found[:] = [
            pid
            for pid in family.signalled(terminal.shell.pid, 0, family.SESSION, [])
            if Path(f"/proc/{pid}/comm").read_text().strip() == name
        ]
        return bool(found)

    assert eventually(there)
    return found[0]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_foreground_and_its_children_wherever_they_went(terminal):
    pid = started(terminal, "sh -c 'setsid sleep 6161 & wait'", "sleep")
    assert pid in family.signalled(terminal.shell.pid, 0, family.FOREGROUND, [])
    assert pid in family.signalled(terminal.shell.pid, signal.SIGKILL, family.FOREGROUND, [])
    assert eventually(lambda: not alive(pid))
    assert alive(terminal.shell.pid)


def test_jobs_in_the_background_belong_to_the_session_only(terminal):
    pid = started(terminal, "sleep 6162 &", "sleep")
    assert pid not in family.signalled(terminal.shell.pid, 0, family.FOREGROUND, [])
    assert pid in family.signalled(terminal.shell.pid, signal.SIGKILL, family.SESSION, [])
    assert alive(terminal.shell.pid)


def test_only_those_that_are_named_if_nobody_else_is_meant(terminal):
    pid = started(terminal, "sleep 6163", "sleep")
    assert family.signalled(terminal.shell.pid, signal.SIGKILL, family.NONE, [pid]) == [pid]
    gone = eventually(lambda: not alive(pid))
    assert gone
    assert family.signalled(terminal.shell.pid, 0, family.NONE, [pid]) == []


@pytest.mark.parametrize("pid", [-1, 0, 1])
def test_nobody_is_everybody(terminal, pid):
    assert family.signalled(terminal.shell.pid, 0, family.NONE, [pid]) == []


def test_a_shell_that_is_gone_has_no_family():
    assert family.signalled(2**22 - 1, 0, family.FOREGROUND, []) == []
