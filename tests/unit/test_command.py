"""Agents that are programs: small real ones, good and bad, and what is left of them afterwards."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.errors import AgentFault, UserError
from sandbox.model.step import Action, Keys, Observation, Run, Status, Submit
from sandbox.model.task import Limits, TaskId
from sandbox.rollout.agent import Opening
from sandbox.rollout.command import MARK, Command, CommandSession, reap
from sandbox.runtime.store import Store
from tests.support.waiting import eventually

SEEN = Observation(output="ä\n", exit_code=0, cwd="/w")
GOOD = """
import json, sys
def tell(**action): print(json.dumps(action), flush=True)
def hear(): return json.loads(sys.stdin.readline())
"""


@contextmanager
def session(
    folder: Path,
    program: str,
    *,
    wall_seconds: float = 30,
    cancelled: threading.Event | None = None,
    ending_seconds: float = 30,
) -> Iterator[CommandSession]:
    path = folder / "agent.py"
    path.write_text(GOOD + program)
    opening = Opening(
        task=TaskId("t-1"),
        attempt=2,
        instruction="Mend it.",
        workdir="/w",
        limits=Limits(wall_seconds=wall_seconds),
        folder=folder / "out",
        cancelled=cancelled or threading.Event(),
    )
    agent = Command(
        f"exec {sys.executable} -S {path}", Store(folder / "store"), ending_seconds=ending_seconds
    )
    made = agent.begin(opening)
    try:
        yield made
    finally:
        made.close()


def first(folder: Path, program: str) -> Action:
    with session(folder, program) as it:
        return it.act(Observation())


def test_it_is_told_the_task_then_what_it_sees(tmp_path: Path):
    program = """
task = hear()
tell(type="run", command=json.dumps(task))
seen = hear()
tell(type="keys", keys=json.dumps(seen), seconds=2)
"""
    with session(tmp_path, program) as it:
        action = it.act(Observation())
        assert isinstance(action, Run)
        told = json.loads(action.command)
        assert (told["type"], told["protocol"], told["task"], told["attempt"]) == (
            "task", 3, "t-1", 2,
        )  # fmt: skip
        assert (told["instruction"], told["workdir"]) == ("Mend it.", "/w")
        assert told["limits"]["wall_seconds"] == 30
        assert "reference" not in told
        keys = it.act(SEEN)
        assert isinstance(keys, Keys)
        assert keys.seconds == 2
        seen = json.loads(keys.keys)
        assert (seen["type"], seen["output"], seen["exit_code"]) == ("observation", "ä\n", 0)
        assert seen["status"] == Status.EXITED
        # It ended in peace, without a word.
        assert it.act(SEEN) == Submit()


def test_what_it_says_is_its_action(tmp_path: Path):
    program = "hear(); tell(type='run', command='ls', seconds=5)"
    assert first(tmp_path, program) == Run("ls", 5.0)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("hello", "not JSON"),
        ("", "not JSON"),
        ("\udcff", "not JSON"),
        ('{"type": "dance"}', "no action"),
        ('{"type": "run", "command": 7}', "`command` should be a string, not 7"),
    ],
    ids=lambda v: ascii(v[:70]),
)
def test_what_is_no_action_is_the_agent_s_fault(tmp_path: Path, line: str, says: str):
    program = f"""
sys.stdout.reconfigure(errors="surrogateescape")
hear(); print({line!r}, flush=True); sys.stdin.read()
"""
    with pytest.raises(AgentFault, match=says):
        first(tmp_path, program)


@pytest.mark.parametrize("code", [1, 3])
def test_a_program_that_fails_is_a_fault_with_the_end_of_its_log(tmp_path: Path, code: int):
    program = f"hear(); print('no key', file=sys.stderr); sys.exit({code})"
    with pytest.raises(AgentFault, match=f"ended with status {code}: no key") as caught:
        first(tmp_path, program)
    assert "agent.log" in caught.value.hint
    assert (tmp_path / "out" / "agent.log").read_text() == "no key\n"


def test_a_program_that_a_signal_ends_is_a_fault(tmp_path: Path):
    with pytest.raises(AgentFault, match="ended with status -9"):
        first(tmp_path, "hear(); import os; os.kill(os.getpid(), 9)")


def test_a_program_that_is_not_there_is_a_fault(tmp_path: Path):
    opening = Opening(
        task=TaskId("t"), attempt=0, instruction="", workdir="/", limits=Limits(), folder=tmp_path
    )
    made = Command("no-such-program --really", Store(tmp_path / "store")).begin(opening)
    try:
        with pytest.raises(AgentFault, match="status 127"):
            made.act(Observation())
    finally:
        made.close()


def test_a_program_that_ends_in_peace_has_submitted(tmp_path: Path):
    assert first(tmp_path, "") == Submit()
    assert first(tmp_path, "hear()") == Submit()


def test_the_last_line_before_the_end_counts(tmp_path: Path):
    with session(tmp_path, "hear(); tell(type='run', command='ls')") as it:
        assert it.act(Observation()) == Run("ls")
        assert it.act(SEEN) == Submit()


def test_several_lines_at_once_are_answers_to_come(tmp_path: Path):
    program = "hear(); [tell(type='run', command=str(i)) for i in range(3)]; sys.stdin.read()"
    with session(tmp_path, program) as it:
        assert [it.act(SEEN) for _ in range(3)] == [Run("0"), Run("1"), Run("2")]


def test_a_program_that_never_answers_is_given_up_when_the_run_is_stopped(tmp_path: Path):
    cancelled = threading.Event()
    cancelled.set()
    with session(tmp_path, "hear(); sys.stdin.read()", cancelled=cancelled) as it:
        assert it.act(Observation()) == Submit()


def test_a_program_that_never_answers_has_no_more_than_its_wall_time(tmp_path: Path):
    with session(tmp_path, "hear(); sys.stdin.read()", wall_seconds=0.1) as it:
        assert it.act(Observation()) == Submit()


def test_a_line_without_an_end_is_a_fault(tmp_path: Path):
    program = "hear()\nwhile True: sys.stdout.write('x' * 1000000)"
    with pytest.raises(AgentFault, match="more than 16 MiB"):
        first(tmp_path, program)


def test_a_program_that_closes_its_output_and_goes_on_is_a_fault(tmp_path: Path):
    program = "import os; hear(); os.close(1); sys.stdin.read()"
    with (
        session(tmp_path, program, ending_seconds=0.05) as it,
        pytest.raises(AgentFault, match="closed its output"),
    ):
        it.act(Observation())


def test_a_program_that_does_not_read_what_it_is_told_cannot_hold_us_up(tmp_path: Path):
    program = """
line = json.dumps({"type": "run", "command": "x"}) + "\\n"
sys.stdout.write(line * 2)
sys.stdout.flush()
import threading
threading.Event().wait()
"""
    cancelled = threading.Event()
    with session(tmp_path, program, cancelled=cancelled) as it:
        assert it.act(Observation()) == Run("x")
        timer = threading.Timer(0.1, cancelled.set)
        timer.start()
        assert it.act(Observation(output="x" * 5_000_000)) == Run("x")
        timer.join()


def marked(mark: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


BEHIND = """
import os, subprocess
child = subprocess.Popen(["sleep", "300"], start_new_session=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
tell(type="run", command=os.environ["STILLROOM_AGENT"])
sys.stdin.read()
"""


def test_what_it_leaves_running_ends_with_it(tmp_path: Path):
    with session(tmp_path, BEHIND) as it:
        action = it.act(Observation())
        assert isinstance(action, Run)
        assert len(marked(action.command)) == 2
    assert eventually(lambda: marked(action.command) == [])
    assert list((tmp_path / "store" / "agents").iterdir()) == []


DRIVER = """
import os, sys
from pathlib import Path
from sandbox.model.step import Observation
from sandbox.model.task import Limits
from sandbox.rollout.agent import Opening
from sandbox.rollout.command import Command
from sandbox.runtime.store import Store
here = Path(sys.argv[1])
opening = Opening(task="t", attempt=0, instruction="", workdir="/", limits=Limits(), folder=here)
session = Command(f"{sys.executable} -S {here}/agent.py", Store(here / "store")).begin(opening)
print(session.act(Observation()).command, flush=True)
os.kill(os.getpid(), 9)
"""


def test_programs_of_a_run_that_was_killed_are_reaped(tmp_path: Path):
    (tmp_path / "agent.py").write_text(GOOD + BEHIND)
    said = subprocess.run(
        [sys.executable, "-c", DRIVER, tmp_path], stdout=subprocess.PIPE, check=False
    )
    mark = said.stdout.decode().strip()
    assert marked(mark) != []
    gone = reap(Store(tmp_path / "store"))
    assert gone
    assert eventually(lambda: marked(mark) == [])
    assert reap(Store(tmp_path / "store")) == []


def test_programs_of_a_living_run_are_left_alone(tmp_path: Path):
    with session(tmp_path, "hear(); tell(type='run', command='x'); sys.stdin.read()") as it:
        it.act(Observation())
        assert reap(Store(tmp_path / "store")) == []
        it.close()


def test_closing_twice_is_harmless_and_leaves_no_file_descriptor(tmp_path: Path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    with session(tmp_path, "hear()") as it:
        it.act(Observation())
        it.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("command", ["", "  "])
def test_an_agent_needs_a_command(tmp_path: Path, command: str):
    with pytest.raises(UserError, match="needs a command"):
        Command(command, Store(tmp_path))
