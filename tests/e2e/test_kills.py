"""Whatever ends a run, nothing stays behind, and the same command goes on where it was."""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sandbox.runtime.store import Store
from tests.e2e.conftest import command
from tests.support.leftovers import leftovers

pytestmark = [pytest.mark.box, pytest.mark.network, pytest.mark.timeout(900)]
RUN = ("run", "simpleeval-0.9.13", "h11-0.14.0", "--agent", "oracle", "-k", "6", "-j", "2")
ROLLOUTS = 12
RUNTIMES = ["embedded", pytest.param("docker", marks=pytest.mark.docker)]


@pytest.fixture
def own_store(tmp_path: Path, store: Store) -> Store:
    """A store of one's own, whose big parts are shared: what is left in it was left by us."""
    own = Store(tmp_path / "store")
    own.root.mkdir()
    for part in ("blobs", "layers", "images", "repos", "trees"):
        (store.root / part).mkdir(parents=True, exist_ok=True)
        (own.root / part).symlink_to(store.root / part)
    return own


def start(folder: Path, own: Store, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*RUN, "--out", "out", "--quiet", *more),
        cwd=folder,
        env={**os.environ, "STILLROOM_STORE": str(own.root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def whole_lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return text.split("\n")[:-1]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_run_survives_ten_kills_at_random_moments(runtime: str, tmp_path: Path, own_store: Store):
    moments = random.Random(20261129)
    results = tmp_path / "out" / "results.jsonl"
    ended: list[str] = []
    for _ in range(10):
        process = start(tmp_path, own_store, "--runtime", runtime)
        try:
            process.wait(timeout=moments.uniform(0.2, 4.0))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        now = whole_lines(results)
        assert now[: len(ended)] == ended, "what had ended stays"
        ended = now
    last = start(tmp_path, own_store, "--runtime", runtime)
    _, err = last.communicate()
    assert last.returncode == 0, err
    lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert [json.loads(line) for line in ended] == lines[: len(ended)]
    times: Counter[Any] = Counter((line["task"], line["attempt"]) for line in lines)
    assert len(times) == ROLLOUTS
    assert set(times.values()) == {1}, "nothing that had ended was run again"
    assert all(line["verdict"]["resolved"] for line in lines)
    assert leftovers(own_store) == []
    assert not list((tmp_path / "out").glob("*.new"))


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_stopping_a_run_leaves_nothing_and_says_how_to_go_on(
    runtime: str, name: str, tmp_path: Path, own_store: Store
):
    process = start(tmp_path, own_store, "--runtime", runtime)
    results = tmp_path / "out" / "results.jsonl"
    until = time.monotonic() + 60
    while not whole_lines(results) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"run the same command again" in err
    assert b"Traceback" not in err
    assert leftovers(own_store) == []
    assert 0 < len(whole_lines(results)) < ROLLOUTS
