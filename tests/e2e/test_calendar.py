"""Checks that name the year pass in any year: the machine's clock has no part in a verdict.

The machine here is what libfaketime makes of it: whatever of ours runs outside of a box, the
command, what makes boxes and what asks the engine, believes that it is 2020, or 2040.
"""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox.formats.taskfile import load_task
from sandbox.runtime.freeze.preload import LIBRARY
from sandbox.runtime.locks import lock_task, new_task
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot
from tests.e2e.conftest import command

pytestmark = [pytest.mark.box, pytest.mark.network]
TASK = "calendar-1"
TESTS = """

import datetime, os, subprocess, time


def test_it_is_the_year_of_the_task(tmp_path):
    (tmp_path / "a").touch()
    written = datetime.datetime.fromtimestamp((tmp_path / "a").stat().st_mtime)
    asked = subprocess.run(["date", "+%Y"], env={}, capture_output=True, check=True).stdout
    assert (datetime.date.today().year, written.year, asked) == (2024, 2024, b"2024\\n")


def test_a_file_of_the_repository_is_not_from_the_future():
    names = [os.path.join(at, f) for at, _, files in os.walk(".") for f in files]
    assert names
    assert [n for n in names if os.stat(n).st_mtime > time.time()] == []
"""
CHECKS = "test_it_is_the_year_of_the_task", "test_a_file_of_the_repository_is_not_from_the_future"
YEARS = 2020, None, 2040


@pytest.fixture
def home(tmp_path: Path, store: Store) -> Path:
    new_task(store, tmp_path, TASK)
    with (tmp_path / f"verifiers/{TASK}/bundle/tests/test_words.py").open("a") as f:
        f.write(TESTS)
    with (tmp_path / f"verifiers/{TASK}/checks.yaml").open("a") as f:
        f.writelines(f'  - "tests/test_words.py::{name}"\n' for name in CHECKS)
    lock_task(Depot(store, lambda *_: None), load_task(tmp_path, TASK))
    return tmp_path


@pytest.fixture
def library(home: Path, store: Store) -> Path:
    """That of the task's image: it works for the machine as well."""
    task = load_task(home, TASK)
    image = Depot(store, lambda *_: None).image(home, task.image.name, task.image.digest)
    inside = LIBRARY.lstrip("/")
    link = next(p for f in image.lowers if (p := f / inside).is_symlink() or p.exists())
    target = str(link.readlink()).lstrip("/")
    return next(p for f in image.lowers if (p := f / target).is_file())


def machine(library: Path, year: int | None) -> dict[str, str]:
    """The environment of a command on a machine whose clock is in that year."""
    if year is None:
        return {**os.environ}
    away = datetime(year, 6, 17, 12, tzinfo=UTC).timestamp() - time.time()
    return {
        **os.environ,
        "LD_PRELOAD": str(library),
        "FAKETIME": f"{away:+.0f}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


@pytest.mark.parametrize("runtime", ["embedded", pytest.param("docker", marks=pytest.mark.docker)])
def test_the_verdict_is_the_same_in_2020_today_and_2040(runtime: str, home: Path, library: Path):
    verdicts = {}
    for year in YEARS:
        env = machine(library, year)
        told = subprocess.check_output(
            [sys.executable, "-c", "import time; print(time.gmtime()[0])"], env=env
        )
        assert int(told) == (year or datetime.now(UTC).year), "the machine's clock was not moved"
        out = home / f"runs-{year}"
        done = subprocess.run(
            command("run", TASK, "--agent", "oracle", "--runtime", runtime, "--out", str(out), "--quiet"),
            cwd=home, env=env, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (record,) = map(json.loads, (out / "results.jsonl").read_text().splitlines())
        assert record["fault"] is None
        assert record["started"].startswith(str(year or datetime.now(UTC).year))
        verdicts[year] = record["verdict"]
    assert verdicts[None]["resolved"]
    assert [v for v in verdicts.values() if v != verdicts[None]] == []
