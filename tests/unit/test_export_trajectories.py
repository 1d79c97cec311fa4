"""A run's folder becomes files of other tools, and whatever is odd about it is told."""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from sandbox.adapters.trajectories import FILES, LINES, Wanted, Written, write
from sandbox.errors import SpecError, UserError
from sandbox.formats.asciicast import read_cast
from sandbox.formats.asciicast3 import read3
from sandbox.formats.atif import load
from sandbox.formats.records import Appender
from sandbox.model.record import Ending
from sandbox.rollout.folder import RolloutFolder
from sandbox.rollout.outdir import rollout_folder
from tests.support.toldrun import LOOKED, a_rollout, write_events, write_run

KINDS = ("asciicast", "inspect", *FILES, *LINES)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", tmp_path / "home")


def written(run: Path, kind: str, version: int = 2, **which: object) -> list[Written]:
    wanted = Wanted(run=run, out=run.parent / "out", **which)  # type: ignore[arg-type]
    return list(write(wanted, kind, version))


def files(run: Path) -> list[str]:
    out = run.parent / "out"
    return sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("kind", "name"),
    [("atif", "trajectory.json"), ("traj", "a-1.traj"), ("mini", "a-1.traj.json")],
)
def test_each_rollout_has_a_file(run: Path, kind: str, name: str):
    told = written(run, kind)
    assert files(run) == [f"a-1/0/{name}", f"a-1/1/{name}"]
    assert [t.path for t in told][:2] == [str(run.parent / "out" / f) for f in files(run)]
    for path in (run.parent / "out").rglob(name):
        assert isinstance(json.loads(path.read_text(encoding="utf-8")), dict)


@pytest.mark.parametrize(("kind", "name"), [("chat", "chat.jsonl"), ("verifiers", "traces.jsonl")])
def test_each_rollout_has_a_line(run: Path, kind: str, name: str):
    written(run, kind)
    assert files(run) == [name]
    raw = (run.parent / "out" / name).read_bytes()
    assert raw.isascii()
    assert len([json.loads(line) for line in raw.splitlines()]) == 2


def test_what_has_nothing_to_tell_is_left_out_with_the_reason(run: Path):
    assert [(t.task, t.why) for t in written(run, "chat") if not t.path] == [
        ("b-1", "it was graded: there was no agent here"),
        ("c-1", "it was over before there was a terminal"),
    ]


def test_written_atif_is_read_by_its_rules(run: Path):
    written(run, "atif", task="a-1", attempt=1)
    assert files(run) == ["a-1/1/trajectory.json"]
    assert load(run.parent / "out" / files(run)[0]).agent.name == "shell:./agent"


def test_recordings_are_written_in_both_versions(run: Path):
    written(run, "asciicast")
    out = run.parent / "out" / "a-1" / "0" / "terminal.cast"
    assert read_cast(out) == read_cast(run / "rollouts" / "a-1" / "0" / "terminal.cast")
    two = read_cast(out)
    written(run, "asciicast", 3)
    assert read3(out) == two


def test_a_person_s_shell_has_an_exit_code(run: Path):
    folder = RolloutFolder(run / "rollouts" / "a-1" / "0")
    with folder.events(lambda: 9.0) as events:
        events.person("end", exit_code=3, bytes=0, sha256="")
    written(run, "asciicast", 3, task="a-1", attempt=0)
    assert (run.parent / "out" / "a-1" / "0" / "terminal.cast").read_text().endswith('"x", "3"]\n')


@pytest.mark.parametrize("kind", [*FILES, *LINES])
def test_the_same_run_is_the_same_bytes(run: Path, kind: str):
    written(run, kind)
    out = run.parent / "out"
    first = [(out / name).read_bytes() for name in files(run)]
    written(run, kind)
    assert [(out / name).read_bytes() for name in files(run)] == first


def test_the_last_word_about_a_rollout_counts(run: Path):
    with Appender(run / "results.jsonl") as out:
        out.append(a_rollout(attempt=1))
    written(run, "atif")
    extra = load(run.parent / "out" / "a-1" / "1" / "trajectory.json").extra or {}
    assert (extra["reward"], extra["fault"]) == (0.5, None)


@pytest.mark.parametrize(
    ("which", "says"),
    [
        ({"task": "a-2"}, "there is no task `a-2`"),
        ({"task": "a-1", "attempt": 7}, "there is no attempt 7 at `a-1`"),
        ({"attempt": 7}, "there is no attempt 7 in"),
        ({"run": Path("nowhere")}, "is not the folder of a run"),
    ],
)
def test_what_is_not_there_is_told(run: Path, which: dict[str, object], says: str):
    with pytest.raises(UserError) as caught:
        written(**{"run": run, "kind": "chat"} | which)  # type: ignore[arg-type]
    assert says in str(caught.value)


@pytest.mark.parametrize("name", ["../../evil", "..", "a/b", ""])
def test_names_of_another_s_run_lead_nowhere(tmp_path: Path, name: str):
    run = tmp_path / "run"
    with Appender(run / "results.jsonl") as out:
        out.append(a_rollout(name))
    with pytest.raises(SpecError, match="is no name of a task"):
        written(run, "atif")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["events.jsonl", "terminal.cast", "submission.patch"])
def test_links_of_another_s_run_are_not_followed(run: Path, name: str):
    secret = run.parent / "secret"
    folder = run / "rollouts" / "a-1" / "0"
    secret.write_bytes((folder / name).read_bytes() + b"secret")
    (folder / name).unlink()
    (folder / name).symlink_to(secret)
    try:
        written(run, "asciicast" if name == "terminal.cast" else "atif")
    except UserError as e:
        assert "is a link" in str(e)  # noqa: PT017 - or what it leads to is passed over
    told = [(run.parent / "out" / found).read_text() for found in files(run)]
    assert not any("secret" in text for text in told)


def test_damage_is_told_with_its_line(run: Path):
    path = run / "rollouts" / "a-1" / "0" / "events.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"setup.py', b'7, "x": "'))
    with pytest.raises(SpecError, match=r"0/events\.jsonl:3: `output` should be a string"):
        written(run, "mini")


def test_a_run_that_died_leaves_what_it_had(run: Path, tmp_path: Path):
    folder = RolloutFolder(run / "rollouts" / "a-1" / "0")
    path = folder.path / "events.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    written(run, "atif", task="a-1", attempt=0)
    assert len(load(run.parent / "out" / "a-1" / "0" / "trajectory.json").steps) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_place_that_is_a_file_is_told(run: Path, kind: str):
    (run.parent / "out").write_text("")
    with pytest.raises(UserError, match="is a file"):
        written(run, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_tell_is_no_file(tmp_path: Path, kind: str):
    run = tmp_path / "run"
    with Appender(run / "results.jsonl") as out:
        out.append(replace(a_rollout(), ending=Ending.GRADED))
    assert [t.why for t in written(run, kind)] == ["it was graded: there was no agent here"]
    assert files(run) == []


@pytest.mark.parametrize("kind", [*FILES, *LINES])
def test_damage_leaves_no_half_of_a_file(run: Path, kind: str):
    path = run / "rollouts" / "a-1" / "1" / "events.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"action": "run"', b'"action": "fly"'))
    with pytest.raises(SpecError, match="`action` should be one of"):
        written(run, kind)
    assert not [
        name
        for name in files(run)
        if name.endswith(".new") or name in ("chat.jsonl", "traces.jsonl")
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_over_is_left_out_with_the_reason(tmp_path: Path, kind: str):
    """As a run leaves it that was stopped, and as it is while it goes on."""
    run = tmp_path / "run"
    write_events(rollout_folder(run, "a-1", 0), tmp_path / "home", LOOKED)
    (run / "run.json").write_text("{}")
    assert [(t.task, t.path, t.why) for t in written(run, kind, task="a-1")] == [
        ("a-1", "", "it is not over: the same command again goes on with the run")
    ]
    assert files(run) == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "inspect"])
def test_a_result_says_nothing_of_a_later_try(run: Path, kind: str):
    """It was void, was begun again, and that was stopped: its files are not what was judged."""
    folder = rollout_folder(run, "a-1", 1)
    write_events(folder, run.parent / "home", LOOKED, "2024-05-15T13:00:00Z")
    with folder.cast(24, 80) as cast:
        cast.output(b"later")
    assert [(t.attempt, t.path) for t in written(run, kind, attempt=1)] == [(1, "")]
    assert [t.why for t in written(run, kind, task="a-1") if not t.path] == [
        "it was begun again, and that try is not over"
    ]


def test_events_of_older_versions_do_not_say_when_they_began(run: Path):
    write_events(rollout_folder(run, "a-1", 1), run.parent / "home", LOOKED, "")
    assert all(t.path for t in written(run, "atif", task="a-1"))


@pytest.mark.parametrize("kind", [*FILES, *LINES])
def test_a_rollout_that_says_nothing_is_left_out(run: Path, kind: str):
    (run / "rollouts" / "a-1" / "0" / "events.jsonl").write_bytes(b"")
    told = written(run, kind, task="a-1", attempt=0)
    assert [(t.path, t.why) for t in told] == [("", "nothing was asked and nothing was done")]
    assert files(run) == []


@pytest.mark.parametrize("kind", [*FILES, *LINES])
def test_a_person_s_part_is_a_recording_and_no_steps(run: Path, kind: str):
    folder = rollout_folder(run, "a-1", 0)
    (folder.path / "events.jsonl").unlink()
    with folder.events(lambda: 0.0, a_rollout().started) as events:
        events.person("begin", rows=24, cols=80)
    (told,) = written(run, kind, task="a-1", attempt=0)
    assert (told.path, told.why) == (
        "",
        "a person was the agent: there is a recording, and no steps",
    )
    (cast,) = written(run, "asciicast", task="a-1", attempt=0)
    assert cast.path.endswith("terminal.cast")


@pytest.mark.skipif(find_spec("inspect_ai") is not None, reason="inspect_ai is installed")
def test_without_inspect_ai_it_is_said_what_to_install(run: Path):
    with pytest.raises(UserError, match="inspect_ai is not installed") as caught:
        written(run, "inspect")
    assert "stillroom[inspect]" in caught.value.hint
    assert not (run.parent / "out").exists()


@pytest.mark.skipif(find_spec("inspect_ai") is None, reason="inspect_ai is not installed")
def test_inspect_ai_reads_what_it_wrote(run: Path):
    from inspect_ai.log import read_eval_log  # noqa: PLC0415 - an extra

    written(run, "inspect")
    assert files(run) == ["run.eval"]
    log = read_eval_log(str(run.parent / "out" / "run.eval"))
    assert log.samples is not None
    first, void = log.samples
    assert [(s.id, s.epoch) for s in (first, void)] == [("a-1", 1), ("a-1", 2)]
    assert first.scores is not None
    assert {name: score.value for name, score in first.scores.items()} == {
        "reward": 0.5,
        "resolved": "I",
    }
    assert (void.scores, void.error and void.error.message) == (None, "the box was lost \u2028")
    assert [m.role for m in first.messages] == ["user", "assistant", "tool", "assistant"]
    assert first.messages[1].metadata == {
        "prompt_token_ids": [1, 2, 3],
        "completion_token_ids": [4, 5],
        "logprobs": [-0.5, -0.25],
    }
