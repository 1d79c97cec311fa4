"""A task whose tests hang on everything: each way in which a verdict can rot is caught and named."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Stillroom

pytestmark = [pytest.mark.box, pytest.mark.network, pytest.mark.timeout(600)]
HEAD = """
import datetime, os, socket, stat, subprocess, sys, tempfile, time, uuid
import pytest
from words import count_words

came = []


@pytest.fixture(autouse=True)
def coming():
    yield
    came.append(True)


def test_who_came_before():
    assert not came


def test_hashes():
    asked = [sys.executable, "-c", "print(hash('a'))"]
    usual = subprocess.run(asked, env={"PYTHONHASHSEED": "0"}, capture_output=True, check=True)
    assert hash("a") == int(usual.stdout)


def test_the_mask(tmp_path):
    (tmp_path / "file").touch()
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644


def test_time_that_passes():
    began = time.time()
    time.sleep(0.01)
    assert time.time() > began


@pytest.mark.parametrize("day", [time.strftime("%Y-%m-%d", time.gmtime())])
def test_a_dated_name(day):
    assert count_words("") == 0


@pytest.mark.parametrize("name", [str(uuid.uuid4())])
def test_a_random_name(name):
    assert count_words("") == 0


def test_nothing():
    assert count_words("") == 0
"""
PLAIN = {
    "the_year": "time.gmtime().tm_year == 2024",
    "a_day_that_every_year_has": "datetime.date.today().replace(year=2023)",
    "the_zone": "time.localtime().tm_hour == time.gmtime().tm_hour",
    "processors": "os.cpu_count() == 2",
    "the_user": "os.getuid() == 65534",
    "the_host": "socket.gethostname() == 'box'",
    "the_locale": "'LC_ALL' not in os.environ",
}
DATED = "a_dated_name[2024-05-15]"
CHECKED = ("who_came_before", "hashes", "the_mask", "time_that_passes", DATED, *PLAIN, "nothing")
MOVED = "repeat-2,year-*,leap-day,zone-kolkata,hash-seed-*,order-*,one-cpu,user,umask,hostname,locale-c,clock-fixed"
CAUGHT = {
    "who_came_before": {"order-1", "order-2", "order-3"},
    "hashes": {"hash-seed-1", "hash-seed-4242", "hash-seed-random"},
    "the_mask": {"umask"},
    "time_that_passes": {"clock-fixed"},
    DATED: {"year-later", "year-earlier", "leap-day"},
    "the_year": {"year-later", "year-earlier"},
    "a_day_that_every_year_has": {"leap-day"},
    "the_zone": {"zone-kolkata"},
    "processors": {"one-cpu"},
    "the_user": {"user"},
    "the_host": {"hostname"},
    "the_locale": {"locale-c"},
}
FILE = "tests/test_words.py::test_"


@pytest.fixture
def task(stillroom: Stillroom, tmp_path: Path) -> str:
    """With one test that hangs on nothing, and one for each thing to hang on."""
    assert stillroom("new", "rotten").status == 0
    plain = "".join(f"\n\ndef test_{n}():\n    assert {said}\n" for n, said in PLAIN.items())
    folder = tmp_path / "verifiers" / "rotten"
    (folder / "bundle" / "tests" / "test_words.py").write_text(HEAD + plain)
    ids = "".join(f"  - {json.dumps(FILE + name)}\n" for name in CHECKED)
    (folder / "checks.yaml").write_text(f"schema: 1\nscored:\n{ids}")
    assert stillroom("lock", "task", "rotten").status == 0
    return "rotten"


def shifts_of(varied: dict[str, Any]) -> set[str]:
    return {s["shift"] for s in varied["sightings"]}


def test_everything_that_a_test_hangs_on_is_caught_and_named(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    run = ("certify", task, "--shifts", MOVED, "-j", "2", "--out", "out", "--json")
    done = stillroom(*run, seconds=550)
    assert done.status == 1, done.out + done.err
    (told,) = done.lines
    found = told["finding"]
    assert found["problems"] == []
    assert found["void"] == []
    caught = {v["check"].removeprefix(FILE): shifts_of(v) for v in found["varied"]}
    # An order drawn with a seed may have it first after all.
    assert caught["who_came_before"] & CAUGHT["who_came_before"]
    caught["who_came_before"] |= CAUGHT["who_came_before"]
    assert caught == CAUGHT
    why = {v["check"].removeprefix(FILE): v["suspicion"] for v in found["varied"]}
    assert why.pop(DATED).startswith("its name holds the date 2024-05-15")
    assert not any(why.values())
    names = {v["check"].removeprefix(FILE): v["suspicion"] for v in found["beside"]}
    assert names["a_random_name[*]"] == "its name holds a UUID"
    assert "a_dated_name[*]" in names
    assert told["certificate"] == "", "a part of the shifts certifies nothing"
    # The folder has it all: nothing is run again, and what was found can be put to use.
    again = stillroom(*run, "--quarantine")
    assert again.status == 1
    assert "nothing is left to do" in again.err
    checks = tmp_path / "verifiers" / task / "checks.yaml"
    assert checks.read_text().startswith(f'schema: 1\nscored:\n  - "{FILE}nothing"\nexcluded:\n')
    after = stillroom("certify", task, "--quick", "-j", "2", seconds=280)
    assert after.status == 0, after.out + after.err
    assert f"{task}: steady in 7 runs of oracle and nop" in after.out


def test_a_task_of_the_open_network_is_no_task_to_certify(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    spec = tmp_path / "task_specs" / task / "task.yaml"
    spec.write_text(spec.read_text() + "network:\n  mode: open\n")
    done = stillroom("certify", task)
    assert done.status == 2
    assert "reaches the open network" in done.err


def test_what_has_no_certificate_is_told_without_running_anything(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    done = stillroom("certify", task, "--check", "--json")
    assert done.status == 1
    (told,) = done.lines
    assert told["objections"] == ["there is none"]
    assert not (tmp_path / "runs").exists()


@pytest.fixture(scope="module")
def by_runtime() -> dict[str, bytes]:
    return {}


@pytest.mark.parametrize("runtime", ["embedded", pytest.param("docker", marks=pytest.mark.docker)])
def test_a_new_task_is_certified_in_the_same_bytes_wherever_it_runs(
    runtime: str, stillroom: Stillroom, tmp_path: Path, by_runtime: dict[str, bytes]
):
    """Both runtimes in one test file: whichever comes second is held against the first."""
    assert stillroom("new", "my-task").status == 0
    done = stillroom("certify", "my-task", "-r", runtime, "-j", "2", seconds=550)
    assert done.status == 0, done.out + done.err
    path = tmp_path / "certificates" / "my-task.json"
    assert json.loads(path.read_text())["certified"] is True
    assert stillroom("certify", "my-task", "--check").out == "my-task: holds\n"
    for other in by_runtime.values():
        assert path.read_bytes() == other
    by_runtime[runtime] = path.read_bytes()
    solution = tmp_path / "task_specs" / "my-task" / "solution" / "solution.patch"
    solution.write_text(solution.read_text() + "\n")
    stale = stillroom("certify", "my-task", "--check")
    assert stale.status == 1
    assert "the reference solution changed since" in stale.out


def test_the_certificates_of_the_suite_hold(stillroom: Stillroom):
    done = stillroom("certify", "--suite", "core", "--check", "--json")
    assert [one for one in done.lines if one["objections"]] == []
    assert len(done.lines) == 12
    assert done.status == 0
