"""`show RUN TASK`, and its replay: into a pipe, on a real terminal, stopped, and refused."""

import json
import os
import pty
import select
import signal
import sys
import termios
import time
from pathlib import Path

import pytest

from sandbox.formats.asciicast import Cast
from sandbox.model.step import Observation, Run, Submit
from sandbox.rollout.folder import RolloutFolder
from tests.e2e.conftest import Stillroom, command

EVIL = b"\x1b]52;c;cm0gLXJm\x07\x1b[6n\x1b[c\x1b]0;title\x07\x1b[21t\x1bP$qm\x1b\\"
TASK = "my-task"


class Ticks:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def folder(tmp_path: Path) -> RolloutFolder:
    """A rollout of two commands, two seconds apart, of which the second never ends."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").touch()
    made = RolloutFolder(tmp_path / "run" / "rollouts" / TASK / "0")
    made.fresh()
    ticks = Ticks()
    with made.cast(24, 80, ticks=ticks) as cast, made.events(ticks) as events:
        write_rollout(cast, ticks)
        events.action(1, Run("printf '\x1b]0;evil\x07'"))
        events.observation(1, Observation(output="x", exit_code=1, total_bytes=7))
        events.action(2, Submit())
    return made


def write_rollout(cast: Cast, ticks: Ticks) -> None:
    cast.marker("run 1")
    cast.output(b"\x1b[31mred\x1b[0m\r\n" + EVIL + b"after\r\n")
    cast.typed(b"secret")
    ticks.now += 0.4
    cast.output(b"\x1b[?1049h\x1b[?25lfull screen")
    ticks.now += 3600
    cast.output(b" the end")


def test_the_steps_of_a_rollout(stillroom: Stillroom, folder: RolloutFolder):
    done = stillroom("show", "run", TASK)
    assert done.status == 0, done.err
    assert "exited" in done.out
    assert "submit" in done.out
    assert "\x1b" not in done.out
    lines = stillroom("show", "run", TASK, "--json").lines
    assert [line["type"] for line in lines] == ["action", "observation", "action"]
    assert lines == folder.read_events()


def test_a_replay_into_a_pipe_does_not_wait_and_is_harmless(
    stillroom: Stillroom, folder: RolloutFolder
):
    began = time.monotonic()
    done = stillroom("show", "run", TASK, "--replay", "--max-wait", "3600")
    assert time.monotonic() - began < 60
    assert done.status == 0, done.err
    assert done.out == (
        "\x1b[31mred\x1b[0m\nafter\n\x1b[?1049h\x1b[?25lfull screen the end\x1b[?1049l"
    )


class Watching:
    """The command on a terminal of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.began = time.monotonic()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execv(sys.executable, command(*arguments))
        self.seen = b""

    def until(self, text: bytes, seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < end and self._read():
            pass
        assert text in self.seen, self.seen

    def status(self) -> int:
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        if not select.select([self.master], [], [], 30)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)


def test_a_replay_on_a_terminal_takes_its_time(folder: RolloutFolder, tmp_path: Path):
    it = Watching(tmp_path, "show", "run", TASK, "--replay", "--max-wait", "0.3")
    try:
        it.until(b"full screen")
        at_first = time.monotonic()
        assert b"the end" not in it.seen
        it.until(b"the end")
        assert time.monotonic() - at_first > 0.2
        assert it.status() == 0
    finally:
        os.close(it.master)
    for part in (b"\x1b]", b"\x1b[6n", b"\x1b[c", b"\x1b[21t", b"\x1bP", b"secret", b"run 1"):
        assert part not in it.seen
    end = it.seen.rpartition(b"the end")[2]
    assert end.startswith(b"\x1b[?1049l")
    assert b"\x1b[0m" in end
    assert b"\x1b[?25h" in end


@pytest.mark.parametrize("how", ["a key", "SIGTERM"])
def test_a_replay_that_is_stopped_gives_the_terminal_back(
    folder: RolloutFolder, tmp_path: Path, how: str
):
    it = Watching(tmp_path, "show", "run", TASK, "--replay", "--max-wait", "3600")
    try:
        before = termios.tcgetattr(it.master)
        it.until(b"full screen")
        assert not termios.tcgetattr(it.master)[3] & termios.ECHO
        if how == "a key":
            os.write(it.master, b"x\x03")
        else:
            os.kill(it.pid, signal.SIGTERM)
        it.until(b"error[interrupted]")
        assert termios.tcgetattr(it.master) == before
        assert it.status() == 130
    finally:
        os.close(it.master)
    end = it.seen.rpartition(b"full screen")[2]
    assert end.startswith(b"\x1b[?1049l")
    assert b"\x1b[?25h" in end
    assert b"Traceback" not in it.seen


@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        (("nowhere", TASK, "--replay"), "nowhere is not the folder of a run", "run.json"),
        (("nowhere", TASK), "nowhere is not the folder of a run", "run.json"),
        (("run", "my-tesk", "--replay"), "no task `my-tesk`", "did you mean `my-task`?"),
        (("run", TASK, "--replay", "--attempt", "4"), "no attempt 4", "attempts there: 0"),
        (("run", "--replay"), "which rollout?", "show RUN TASK"),
        (("run", TASK, "--replay", "--json"), "--json", "leave one"),
        (("run", TASK, "--replay", "--speed", "nan"), "want numbers", ""),
        (("run", TASK, "--replay", "--speed", "0"), "--speed", "--help"),
        (("run", TASK, "--replay", "--max-wait", "-1"), "--max-wait", "--help"),
    ],
)
def test_what_cannot_be_shown_is_told(
    stillroom: Stillroom, folder: RolloutFolder, arguments: tuple[str, ...], said: str, hint: str
):
    done = stillroom("show", *arguments)
    assert done.status == 2
    assert said in done.err
    assert hint in done.err
    assert "Traceback" not in done.err


def test_a_rollout_without_a_terminal_has_nothing_to_play(
    stillroom: Stillroom, folder: RolloutFolder
):
    (folder.path / "terminal.cast").unlink()
    (folder.path / "events.jsonl").unlink()
    for arguments in (("--replay",), ()):
        done = stillroom("show", "run", TASK, *arguments)
        assert done.status == 2
        assert "graded has none" in done.err


def test_a_recording_that_is_damaged_is_told_with_its_place(
    stillroom: Stillroom, folder: RolloutFolder
):
    path = folder.path / "terminal.cast"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], "[1]", *lines[3:]]) + "\n")
    done = stillroom("show", "run", TASK, "--replay")
    assert done.status == 2
    assert "terminal.cast:3" in done.err


def test_what_somebody_else_said_in_results_is_not_obeyed(
    stillroom: Stillroom, folder: RolloutFolder, tmp_path: Path
):
    rollout = {
        "schema": 1, "task": TASK, "task_digest": "sha256:" + "0" * 64, "attempt": 0, "agent": "x",
        "runtime": "embedded", "started": "2026-01-01T00:00:00Z", "ending": None, "steps": 0,
        "patch_sha256": "", "patch_bytes": 0, "verdict": None, "seconds": {},
        "fault": {"code": "agent", "message": "ended: \x1b]52;c;x\x07", "hint": "", "retry": True},
    }  # fmt: skip
    (tmp_path / "run" / "results.jsonl").write_text(json.dumps(rollout) + "\n")
    done = stillroom("show", "run")
    assert done.status == 3, done.err
    assert "\\x1b]52" in done.out
    assert "\x1b" not in done.out
