"""A recording, played: its times, its bounds, and nothing in it that a terminal would obey."""

from pathlib import Path

import pytest
from rich.console import Console

from sandbox.errors import UserError
from sandbox.formats.asciicast import Event, Header, Recording
from sandbox.report.replay import frames
from sandbox.report.tables import steps_table
from sandbox.rollout.outdir import find_rollout

HEADER = Header(width=80, height=24)


def recording(*events: tuple[float, str, str]) -> Recording:
    return Recording(header=HEADER, events=tuple(Event(*e) for e in events))


def test_output_comes_in_its_time_and_idle_time_is_cut():
    it = recording(
        (0.5, "o", "a"), (1.0, "i", "x"), (1.5, "m", "run"), (2.0, "o", "b"), (90, "o", "c")
    )
    assert list(frames(it, speed=1, max_wait=2)) == [(0.5, "a"), (1.5, "b"), (2.0, "c")]
    assert list(frames(it, speed=2, max_wait=60)) == [(0.25, "a"), (0.75, "b"), (30.0, "c")]


def test_markers_and_what_is_not_known_are_not_shown():
    it = recording((0, "m", "\x1b]52;c;x\x07"), (0, "x", "?"), (0, "r", "10x10"), (0, "o", "a"))
    assert list(frames(it, speed=1, max_wait=2)) == [(0, "a")]


def test_times_that_go_back_are_no_time():
    it = recording((5, "o", "a"), (1, "o", "b"), (6, "o", "c"))
    assert list(frames(it, speed=1, max_wait=10)) == [(5, "a"), (0, "b"), (1, "c")]


def test_what_would_act_is_gone_even_across_events():
    it = recording((0, "o", "a\x1b]52;c;"), (0, "o", "Zm9v\x07b\x1b["), (0, "o", "6n\x1b[1mc"))
    assert [text for _, text in frames(it, speed=1, max_wait=2)] == ["a", "b", "\x1b[1mc"]


def table(*events: dict[str, object]) -> str:
    console = Console(width=200, force_terminal=False)
    with console.capture() as said:
        console.print(steps_table(events))
    return said.get()


def test_a_line_per_step_says_what_was_done_and_what_came_of_it():
    said = table(
        {"seq": 1, "time": 0.51, "type": "action", "step": 1, "action": "run", "command": "ls\nid"},
        {"seq": 2, "time": 0.6, "type": "observation", "step": 1, "status": "exited",
         "exit_code": 3, "total_bytes": 12},
        {"seq": 3, "time": 7.0, "type": "action", "step": 2, "action": "keys", "keys": ":q",
         "named": ["Enter"]},
        {"seq": 4, "time": 8.0, "type": "observation", "step": 2, "status": "running",
         "exit_code": None, "total_bytes": 0},
        {"seq": 5, "time": 9.0, "type": "action", "step": 3, "action": "submit"},
    )  # fmt: skip
    rows = [line.split() for line in said.splitlines()[1:]]
    assert rows == [
        ["1", "0.5", "run", "ls\\nid", "exited", "3", "12"],
        ["2", "7.0", "keys", ":q", "Enter", "running", "0"],
        ["3", "9.0", "submit"],
    ]


def test_an_action_that_was_never_answered_is_shown_all_the_same():
    assert "sleep 1000" in table(
        {"seq": 1, "time": 0, "type": "action", "step": 1, "action": "run", "command": "sleep 1000"}
    )


def test_a_person_s_part_has_its_lines_too():
    said = table(
        {"seq": 1, "time": 0.1, "type": "person", "what": "begin", "rows": 24, "cols": 80},
        {"seq": 2, "time": 60.0, "type": "person", "what": "end", "exit_code": 0, "bytes": 99},
    )
    assert [line.split() for line in said.splitlines()[1:]] == [
        ["0.1", "person:", "begin"],
        ["60.0", "person:", "end", "0", "99"],
    ]


def test_nothing_in_a_table_is_obeyed_or_taken_for_markup():
    said = table(
        {
            "type": "action",
            "step": 1,
            "action": "run",
            "command": "\x1b]52;c;x\x07[red]" + "x" * 9999,
        },
        {"type": "observation", "step": 1, "status": "\x1b[6n", "exit_code": ["\x1bc"]},
        {"type": "\x9b5n", "step": {"a": "\x00"}},
    )
    assert all(c.isprintable() or c == "\n" for c in said)
    assert "[red]" in said
    assert len(said) < 1500


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    for attempt in ("1", "2", "10", "x"):
        (folder / "rollouts" / "my-task" / attempt).mkdir(parents=True)
    (folder / "run.json").touch()
    return folder


def test_a_rollout_is_found_by_run_task_and_attempt(run: Path):
    assert find_rollout(run, "my-task", None).path == run / "rollouts" / "my-task" / "1"
    assert find_rollout(run, "my-task", 10).path == run / "rollouts" / "my-task" / "10"


@pytest.mark.parametrize(
    ("task", "attempt", "said", "hint"),
    [
        ("my-taks", None, "no task `my-taks`", "did you mean `my-task`?"),
        ("..", None, "no task `..`", "it has my-task"),
        ("/etc", None, "no task", "it has my-task"),
        ("my-task", 3, "no attempt 3", "attempts there: 1, 2, 10"),
    ],
)
def test_a_rollout_that_is_not_there(
    run: Path, task: str, attempt: int | None, said: str, hint: str
):
    with pytest.raises(UserError, match=said) as caught:
        find_rollout(run, task, attempt)
    assert caught.value.hint == hint


def test_a_folder_that_is_no_run(tmp_path: Path):
    with pytest.raises(UserError, match="not the folder of a run"):
        find_rollout(tmp_path, "my-task", None)
    with pytest.raises(UserError, match="not the folder of a run"):
        find_rollout(tmp_path / "nothing", "my-task", None)
