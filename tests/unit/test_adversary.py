"""An agent that performs an exploit: what it does at the terminal, and what it makes of the answers."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.audit.exploits.adversary import Adversary, Assault, Notes, read_notes
from sandbox.audit.exploits.memo import Memo
from sandbox.audit.exploits.run import applies, running
from sandbox.formats.digest import Entry
from sandbox.formats.exploitfile import Exploit, ExploitStep, load_corpus
from sandbox.model.conditions import Conditions
from sandbox.model.record import Submission
from sandbox.model.step import Keys, Observation, Run, Status, Submit
from sandbox.model.verdict import Evidence, Ran
from sandbox.rollout.agent import Opening
from sandbox.runtime.fake import FakeRuntime
from tests.support.homes import a_task, some_supplies
from tests.support.waiting import eventually

BARE = {"id": "x", "title": "t", "scope": "repo", "source": "s"}


def adversary(home: Path, **more: Any) -> Adversary:
    return Adversary(
        task=a_task(home),
        exploit=Exploit(**BARE | more),
        helpers="_hx_helped = True\n",
        base=lambda: [Entry("src/a.py", "file", b"a = 1\n")],
        uncovered=lambda: ["b"],
        marker="/m",
        token="tok",
    )


def begun(home: Path, **more: Any) -> Assault:
    one = adversary(home, **more)
    task = one.task
    return one.begin(
        Opening(
            task=task.id,
            attempt=1,
            instruction="",
            workdir=task.workdir,
            limits=task.limits,
            folder=home,
        )
    )


def played(session: Assault, *answers: Observation) -> list[object]:
    """Its actions, when everything that is not answered otherwise succeeds."""
    left = iter(answers)
    done: list[object] = []
    seen = Observation()
    while not isinstance(action := session.act(seen), Submit):
        done.append(action)
        seen = next(left, Observation(exit_code=0))
    session.close()
    return done


def ended(code: int, output: str = "") -> Observation:
    return Observation(exit_code=code, output=output)


def in_a_shell(home: Path, actions: list[object]) -> None:
    (home / "work/src").mkdir(parents=True)
    (home / "work/src/a.py").write_text("a = 1\n")
    commands = [a.command for a in actions if isinstance(a, Run)][1:]
    script = "\n".join(commands)
    subprocess.run(["bash", "-ec", script], cwd=home / "work", check=True)


def imported(home: Path, after: str, before: str = "") -> str:
    code = f"{before}{(home / 'work/src/a.py').read_text()}\n{after}"
    return subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    ).stdout


def test_files_and_code_arrive_as_they_are_written(tmp_path):
    text = "it's `odd` $HOME \\n é\n"
    more = {"before": "first = 1\n", "attach": "print('@token@')\n", "files": {"deep/x.txt": text}}
    in_a_shell(tmp_path, played(begun(tmp_path, **more)))
    assert (tmp_path / "work/deep/x.txt").read_text() == text
    assert (tmp_path / "work/src/a.py").read_text().startswith("first = 1\na = 1\n")
    assert imported(tmp_path, "print(first, a)") == "tok\n1 1\n"


@pytest.mark.parametrize("name", ["_hx_helped", "_HX_HELPED"])
def test_code_that_speaks_of_helpers_runs_after_them_under_a_name_of_its_own(tmp_path, name):
    code = f"import json\nb = 2\nprint({name.lower()}, a, __name__, '{name}')\n"
    in_a_shell(tmp_path, played(begun(tmp_path, attach=code)))
    said = imported(tmp_path, "print(sorted(n for n in vars() if n[0] != '_'))", "globals = 0\n")
    assert said.splitlines() == [f"True 1 attached {name}", "['a', 'globals']"]


def test_attached_code_of_the_corpus_rests_on_names_that_there_are():
    """A name that is not there would make an exploit harmless, and its result a lie."""
    corpus = load_corpus()
    for one in corpus.exploits:
        if names := set(re.findall(r"_hx_\w+|_HX_\w+", one.attach)):
            there = set(re.findall(r"\b_hx_\w+|\b_HX_\w+", corpus.helpers))
            own = set(
                re.findall(r"(?:def|import|as) (_hx_\w+)|^ *(_hx_\w+) =", one.attach, re.MULTILINE)
            )
            assert names <= there | {n for pair in own for n in pair}, one.id


def test_a_program_that_is_lacking_ends_it_before_anything_is_done(tmp_path):
    session = begun(tmp_path, needs=("tmux",), steps=(ExploitStep(run="tmux new"),))
    assert len(played(session, ended(0), ended(1))) == 2
    assert read_notes(tmp_path).lacks == ("tmux",)


def test_a_terminal_that_says_what_is_not_so_was_deceived(tmp_path):
    session = begun(tmp_path, steps=(ExploitStep(run="false", exit=1), ExploitStep(run="true")))
    played(session, ended(0), ended(0))
    assert read_notes(tmp_path) == Notes(deceived=("false: exit code 0, in truth 1",))


def test_a_terminal_that_tells_the_truth_was_not(tmp_path):
    played(begun(tmp_path, steps=(ExploitStep(run="false", exit=1),)), ended(0), ended(1))
    assert read_notes(tmp_path) == Notes()


def test_what_does_not_work_is_noted(tmp_path):
    session = begun(tmp_path, files={"/no/x": "y"}, steps=(ExploitStep(run="cp a b", exit=0),))
    played(session, ended(0), ended(1, "read-only"), ended(2))
    undone = read_notes(tmp_path).undone
    assert len(undone) == 2
    assert "/no/x" in undone[0]
    assert "read-only" in undone[0]


def test_a_shell_that_was_replaced_says_nothing_of_an_exit_code(tmp_path):
    session = begun(tmp_path, steps=(ExploitStep(run="exec cat", exit=1),))
    played(session, ended(0), Observation(status=Status.RESTARTED))
    assert read_notes(tmp_path) == Notes()


def test_keys_are_typed(tmp_path):
    keys = played(begun(tmp_path, steps=(ExploitStep(keys="@token@", named=("Enter",)),)))[-1]
    assert keys == Keys("tok", named=("Enter",), seconds=1.0)


@pytest.mark.parametrize(
    ("more", "runner", "does"),
    [
        ({"needs": ("pytest",)}, "unittest", False),
        ({"needs": ("pytest",)}, "pytest", True),
        ({"attach": "x"}, "go", False),
        ({"steps": (ExploitStep(run="x"),)}, "cargo", True),
    ],
)
def test_an_exploit_is_for_tasks_that_have_what_it_needs(tmp_path, more, runner, does):
    task = a_task(tmp_path)
    task = replace(task, verifier=replace(task.verifier, runner=runner))
    assert applies(Exploit(**BARE | more), task) is does


def test_what_is_the_same_is_verified_once(tmp_path):
    task = a_task(tmp_path)
    supplies = some_supplies(task, tmp_path / "supplies")
    runtime = FakeRuntime()
    memo = Memo(Conditions(layers="none"))
    bad = Submission(task=task.id, patch=b"--- nonsense", dropped=("a",))
    first = memo(task, bad, runtime, supplies, attempt=1)
    again = memo(task, replace(bad, dropped=("b",)), runtime, supplies, attempt=2)
    assert isinstance(first, Evidence)
    assert first.ran is Ran.REJECTED
    assert (first.outside[:1], again.outside[:1]) == (("a",), ("b",))
    assert replace(first, outside=()) == replace(again, outside=())


def test_a_process_that_stays_is_found_by_its_token():
    token = f"hxtoken{os.getpid()}"
    waits = [sys.executable, "-c", "input()", token]
    with subprocess.Popen(waits, stdin=subprocess.PIPE) as process:
        # The kernel says that it runs a moment before it says with which words.
        assert eventually(lambda: process.pid in running(token))
        process.communicate(b"\n")
    assert running(token) == []
