"""Tasks of Harbor and Terminal-Bench, as far as they are understood before there is a box."""

import dataclasses
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import yaml

from sandbox.adapters.harbor import from_harbor, from_terminal_bench
from sandbox.adapters.harbor.bases import BASE
from sandbox.adapters.harbor.batch import import_all
from sandbox.adapters.harbor.bench import Place
from sandbox.adapters.harbor.foreign import Foreign
from sandbox.adapters.harbor.judging import gives_all_or_nothing, interpreter
from sandbox.adapters.harbor.packages import packages_of
from sandbox.adapters.harbor.report import Report, Row
from sandbox.errors import UserError
from sandbox.formats.harbor import HarborFile, load_harbor
from sandbox.formats.terminal_bench import TerminalBenchFile, load_terminal_bench
from sandbox.model.image import ImageLock
from sandbox.model.task import Digest
from sandbox.runtime.fake import FakeRuntime
from sandbox.runtime.store import Store
from tests.support.peertasks import BENCH, HARBOR, REFUSED, write

_QUIET = {"task", "metadata", "environment", "agent", "verifier", "solution", "steps"}
"""Tables, of whose keys each has a row."""


def harbor(folder: Path, name: str) -> tuple[list[Foreign], list[Row]]:
    report = Report()
    found = from_harbor.understood(load_harbor(write(HARBOR[name], folder / name)), report)
    return found, report.rows


def bench(folder: Path, name: str) -> tuple[list[Foreign], list[Row]]:
    report = Report()
    task = load_terminal_bench(write(BENCH[name], folder / name))
    return from_terminal_bench.understood(task, report), report.rows


def fates(rows: list[Row]) -> dict[str, str]:
    return {row.field: row.fate for row in rows}


def keys(data: dict[str, Any], above: str = "") -> Iterator[str]:
    for key, value in data.items():
        name = f"{above}{key}"
        if isinstance(value, dict) and name in _QUIET:
            yield from keys(value, f"{name}.")
        else:
            yield name


def test_there_are_twenty_of_them_that_import():
    assert len(HARBOR) + len(BENCH) >= 20


def shape_keys(shape: Any, at: str = "") -> Iterator[str]:
    """Of a dataclass, and of those that it holds."""
    hints = get_type_hints(shape)
    for field in dataclasses.fields(shape):
        name = f"{at}{field.name}"
        yield name
        for inner in _shapes(hints[field.name]):
            yield from shape_keys(inner, f"{name}.")


def _shapes(hint: Any) -> Iterator[type]:
    if dataclasses.is_dataclass(hint):
        yield hint  # type: ignore[misc]
    for part in get_args(hint):
        yield from _shapes(part)


def said_keys(data: Any, at: str = "") -> Iterator[str]:
    for key, value in data.items() if isinstance(data, dict) else ():
        yield f"{at}{key}"
        for inner in value if isinstance(value, list) else [value]:
            yield from said_keys(inner, f"{at}{key}.")


def test_every_key_of_harbor_is_said_by_one_of_them():
    files = [*HARBOR.values(), *(f for kind, f, _ in REFUSED.values() if kind == "harbor")]
    said = {key for f in files for key in said_keys(tomllib.loads(f["task.toml"]))}
    # A verifier's environment and a step's tables have the keys of the others.
    other = ("verifier.environment.", "steps.agent.", "steps.verifier.", "steps.artifacts.")
    alike = (*other, "steps.healthcheck.")
    assert [k for k in shape_keys(HarborFile) if k not in said and not k.startswith(alike)] == []


def test_every_key_of_terminal_bench_is_said_by_one_of_them():
    said = {key for f in BENCH.values() for key in yaml.safe_load(f["task.yaml"])}
    assert [k for k in shape_keys(TerminalBenchFile) if k not in said] == []


@pytest.mark.parametrize("name", HARBOR)
def test_every_key_of_a_task_toml_is_accounted_for(tmp_path, name):
    _, rows = harbor(tmp_path, name)
    said = keys(tomllib.loads(HARBOR[name]["task.toml"]))
    told = {row.field for row in rows}
    assert [k for k in said if not any(t == k or t.startswith(f"{k}.") for t in told)] == []
    assert "refused" not in fates(rows).values()


@pytest.mark.parametrize("name", BENCH)
def test_every_key_of_a_task_yaml_is_accounted_for(tmp_path, name):
    tasks, rows = bench(tmp_path, name)
    given = load_terminal_bench(tmp_path / name).given.data
    assert given.keys() <= fates(rows).keys()
    assert "refused" not in fates(rows).values()
    assert [task.protocol for task in tasks] == ["terminal-bench"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_had_is_refused_by_name(tmp_path, name):
    kind, files, said = REFUSED[name]
    place = Place(
        home=tmp_path, store=Store(tmp_path), runtime=FakeRuntime(), progress=lambda *_: None
    )
    (outcome,) = import_all(place, write(files, tmp_path / "theirs" / name), kind).outcomes
    assert said in outcome.refused
    assert not outcome.tasks
    assert not (tmp_path / "task_specs").exists()


def test_limits_environment_and_texts_are_taken_over(tmp_path):
    (task,), _ = harbor(tmp_path, "usual")
    assert (task.id, task.workdir, task.image) == ("usual", "/app", "ubuntu:24.04")
    assert (task.limits.cpus, task.limits.memory_mib, task.limits.disk_mib) == (1.0, 1024, 2048)
    assert (task.limits.wall_seconds, task.verifier_seconds) == (120.0, 90.0)
    assert (task.told.difficulty, task.told.tags) == ("hard", ("one", "files"))
    assert task.told.expert_minutes == 7
    assert task.env == {"DEBIAN_FRONTEND": "noninteractive"}


def test_a_canary_is_no_part_of_what_an_agent_is_told(tmp_path):
    (task,), rows = harbor(tmp_path, "old")
    assert task.instruction == "Write done.txt.\n"
    assert fates(rows)["canary"] == "dropped"


def test_older_names_of_keys_mean_what_they_meant(tmp_path):
    (task,), _ = harbor(tmp_path, "old")
    assert (task.limits.memory_mib, task.limits.disk_mib) == (1024, 2048)
    assert task.solution
    assert task.solution.env == {"WORD": "yes"}


def test_what_means_something_else_here_says_so(tmp_path):
    _, rows = harbor(tmp_path, "old")
    changed = {row.field for row in rows if row.fate == "changed"}
    assert {"agent.user", "agent.network_mode", "environment.allow_internet", "USER"} <= changed
    assert {"solution.env.WORD", "agent.timeout_sec"} <= changed


def test_of_a_verifier_of_its_own_what_is_declared_is_the_submission(tmp_path):
    (task,), rows = harbor(tmp_path, "separate")
    assert (task.submission, task.exclude) == (("out", "/srv/result"), ("*.log",))
    assert task.verifier_env == {"LEVEL": "3"}
    assert fates(rows)["artifacts.destination"] == "dropped"


def test_a_compose_file_of_one_container_says_how_it_is_set_up(tmp_path):
    (task,), rows = harbor(tmp_path, "compose")
    assert (task.workdir, task.env) == ("/work", {"WORD": "yes-no"})
    assert fates(rows)["version"] == "changed"


def test_steps_are_tasks_each_of_which_begins_where_the_one_before_ends(tmp_path):
    (one, two), rows = harbor(tmp_path, "steps")
    assert (one.id, two.id) == ("steps.1-one", "steps.2-two")
    assert one.prelude == ()
    assert [chore.name for chore in two.prelude] == ["solution/solve.sh", "steps/two/workdir"]
    assert fates(rows)["steps.one.min_reward"] == "dropped"


def test_every_row_says_where_it_comes_from(tmp_path):
    _, rows = harbor(tmp_path, "usual")
    assert {row.field: row.where.rpartition(":")[2] for row in rows if "task.toml" in row.where}[
        "environment.memory_mb"
    ] == str(HARBOR["usual"]["task.toml"].splitlines().index("memory_mb = 1024") + 1)


def test_what_debian_only_recommends_comes_along_whoever_asks_first(tmp_path):
    asks = "FROM debian\nRUN apt-get install -y golang-go gcc\n"
    files = {**HARBOR["image-only"], "environment/Dockerfile": asks}
    (task,) = from_harbor.understood(load_harbor(write(files, tmp_path / "x")), Report())
    base = ImageLock(
        schema=1, name=BASE, epoch=0, arch="amd64", recipe_sha256="", env={}, layers=(),
        config_digest=Digest(""),
    )  # fmt: skip
    assert packages_of(task, {}, base, Report()).debs[:3] == ("golang-go", "gcc", "libc6-dev")


def test_a_folder_without_tasks_is_said_to_be_one(tmp_path):
    place = Place(
        home=tmp_path, store=Store(tmp_path), runtime=FakeRuntime(), progress=lambda *_: None
    )
    with pytest.raises(UserError, match=r"no task\.toml in"):
        import_all(place, tmp_path, "harbor")


@pytest.mark.parametrize(
    ("first", "shell"),
    [
        ("#!/bin/bash", ("/bin/bash",)),
        ("#!/usr/bin/env python3", ("/usr/bin/env", "python3")),
        ("set -e", ("bash",)),
        ("#!", ("bash",)),
    ],
)
def test_a_test_script_is_run_by_what_it_names(tmp_path, first, shell):
    path = tmp_path / "test.sh"
    path.write_text(f"{first}\ntrue\n")
    assert interpreter((path,), "/tests/test.sh") == shell


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt", True),
        ("echo '{\"reward\": 1}' > /logs/verifier/reward.json", True),
        ('rm -f reward.txt\n# reward.txt is\necho "0.0" > reward.txt', True),
        ("echo $SCORE > reward.txt", False),
        ("python3 /tests/grade.py", False),
    ],
)
def test_credit_for_a_part_is_seen_where_a_script_does_not_rule_it_out(text, whole):
    assert gives_all_or_nothing([text]) == whole
