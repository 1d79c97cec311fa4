"""What is in the tables, command by command: just this comes of it, and the shell is fine after."""

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from sandbox.model.step import Observation, Run, Status
from sandbox.runtime.base import Box
from sandbox.runtime.terminal import Terminal
from tests.contract.terminal.conftest import agents_box
from tests.contract.terminal.hung import HUNG
from tests.contract.terminal.odd import ODD
from tests.contract.terminal.plain import PLAIN
from tests.contract.terminal.settings import SETTINGS
from tests.contract.terminal.table import Case, Mode, fits, skip_without
from tests.support.waiting import eventually

SECONDS = 20.0
ENDED_WITHIN = 6.0
AT_ONCE = 6
"""Terminals with something that hangs."""


def rows(table: tuple[Case, ...], *, breaks_box: bool = False) -> list[object]:
    return [
        pytest.param(case, mode, id=f"{case.name}, {mode}".replace("::", ":"))
        for case in table
        for mode in case.modes
        if case.breaks_box is breaks_box
    ]


def faults(case: Case, mode: Mode, box: Box) -> list[str]:
    """Run it in a terminal of its own; what is not as it should be."""
    with Terminal(box, cwd="/root", command_seconds=SECONDS, output_bytes=1 << 20) as terminal:
        run = partial(_run, terminal, mode)
        found: list[str] = []
        run("export KEPT=42")
        sane = run("SANE=$(stty -g </dev/tty); echo $SANE").output
        for command in case.before:
            run(command)
        seen = run(case.command, case.seconds)
        _compare(found, case, mode, seen)
        for command in case.after:
            run(command)
        _check_shell(found, case, [run('echo ali"ve"42'), run("echo $KEPT")])
        now = run("stty -g </dev/tty").output
        if now != sane and not case.changes_terminal:
            found.append(f"the terminal was {sane!r}, is {now!r}")
    return [*found, repr(seen)] if found else []


def _run(terminal: Terminal, mode: Mode, command: str, seconds: float | None = None) -> Observation:
    return terminal.do(Run(command, tty=mode == "tty", seconds=seconds))


def _compare(found: list[str], case: Case, mode: Mode, seen: Observation) -> None:
    if not fits(seen.output, case.wanted(mode)):
        found.append(f"output: {case.wanted(mode)!r} was wanted, {seen.output[:500]!r} came")
    if not fits(seen.background, case.wanted_beside(mode)):
        found.append(f"beside it: {case.wanted_beside(mode)!r}, {seen.background[:500]!r} came")
    if (seen.exit_code, seen.status) != (case.code, case.status):
        found.append(f"{case.status}, {case.code} was wanted, {seen.status}, {seen.exit_code} came")
    # A second may be too short to begin to wait, where six begin at once.
    waited = "(, while it waited for input)?" if case.waits else ""
    told = rf"the time limit of \d\.\d seconds was reached{waited}" if case.seconds else ""
    if not re.fullmatch(told, seen.limit) or seen.truncated:
        found.append(f"limit {seen.limit!r}, truncated {seen.truncated}")
    if case.seconds and seen.seconds > case.seconds + ENDED_WITHIN:
        found.append(f"it took {seen.seconds:.1f} s to end it")


def _check_shell(found: list[str], case: Case, after: list[Observation]) -> None:
    wanted = ["alive42\n", "42\n" if case.stays else "\n"]
    if [one.output for one in after] != wanted:
        found.append(f"afterwards {wanted} was wanted, {after} came")
    if any(one.exit_code != 0 or one.status is not Status.EXITED for one in after):
        found.append(f"afterwards all is well: {after}")


@pytest.mark.parametrize(("case", "mode"), rows(PLAIN))
def test_what_an_agent_writes(case, mode, common_box):
    hold(case, mode, common_box)


@pytest.mark.parametrize(("case", "mode"), rows(SETTINGS))
def test_what_is_set_otherwise(case, mode, common_box):
    hold(case, mode, common_box)


@pytest.mark.parametrize(("case", "mode"), rows(ODD))
def test_what_is_to_confuse(case, mode, common_box):
    hold(case, mode, common_box)


@pytest.mark.parametrize(("case", "mode"), rows(ODD, breaks_box=True))
def test_what_harms_the_box(case, mode, own_box):
    assert faults(case, mode, own_box) == []


def hold(case: Case, mode: Mode, box: Box) -> None:
    skip_without(case.command)
    before = box.stats().processes
    assert faults(case, mode, box) == []
    assert eventually(lambda: box.stats().processes == before), processes(box)


def processes(box: Box) -> str:
    return box.exec(["ps", "axww", "-opid,args"], seconds=30).stdout.decode()


@pytest.fixture(scope="module")
def hung(shared) -> Iterator[dict[tuple[str, str], list[str]]]:
    """What all that hangs has come to, several at a time, as each takes seconds."""
    with (
        agents_box(shared[0]) as box,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        before = box.stats().processes
        waiting: dict[tuple[str, str], Future[list[str]]] = {
            (case.name, mode): pool.submit(faults, case, mode, box)
            for case in HUNG
            for mode in case.modes
        }
        found = {which: future.result() for which, future in waiting.items()}
        gone = eventually(lambda: box.stats().processes == before)
        found["what is left", ""] = [] if gone else [processes(box)]
        yield found


@pytest.mark.parametrize(("case", "mode"), rows(HUNG))
def test_what_never_ends(case, mode, hung):
    skip_without(case.command)
    assert hung[case.name, mode] == []


def test_of_what_never_ends_nothing_is_left(hung):
    assert hung["what is left", ""] == []


def test_rows_have_names_of_their_own_and_say_why_where_they_are_not_exact():
    table = (*PLAIN, *SETTINGS, *ODD, *HUNG)
    assert len({case.name for case in table}) == len(table) > 74 + 60
