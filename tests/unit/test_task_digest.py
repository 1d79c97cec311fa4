"""What a task's digest covers, and what its schema says."""

import re
from pathlib import Path

from sandbox.formats.checksfile import checks_schema
from sandbox.formats.taskfile import load_task, task_schema
from sandbox.model.task import NetworkSpec
from tests.support.homes import CHECKS, TASK, write_home


def test_the_digest_is_of_what_decides_and_of_nothing_else(tmp_path: Path):
    def digest(name: str, task: str = TASK, checks: str = CHECKS) -> str:
        return load_task(write_home(tmp_path / name, task, checks), "toy-1").digest

    first = digest("a")
    assert digest("b") == first
    assert digest("c", TASK.replace("easy", "hard")) == first
    assert digest("d", TASK + "# a comment\n") == first
    assert digest("e", TASK.replace("turns: 5", "turns: 6")) != first
    assert digest("f", TASK.replace("12:00:00Z", "12:00:01Z")) != first
    assert digest("g", checks=CHECKS.replace("weight: 3", "weight: 4")) != first
    assert digest("h", TASK.replace('LEVEL: "3"', 'LEVEL: "4"')) != first


def test_the_schemas_name_every_key_and_describe_it_in_the_model_s_words():
    schema = task_schema()
    keys = set(re.findall(r"^ *(?:- )?([a-z_]+):", TASK + CHECKS, re.MULTILINE))
    text = str(schema) + str(checks_schema())
    assert {k for k in keys if f"'{k}'" not in text} <= {"markers"}
    assert schema["title"] == "Stillroom task"
    assert schema["additionalProperties"] is False
    assert schema["properties"]["workdir"]["description"] == "Absolute path in the box."
    assert schema["$defs"]["RepoPin"]["properties"]["commit"]["description"] == "40 hex digits."
    assert schema["$defs"]["Limits"]["additionalProperties"] is False
    assert set(schema["required"]) >= {"schema", "id", "repo", "image", "clock", "metadata"}
    assert set(re.findall(r"#/\$defs/(\w+)", text)) <= {
        *schema["$defs"],
        *checks_schema()["$defs"],
    }


def test_a_network_and_its_cassette_are_part_of_what_a_task_is(tmp_path: Path):
    def digest(network: str) -> str:
        return load_task(write_home(tmp_path, TASK + network), "toy-1").digest

    tape = "network: {{mode: replay, cassette: tape, digest: 'sha256:{}'}}\n"
    found = [digest(n) for n in ("", "network: {mode: none}\n", tape.format("1" * 64))]
    found += [digest(n) for n in (tape.format("2" * 64), "network: {mode: open}\n")]
    assert found[0] == found[1]
    assert len(set(found)) == 4


def test_only_what_is_the_same_next_year_can_be_certified():
    modes = {mode: NetworkSpec(mode=mode).certifiable for mode in ("none", "replay", "open")}
    assert modes == {"none": True, "replay": True, "open": False}


def test_what_a_task_could_not_say_before_leaves_its_digest_as_it_was(tmp_path: Path):
    """Certificates name it: a key that a task does not use must be no part of it."""
    digest = load_task(write_home(tmp_path), "toy-1").digest
    assert digest == "sha256:3c0548514a97460ad5d792377180eb939523c1d5ad197a71e7d917ec14c2ec9f"
