"""events.jsonl: every action before it is carried out, every observation, all of it JSON."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import SpecError
from sandbox.model.step import (
    Action,
    Keys,
    ModelCall,
    Observation,
    Run,
    Screen,
    Signal,
    Status,
    Submit,
    Wait,
)
from sandbox.rollout.folder import RolloutFolder


@pytest.fixture
def folder(tmp_path: Path) -> RolloutFolder:
    made = RolloutFolder(tmp_path / "out")
    made.fresh()
    return made


def lines(folder: RolloutFolder) -> list[dict[str, Any]]:
    def no_constant(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    text = (folder.path / "events.jsonl").read_text("ascii")
    return [json.loads(line, parse_constant=no_constant) for line in text.splitlines()]


def test_an_action_is_on_disk_before_it_is_carried_out(folder: RolloutFolder):
    with folder.events(lambda: 1.25) as events:
        events.action(1, Run("ls", 5))
        (action,) = lines(folder)
        events.observation(1, Observation(output="a\n", exit_code=0, sha256="f", total_bytes=2))
        action, seen = lines(folder)
    assert action == {
        "seq": 1,
        "time": 1.25,
        "type": "action",
        "step": 1,
        "action": "run",
        "command": "ls",
        "seconds": 5,
        "tty": True,
        "stdin": None,
        "on_timeout": "interrupt",
        "fold": False,
        "screen": False,
        "bytes": 2,
        "sha256": hashlib.sha256(b"ls").hexdigest(),
    }
    assert {"seq": 2, "type": "observation", "step": 1, "status": "exited"}.items() <= seen.items()
    assert {
        "output": "a\n",
        "exit_code": 0,
        "total_bytes": 2,
        "sha256": "f",
    }.items() <= seen.items()
    assert seen["screen"] is None


def test_the_first_event_says_when_the_try_began(folder: RolloutFolder):
    with folder.events(lambda: 0.0, "2024-05-15T12:00:00Z") as events:
        events.person("begin", rows=1, cols=1)
        events.person("end", exit_code=0, bytes=0, sha256="")
    assert [line.get("started") for line in lines(folder)] == ["2024-05-15T12:00:00Z", None]


@pytest.mark.parametrize(
    ("action", "name", "said"),
    [
        (Run("\u00fc\udcff"), "run", b"\xc3\xbc\xff"),
        (Run("\ud800"), "run", b"\xed\xa0\x80"),
        (Run("x", float("inf")), "run", b"x"),
        (Keys("q\n", named=("C-c", "Up")), "keys", b"q\n"),
        (Keys(b"\xff\x00\x1b", float("nan")), "keys", b"\xff\x00\x1b"),
        (Wait(float("inf"), until="input", text="x"), "wait", b""),
        (Signal("INT"), "signal", b""),
        (Submit(), "submit", b""),
    ],
)
def test_every_action_can_be_told(folder: RolloutFolder, action: Action, name: str, said: bytes):
    with folder.events(lambda: 0.0) as events:
        events.action(7, action)
    (line,) = lines(folder)
    assert (line["type"], line["step"], line["action"]) == ("action", 7, name)
    assert line["bytes"] == len(said)
    assert line["sha256"] == (hashlib.sha256(said).hexdigest() if said else "")


def test_bytes_that_were_typed_can_be_had_back(folder: RolloutFolder):
    with folder.events(lambda: 0.0) as events:
        events.action(1, Keys(bytes(range(256))))
    typed = folder.read_events()[0]["keys"]
    assert typed.encode("utf-8", "surrogateescape") == bytes(range(256))


def test_what_has_no_number_is_null(folder: RolloutFolder):
    with folder.events(lambda: 0.0) as events:
        events.action(1, Run("x", float("inf")))
        events.observation(1, Observation(seconds=float("nan")))
    assert [line["seconds"] for line in lines(folder)] == [None, None]


def test_what_an_agent_tells_of_its_model_is_carried_and_nothing_is_made_up(folder: RolloutFolder):
    call = ModelCall(name="m", completion_token_ids=(7, 8), logprobs=(-0.25, float("-inf")))
    with folder.events(lambda: 0.0) as events:
        events.action(1, Run("ls", model=call))
        events.action(2, Submit())
    told, silent = lines(folder)
    assert told["model"]["completion_token_ids"] == [7, 8]
    assert told["model"]["logprobs"] == [-0.25, None]
    assert (told["model"]["calls"], told["model"]["prompt_token_ids"]) == (None, None)
    assert "model" not in silent


def test_the_screen_is_told_too(folder: RolloutFolder):
    screen = Screen(lines=("a", ""), row=1, col=0, cols=80)
    with folder.events(lambda: 0.0) as events:
        events.observation(1, Observation(screen=screen, signals=("INT",), status=Status.TIMED_OUT))
    (line,) = lines(folder)
    assert line["screen"] == {"lines": ["a", ""], "row": 1, "col": 0, "cols": 80}
    assert (line["signals"], line["status"]) == (["INT"], "timed_out")


def test_a_person_s_part_has_a_beginning_and_an_end(folder: RolloutFolder):
    with folder.events(lambda: 3.0) as events:
        events.person("begin", rows=24, cols=80)
        events.person("end", bytes=0, sha256="")
    begin, end = folder.read_events()
    assert begin == {
        "seq": 1, "time": 3.0, "type": "person", "what": "begin", "rows": 24, "cols": 80
    }  # fmt: skip
    assert (end["seq"], end["what"], end["bytes"]) == (2, "end", 0)


def test_events_of_a_run_that_died_are_read_but_for_a_torn_line(folder: RolloutFolder):
    path = folder.path / "events.jsonl"
    path.write_bytes(b'{"seq": 1}\n{"seq": 2, "outp')
    assert folder.read_events() == [{"seq": 1}]
    path.write_bytes(b'{"seq": 1}\n[]\n')
    with pytest.raises(SpecError, match=r"events.jsonl:2: a line should be a JSON object"):
        folder.read_events()


def test_the_recording_and_long_output_lie_beside_the_events(folder: RolloutFolder):
    with folder.cast(40, 160, title="t") as cast:
        cast.output(b"x")
    assert (folder.spool / "terminal.cast").exists()
