"""stillroom doctor --conformance: a runtime is held to the contract, whatever it does."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from sandbox.runtime.store import Store
from tests.e2e.conftest import Stillroom, command
from tests.support.leftovers import leftovers

pytestmark = [pytest.mark.box, pytest.mark.network]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runtimes of the tests can be named, as somebody's own can."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def own_store(
    tmp_path: Path, store: Store, stillroom: Stillroom, monkeypatch: pytest.MonkeyPatch
) -> Store:
    """A store of one's own, whose images are shared: what is left in it was left by us."""
    stillroom("doctor", "--json")  # so that the image is there
    own = Store(tmp_path / "store")
    own.root.mkdir()
    for part in ("blobs", "layers", "images"):
        (own.root / part).symlink_to(store.root / part)
    monkeypatch.setenv("STILLROOM_STORE", str(own.root))
    return own


def test_a_runtime_that_keeps_the_contract(stillroom: Stillroom):
    done = stillroom("doctor", "--conformance", "embedded", "--only", "exec: a program *", "--json")
    assert done.status == 0, done.err
    assert len(done.lines) > 3
    assert {line["result"] for line in done.lines} == {"ok"}
    assert {line["group"] for line in done.lines} == {"exec"}


@pytest.mark.usefixtures("ours")
def test_a_runtime_that_breaks_it_is_told_how(stillroom: Stillroom):
    name = "tests.support.broken:Forgetful"
    done = stillroom("doctor", "--conformance", name, "--only", "*: [bdp]*")
    assert done.status == 1, done.err
    lines = done.out.splitlines()
    assert "ok   lifetime: destroying twice is harmless" in lines
    at = lines.index("NOT  lifetime: boxes have ids of their own")
    assert lines[at + 1] == "     two boxes have two ids: forgetful, forgetful"
    assert "not ok" in lines[-1]
    assert "Traceback" not in done.out + done.err


@pytest.mark.usefixtures("ours")
def test_a_runtime_that_cannot_even_be_made_is_told_too(stillroom: Stillroom):
    done = stillroom("doctor", "--conformance", "tests.support.broken:Unmakeable")
    assert done.status == 1
    assert "no engine for" in done.out


def test_a_runtime_or_a_check_that_is_not_there_is_a_mistake(stillroom: Stillroom):
    unknown = stillroom("doctor", "--conformance", "embeded")
    assert unknown.status == 2
    assert "did you mean `embedded`?" in unknown.err
    assert stillroom("doctor", "--conformance", "no.such:Runtime").status == 2
    nothing = stillroom("doctor", "--conformance", "embedded", "--only", "zzz")
    assert nothing.status == 4
    assert "no check is called `zzz`" in nothing.err


def test_it_can_be_stopped_and_leaves_nothing(tmp_path: Path, own_store: Store):
    with subprocess.Popen(
        command("doctor", "--conformance", "embedded"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith(b"ok   exec: ")
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert b"Traceback" not in said
    assert leftovers(own_store) == []
