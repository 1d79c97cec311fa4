"""One rollout's loop: what ends it, what it leaves on disk, and what it makes of faults."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import AgentFault, RuntimeFault, TerminalFault
from sandbox.formats.asciicast import read_cast
from sandbox.model.record import Ending, Submission
from sandbox.model.step import Action, Keys, Observation, Run, Status, Submit
from sandbox.model.task import ClockSpec, Limits, RandomSpec
from sandbox.rollout.agent import Opening, Session
from sandbox.rollout.agents import Nop, Script
from sandbox.rollout.folder import RolloutFolder
from sandbox.rollout.observer import Observer
from sandbox.rollout.run import Attempt, Clocks, Stopwatch, World, drive, grade, rollout
from sandbox.runtime.base import ExecResult
from sandbox.runtime.fake import NO_IMAGE, Call, FakeBox, FakeRuntime, Reply, said
from sandbox.runtime.spec import BoxSpec, Stillness
from sandbox.runtime.store import Store
from tests.support.homes import GivenDepot, a_task, some_supplies, with_library
from tests.unit.test_verify import GOOD, told

AT = "2024-05-15T12:00:00Z"
NEVER = threading.Event()
LIMITS = Limits(turns=3, wall_seconds=100, command_seconds=7, output_bytes=1000)


class Ticks:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Actor:
    """A session that acts by a function of what it sees, and remembers what it saw."""

    def __init__(self, act: Callable[[Observation], Action]) -> None:
        self._act = act
        self.seen: list[Observation] = []
        self.closed = 0

    def act(self, seen: Observation) -> Action:
        self.seen.append(seen)
        return self._act(seen)

    def close(self) -> None:
        self.closed += 1


class Acting:
    """An agent that hands out one session."""

    name = "acting"

    def __init__(self, session: Session) -> None:
        self.session = session
        self.opening: Opening | None = None

    def begin(self, opening: Opening) -> Session:
        self.opening = opening
        return self.session


class Watcher(Observer):
    def __init__(self) -> None:
        self.phases: list[str] = []
        self.steps = 0

    def phase(self, task: object, attempt: int, name: str) -> None:
        self.phases.append(name)

    def stepped(self, task: object, attempt: int, step: object) -> None:
        self.steps += 1


def answers(box: FakeBox, call: Call) -> ExecResult | None:
    del box
    if "/verify/supervise.py" in call.argv:
        return told(GOOD)
    return said(f"ran {call.command}\n") if call.typed else None


def an_attempt(
    home: Path,
    reply: Reply = answers,
    ticks: Ticks | None = None,
    limits: Limits = LIMITS,
    observer: Observer | None = None,
) -> Attempt:
    task = a_task(home, limits=limits)
    clock = ticks or Ticks()
    depot = GivenDepot(Store(home / "store"), lambda *_: None)
    depot.given = some_supplies(task, home / "supplies")
    world = World(
        runtime=FakeRuntime(reply),
        depot=depot,
        observer=observer or Observer(),
        clocks=Clocks(wall=lambda: 1_000_000_000.0, ticks=clock),
    )
    folder = RolloutFolder(home / "out")
    folder.fresh()
    return Attempt(
        task=task, number=0, world=world, folder=folder, watch=Stopwatch(clock, world.clocks.wall)
    )


def driven(attempt: Attempt, session: Session) -> tuple[int, Ending]:
    box = attempt.world.runtime.create(BoxSpec(image=NO_IMAGE, workdir=attempt.task.workdir))
    with box:
        return drive(session, box, attempt)


def boxes(attempt: Attempt) -> list[FakeBox]:
    assert isinstance(attempt.world.runtime, FakeRuntime)
    return attempt.world.runtime.boxes


def test_an_agent_that_submits_ends_the_loop(tmp_path: Path):
    attempt = an_attempt(tmp_path)
    script = Script([Run("one"), Run("two")])
    assert driven(attempt, script) == (2, Ending.SUBMITTED)
    (box,) = boxes(attempt)
    assert [c.command for c in box.calls if c.typed] == ["one", "two"]


def test_an_agent_that_never_submits_has_so_many_turns(tmp_path: Path):
    actor = Actor(lambda _: Run("again"))
    assert driven(an_attempt(tmp_path), actor) == (3, Ending.TURNS)
    assert [s.output for s in actor.seen] == ["", "ran again\n", "ran again\n"]


def test_the_first_observation_says_where_one_is(tmp_path: Path):
    actor = Actor(lambda _: Submit())
    driven(an_attempt(tmp_path), actor)
    assert actor.seen == [Observation(cwd="/work/toy")]


def test_thinking_counts_as_the_agent_s_time(tmp_path: Path):
    ticks = Ticks()

    def slow(seen: Observation) -> Action:
        ticks.now += 60
        return Run("x")

    assert driven(an_attempt(tmp_path, ticks=ticks), Actor(slow)) == (1, Ending.WALL_TIME)


def test_a_submission_after_the_time_is_up_is_too_late(tmp_path: Path):
    ticks = Ticks()

    def late(seen: Observation) -> Action:
        ticks.now = 100
        return Submit()

    assert driven(an_attempt(tmp_path, ticks=ticks), Actor(late)) == (0, Ending.WALL_TIME)


def test_a_command_is_given_no_more_than_what_is_left(tmp_path: Path):
    def hang(box: FakeBox, call: Call) -> ExecResult | None:
        return said("", None) if call.typed else None

    limits = Limits(turns=1, wall_seconds=0.05, command_seconds=1000)
    actor = Actor(lambda _: Run("hang", 500))
    attempt = an_attempt(tmp_path, hang, limits=limits)
    assert driven(attempt, actor) == (1, Ending.TURNS)
    _, action, seen = attempt.folder.read_events()
    assert (action["action"], action["seconds"]) == ("run", 500)
    assert seen["status"] == "timed_out"


def test_every_step_is_on_disk_and_shown_to_the_observer(tmp_path: Path):
    watcher = Watcher()
    attempt = an_attempt(tmp_path, observer=watcher)
    driven(attempt, Script([Run("one", 5), Keys("two\n", 0.01)]))
    task, *events = attempt.folder.read_events()
    assert (task["type"], task["instruction"]) == ("task", attempt.task.instruction)
    assert [(e["seq"], e["step"], e["type"], e.get("action")) for e in events] == [
        (2, 1, "action", "run"),
        (3, 1, "observation", None),
        (4, 2, "action", "keys"),
        (5, 2, "observation", None),
        (6, 3, "action", "submit"),
    ]
    assert (events[0]["command"], events[2]["keys"]) == ("one", "two\n")
    assert events[1]["output"] == "ran one\n"
    assert watcher.steps == 2


def test_what_the_terminal_shows_is_recorded(tmp_path: Path):
    driven(an_attempt(tmp_path), Script([Run("one"), Run("two")]))
    recording = read_cast(tmp_path / "out" / "terminal.cast")
    assert (recording.header.width, recording.header.height) == (160, 40)
    assert [e.data for e in recording.events if e.code == "m"] == ["one", "two"]
    shown = "".join(e.data for e in recording.events if e.code == "o")
    assert "ran one" in shown
    assert "ran two" in shown


def test_an_action_is_on_disk_before_it_is_carried_out(tmp_path: Path):
    attempt = an_attempt(tmp_path)
    told: list[list[str]] = []

    class Peeking(Observer):
        def stepped(self, task: object, attempt_number: int, step: object) -> None:
            told.append([e["type"] for e in attempt.folder.read_events()])

    def peek(box: FakeBox, call: Call) -> ExecResult | None:
        if call.typed:
            told.append([e["type"] for e in attempt.folder.read_events()])
        return said("")

    attempt = an_attempt(tmp_path, peek, observer=Peeking())
    driven(attempt, Script([Run("one")]))
    assert told == [["task", "action"], ["task", "action", "observation"]]


@pytest.mark.parametrize("odd", [Run("a\0b"), Run("\udcff\ud800"), Run(""), Run("x", -1), Keys("", -1),
                                 Keys("\ud800", 0.01), Run("x", float("nan")), Keys("a\n", float("nan")), Run("x", float("inf"))])  # fmt: skip
def test_an_odd_action_is_answered_and_ends_nothing(tmp_path: Path, odd: Action):
    actions: Iterator[Action] = iter([odd, Run("fine"), Submit()])
    actor = Actor(lambda _: next(actions))
    assert driven(an_attempt(tmp_path), actor) == (2, Ending.SUBMITTED)
    assert actor.seen[2].output.endswith("ran fine\n")


def test_a_shell_that_exits_is_replaced_and_the_loop_goes_on(tmp_path: Path):
    def shell(box: FakeBox, call: Call) -> ExecResult | None:
        return None if call.command.startswith("exit") else said("fine")

    actions: Iterator[Action] = iter([Run("exit 4"), Run("x"), Submit()])
    actor = Actor(lambda _: next(actions))
    assert driven(an_attempt(tmp_path, shell), actor) == (2, Ending.SUBMITTED)
    assert [s.status for s in actor.seen[1:]] == [Status.RESTARTED, Status.EXITED]


def test_a_rollout_goes_from_a_fresh_box_to_a_verdict(tmp_path: Path):
    watcher = Watcher()
    attempt = an_attempt(tmp_path, observer=watcher)
    record = rollout(attempt, Nop(), threading.Event())
    assert record.verdict is not None
    assert (record.reward, record.fault, record.ending) == (1.0, None, Ending.SUBMITTED)
    assert (record.agent, record.runtime, record.started) == ("nop", "fake", "2001-09-09T01:46:40Z")
    assert watcher.phases == ["box", "agent", "collect", "verify"]
    assert set(record.seconds) == {"box", "agent", "collect", "verify", "checks", "total"}
    assert attempt.folder.read_evidence().log == ""
    assert (tmp_path / "out" / "submission.patch").read_bytes() == b""


def test_the_agent_s_box_knows_nothing_of_the_tests_and_is_gone_before_they_come(tmp_path: Path):
    attempt = an_attempt(tmp_path)
    rollout(attempt, Nop(), threading.Event())
    agent, verifier = boxes(attempt)
    assert (agent.spec.labels["role"], verifier.spec.labels["role"]) == ("agent", "verifier")
    assert [p for p in agent.files if "test" in p or "verify" in p] == []
    assert agent.spec.env["LEVEL"] == "3"
    with pytest.raises(RuntimeFault):
        agent.get("/work/toy/src")


def test_the_agent_s_box_has_the_task_s_clock_and_it_ticks_whatever_the_verifier_s_does(
    tmp_path: Path,
):
    attempt = an_attempt(tmp_path)
    clock, chance = ClockSpec(at=AT, mode="step"), RandomSpec(seed=1)
    rollout(replace(attempt, task=replace(attempt.task, clock=clock, random=chance)), Nop(), NEVER)
    agent, verifier = boxes(attempt)
    assert agent.spec.still == Stillness(at_ns=1_715_774_400 * 10**9)
    assert verifier.spec.still == replace(agent.spec.still, mode="step", seed=1)


def test_what_a_verdict_was_made_without_is_told_with_it(tmp_path: Path):
    attempt = an_attempt(tmp_path)
    runtime = FakeRuntime(answers, still="the kernel is too old")
    given = GivenDepot(Store(tmp_path / "store"), lambda *_: None)
    image = with_library(tmp_path / "layer")
    given.given = replace(some_supplies(attempt.task, tmp_path / "supplies"), image=image)
    world = replace(attempt.world, runtime=runtime, depot=given)
    record = rollout(replace(attempt, world=world), Nop(), NEVER)
    assert record.reward == 1.0
    assert "too old" in record.warning
    for box in runtime.boxes:
        assert [m.target for m in box.spec.mounts] == ["/etc/ld.so.preload", "/etc/faketimerc"]
    strict = replace(attempt.task, clock=ClockSpec(at=AT, strict=True))
    record = rollout(replace(attempt, world=world, task=strict), Nop(), NEVER)
    assert record.verdict is None
    assert record.fault is not None
    assert (record.fault.code, record.fault.retry) == ("runtime", False)


def raising(error: BaseException) -> Callable[[Observation], Action]:
    def act(seen: Observation) -> Action:
        raise error

    return act


def test_an_agent_that_breaks_is_a_fault_and_never_a_zero(tmp_path: Path):
    actor = Actor(raising(AgentFault("no model", hint="ask again", retry=False)))
    record = rollout(an_attempt(tmp_path), Acting(actor), threading.Event())
    assert (record.reward, record.verdict, record.ending) == (None, None, None)
    assert record.fault is not None
    assert (record.fault.code, record.fault.message, record.fault.hint, record.fault.retry) == (
        "agent", "no model", "ask again", False,
    )  # fmt: skip
    assert actor.closed == 1


def test_an_error_that_nobody_expected_is_loud_and_no_score(tmp_path: Path):
    attempt = an_attempt(tmp_path)
    actor = Actor(raising(ZeroDivisionError("our bug")))
    with pytest.raises(ZeroDivisionError):
        rollout(attempt, Acting(actor), threading.Event())
    assert actor.closed == 1
    with pytest.raises(RuntimeFault):
        boxes(attempt)[0].exec(["true"], seconds=1)


def lose_the_shell(box: FakeBox, call: Call) -> ExecResult | None:
    if call.typed:
        raise TerminalFault("the shell did not start")
    return answers(box, call)


def lose_the_box(box: FakeBox, call: Call) -> ExecResult | None:
    if call.typed:
        box.destroy()
    return answers(box, call)


def test_an_agent_that_breaks_its_box_s_shell_is_judged_by_what_it_leaves(tmp_path: Path):
    acting = Acting(Actor(lambda _: Run("rm -rf /")))
    record = rollout(an_attempt(tmp_path, lose_the_shell), acting, threading.Event())
    assert (record.fault, record.ending, record.steps) == (None, Ending.SHELL_LOST, 1)
    assert record.verdict is not None


def test_a_box_that_is_lost_under_the_agent_is_a_fault(tmp_path: Path):
    acting = Acting(Actor(lambda _: Run("make")))
    record = rollout(an_attempt(tmp_path, lose_the_box), acting, threading.Event())
    assert record.fault is not None
    assert (record.fault.code, record.verdict) == ("runtime", None)


def test_a_verifier_that_breaks_is_a_fault_after_the_agent_s_part(tmp_path: Path):
    def broken(box: FakeBox, call: Call) -> ExecResult | None:
        return told(b"", 1) if "/verify/supervise.py" in call.argv else None

    record = rollout(an_attempt(tmp_path, broken), Nop(), threading.Event())
    assert record.fault is not None
    assert (record.fault.code, record.ending) == ("verifier", Ending.SUBMITTED)


def test_the_opening_tells_what_a_person_would_be_told(tmp_path: Path):
    acting = Acting(Actor(lambda _: Submit()))
    cancelled = threading.Event()
    rollout(an_attempt(tmp_path), acting, cancelled)
    assert acting.opening is not None
    assert acting.opening.instruction == "Mend it.\n"
    assert acting.opening.workdir == "/work/toy"
    assert acting.opening.limits == LIMITS
    assert acting.opening.cancelled is cancelled


def test_a_submission_from_elsewhere_is_graded_without_an_agent(tmp_path: Path):
    attempt = an_attempt(tmp_path)
    record = grade(attempt, lambda _: Submission(task=attempt.task.id, patch=b""), "somebody")
    assert (record.reward, record.ending, record.agent) == (1.0, Ending.GRADED, "somebody")
    assert [b.spec.labels["role"] for b in boxes(attempt)] == ["verifier"]


def test_a_rejected_submission_is_a_zero_and_no_fault(tmp_path: Path):
    attempt = an_attempt(tmp_path)
    made = Submission(task=attempt.task.id, patch=b"", rejected="too big")
    record = grade(attempt, lambda _: made, "a")
    assert (record.reward, record.fault) == (0.0, None)
    assert record.verdict is not None
    assert record.verdict.reason == "rejected: too big"


def test_a_stopwatch_tells_phases_apart():
    ticks = Ticks()
    watch = Stopwatch(ticks)
    with watch.phase("a"):
        ticks.now += 2
    with suppress(KeyError), watch.phase("b"):
        ticks.now += 3
        raise KeyError
    assert watch.total() == {"a": 2.0, "b": 3.0, "total": 5.0}
