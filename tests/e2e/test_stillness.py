"""A verdict is the same whatever the day, the machine and who asks; and it says what it was made with."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import RuntimeFault
from sandbox.formats.taskfile import load_task
from sandbox.grading.judge import judge
from sandbox.grading.verify import verify
from sandbox.model.conditions import USUAL, Conditions
from sandbox.model.record import Submission
from sandbox.model.step import Run
from sandbox.model.task import ClockSpec, RandomSpec, TaskSpec
from sandbox.model.verdict import Evidence, Verdict
from sandbox.rollout import plugins
from sandbox.rollout.run import agent_box
from sandbox.runtime.base import Capabilities, Runtime
from sandbox.runtime.freeze.hold import held
from sandbox.runtime.locks import lock_task, new_task
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot
from sandbox.runtime.terminal import Terminal
from tests.support.absent import absent

pytestmark = [pytest.mark.box, pytest.mark.network]
AT = "2024-05-15T12:00:00Z"
SHIFTS = {
    "as the task has it": USUAL,
    "a year later": Conditions(at="2025-05-14T12:00:00Z"),
    "on 29 February": Conditions(at="2028-02-29T12:00:00Z"),
    "while the clock stands": Conditions(mode="fixed"),
    "while the clock moves as it is read": Conditions(mode="step"),
    "elsewhere": Conditions(env={"TZ": "Asia/Kolkata", "LANG": "C"}, hostname="other"),
    "with another hash": Conditions(env={"PYTHONHASHSEED": "7"}, order=3),
    "as somebody else": Conditions(user="1000:1000", umask=0o077),
    "with less": Conditions(cpus=1.0, load=2),
}
TESTS = """

import os, subprocess, time


def test_nothing_of_the_machine_is_in_the_environment():
    assert "STILLROOM_CANARY" not in os.environ


def test_all_programs_have_one_clock():
    asked = subprocess.run(["/bin/date", "+%s"], env={}, capture_output=True, check=True).stdout
    assert abs(int(asked) - time.time()) < 60
"""
CHECKS = "test_nothing_of_the_machine_is_in_the_environment", "test_all_programs_have_one_clock"


class Lesser:
    """A runtime that cannot hold a clock on its own."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def capabilities(self) -> Capabilities:
        return replace(self._runtime.capabilities(), still="it is not tried here")


class Bench:
    """A small task, and a runtime to judge it with."""

    def __init__(self, home: Path, store: Store, runtime: Runtime) -> None:
        self.runtime = runtime
        self.depot = Depot(store, lambda *_: None)
        new_task(store, home, "still-1")
        with (home / "verifiers/still-1/bundle/tests/test_words.py").open("a") as f:
            f.write(TESTS)
        with (home / "verifiers/still-1/checks.yaml").open("a") as f:
            f.writelines(f'  - "tests/test_words.py::{name}"\n' for name in CHECKS)
        lock_task(self.depot, load_task(home, "still-1"))
        self.task = load_task(home, "still-1")

    def evidence(self, task: TaskSpec | None = None, conditions: Conditions = USUAL) -> Evidence:
        chosen = task or self.task
        supplies = self.depot.supply(chosen)
        made = Submission(task=chosen.id, patch=self.depot.solution(chosen, supplies))
        return verify(chosen, made, self.runtime, supplies, conditions=conditions)

    def verdict(self, evidence: Evidence) -> Verdict:
        return judge(self.task.verifier, evidence)


@pytest.fixture(params=["embedded", pytest.param("docker", marks=pytest.mark.docker)])
def runtime(request: pytest.FixtureRequest, store: Store) -> Iterator[Runtime]:
    with closing(plugins.runtime(request.param, store)) as made:
        yield made


@pytest.fixture
def bench(runtime: Runtime, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("STILLROOM_CANARY", "of this machine")
    if why := runtime.capabilities().still:
        absent(why)
    return Bench(tmp_path, store, runtime)


def test_no_shift_of_conditions_changes_the_verdict(bench: Bench):
    for name, conditions in SHIFTS.items():
        found = bench.evidence(conditions=conditions)
        assert (name, bench.verdict(found).reason) == (name, "")
        assert found.clock is not None
        assert (found.clock.coverage, found.clock.at) == ("full", conditions.at or AT)


def test_with_a_seed_chance_is_the_same_in_every_run(bench: Bench):
    chosen = replace(bench.task, random=RandomSpec(seed=5, aslr=False))
    found = [bench.evidence(chosen) for _ in range(2)]
    settings = [evidence.probes[1].settings for evidence in found]
    assert settings[0]["drawn"] == settings[1]["drawn"]
    assert settings[0]["aslr"] == "off"


SEEN: dict[str, Callable[[str], bool]] = {
    "date -u +%FT%H:%M": lambda said: said == "2024-05-15T12:00",
    "env -i date -u +%F": lambda said: said == "2024-05-15",
    "echo $EPOCHREALTIME": lambda said: 0 <= float(said) - 1_715_774_400 < 60,
    "touch new; stat -c %Y new": lambda said: 0 <= int(said) - 1_715_774_400 < 60,
    "git commit -qm x --allow-empty; git log -1 --format=%cs": lambda said: said == "2024-05-15",
    "env | grep -c CANARY": lambda said: said == "0",
}


@pytest.mark.parametrize("lesser", [False, True])
def test_an_agent_s_shell_has_the_task_s_clock(bench: Bench, lesser: bool):  # noqa: FBT001
    runtime: Any = Lesser(bench.runtime) if lesser else bench.runtime
    supplies = bench.depot.supply(bench.task)
    with (
        held(agent_box(bench.task, supplies), runtime, supplies.scratch, strict=False) as hold,
        runtime.create(hold.spec) as box,
        Terminal(box, cwd=bench.task.workdir, command_seconds=30, output_bytes=5000) as terminal,
    ):
        for command, is_right in SEEN.items():
            if lesser and "stat" in command:
                continue  # there, files have the machine's times
            said = terminal.do(Run(command)).output.strip()
            assert is_right(said), f"{command}: {said}"


def test_where_a_clock_is_held_in_part_the_verdict_is_the_same_and_says_so(bench: Bench):
    whole = bench.runtime
    bench.runtime = Lesser(whole)
    found = bench.evidence()
    assert bench.verdict(found).resolved
    assert found.clock is not None
    assert (found.clock.coverage, found.clock.at) == ("partial", AT)
    assert "not tried here" in found.clock.warning
    strict = replace(bench.task, clock=ClockSpec(at=AT, strict=True))
    with pytest.raises(RuntimeFault, match=r"clock\.strict"):
        bench.evidence(strict)
