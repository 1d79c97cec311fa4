"""Recorded once, a task's network is the same for every agent that comes after."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Stillroom
from tests.support.webs import serving

pytestmark = [pytest.mark.box, pytest.mark.network]
FETCH = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"


@pytest.fixture
def task(stillroom: Stillroom) -> str:
    assert stillroom("new", "my-task").status == 0
    return "my-task"


def command(url: str) -> str:
    return f"python3 -c '{FETCH}' {url} > /tmp/heard 2>&1; grep -q {{}} /tmp/heard"


def test_what_was_recorded_is_there_for_an_agent_and_nothing_else(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    with serving(lambda _: (200, {}, b"from the server"), tmp_path, "web.test") as web:
        done = stillroom(
            *("record", task, "--instead", f"web.test:443={web.place}", "--ca-file", web.ca_file),
            *("--", "python3", "-c", FETCH, "https://web.test/page"),
        )
    assert done.status == 0, done.err
    assert done.out.startswith("from the server\n")
    assert "1 answers, 1 of them new" in done.out
    text = (tmp_path / "task_specs" / task / "task.yaml").read_text()
    assert "mode: replay" in text
    assert done.out.rpartition("digest ")[2].strip() in text

    script = tmp_path / "agent.txt"
    known, unknown = command("https://web.test/page"), command("https://web.test/other")
    script.write_text(
        f"{known.format('server')} && sed -i 's/split(\" \")/split()/' words.py\n"
        f"{unknown.format('403')} || rm words.py\n"
    )
    run = stillroom("run", task, "--agent", f"script:{script}", "--out", "out", "--json")
    assert run.status == 0, run.err
    assert (run.lines[0]["verdict"]["reward"], run.lines[0]["network"]) == (1.0, "replay")
    log = tmp_path / "out" / "rollouts" / task / "0" / "network.jsonl"
    events = [json.loads(line) for line in log.read_text().splitlines()]
    asked = [(e["event"], e["url"]) for e in events if e["event"] != "name"]
    assert asked == [("served", "https://web.test/page"), ("refused", "https://web.test/other")]


def test_a_cassette_that_was_changed_is_void_and_says_so(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    with serving(lambda _: (200, {}, b"x"), tmp_path) as web:
        done = stillroom(
            *("record", task, "--instead", f"web.test:80={web.place}"),
            *("--", "python3", "-c", FETCH, "http://web.test/"),
        )
    assert done.status == 0, done.err
    index = tmp_path / "task_specs" / task / "cassette" / "index.jsonl"
    index.write_text(index.read_text().replace('"status":200', '"status":201'))
    run = stillroom("run", task, "--agent", "nop", "--out", "out", "--retries", "0")
    assert run.status == 3
    assert "as pinned" in run.err + run.out


def test_a_command_that_fails_records_nothing(stillroom: Stillroom, task: str, tmp_path: Path):
    done = stillroom("record", task, "--", "false")
    assert done.status == 2
    assert "nothing was recorded" in done.err
    assert not (tmp_path / "task_specs" / task / "cassette").exists()
