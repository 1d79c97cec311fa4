"""What an agent's box must not hold: the hidden tests, the solution, the future, the host."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from sandbox.formats.home import bundled_home
from sandbox.model.task import TaskId, TaskSpec
from sandbox.rollout.catalogue import Catalogue
from sandbox.rollout.run import agent_box
from sandbox.runtime.base import Box
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.repo.pins import read_files
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot, Supplies
from sandbox.runtime.tarball import read

pytestmark = [pytest.mark.box, pytest.mark.network, pytest.mark.timeout(900)]
SHELF = Catalogue((bundled_home(),))
TASKS = SHELF.suites()["core"].tasks
TEST_NAME = re.compile(rb"def (test_\w{12,})\(")
LONG_ENOUGH = 40


@pytest.fixture(scope="module")
def depot(store: Store) -> Depot:
    return Depot(store, lambda *_: None)


@pytest.fixture(scope="module")
def runtime(store: Store):
    made = EmbeddedRuntime(store)
    yield made
    made.close()


def secrets_of(task: TaskSpec, depot: Depot, supplies: Supplies) -> dict[str, bytes]:
    """Lines of the solution, and names of hidden tests, that the pinned commit does not have."""
    known = b"\n".join(e.data for e in read_files(supplies.repo))
    patch = depot.solution(task, supplies).splitlines()
    added = {line[1:].strip() for line in patch if line.startswith(b"+")}
    lines = {a for a in added if len(a) > LONG_ENOUGH and a not in known}
    hidden = b"\n".join(e.data for e in depot.bundle(task))
    names = {n for n in TEST_NAME.findall(hidden) if n not in known}
    found = {f"line {s!r}": s for s in lines} | {f"test {s!r}": s for s in names}
    return found | {"the image's own secret folder": b"/verify/runner.py"}


def everything_in(box: Box) -> dict[str, bytes]:
    """Every file of the box, /proc and /sys left out, and every git object, unpacked."""
    found = {}
    tops = box.exec(["ls", "-1", "/"], seconds=30).stdout.decode().split()
    for top in tops:
        if top not in ("proc", "sys", "dev"):
            for entry in read(box.get(f"/{top}"), max_bytes=2 << 30, max_files=10**6):
                found[f"/{entry.path}"] = entry.data
    objects = box.exec(
        ["git", "cat-file", "--batch-all-objects", "--batch"], seconds=120, output_bytes=1 << 30
    )
    assert objects.exit_code == 0
    found["git objects"] = objects.stdout
    return found


@pytest.mark.parametrize("name", TASKS)
def test_no_trace_of_solution_or_hidden_tests(name: TaskId, depot: Depot, runtime: EmbeddedRuntime):
    task = SHELF.load(name)
    supplies = depot.supply(task)
    secrets = secrets_of(task, depot, supplies)
    assert len(secrets) > 2, "there is something to look for"
    with runtime.create(agent_box(task, supplies)) as box:
        for path, data in everything_in(box).items():
            hits = [what for what, secret in secrets.items() if secret in data]
            # One common line may be a coincidence (`exc_type: t.Optional[…],`); two are a trace.
            assert hits[1:] == [], f"found in {path}"
            assert not any(hit.startswith("test ") for hit in hits), f"{hits} in {path}"


@pytest.mark.parametrize("name", TASKS)
def test_the_repository_has_a_past_and_no_future(
    name: TaskId, depot: Depot, runtime: EmbeddedRuntime
):
    task = SHELF.load(name)

    def git(box: Box, *arguments: str) -> set[str]:
        done = box.exec(["git", *arguments], seconds=60)
        assert done.exit_code == 0, done.stderr
        return set(done.stdout.decode().split("\n")) - {""}

    with runtime.create(agent_box(task, depot.supply(task))) as box:
        assert git(box, "rev-parse", "HEAD") == {task.repo.commit}
        assert git(box, "status", "--porcelain", "--ignored") == set()
        assert git(box, "remote") == git(box, "tag") == git(box, "stash", "list") == set()
        assert git(box, "reflog", "--all") == set()
        assert git(box, "for-each-ref", "--format=%(refname)") == {"refs/heads/main"}
        there = git(box, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
        reached = {line.split(" ")[0] for line in git(box, "rev-list", "--objects", "HEAD")}
        assert there == reached


def test_no_network_and_nothing_of_the_host(depot: Depot, runtime: EmbeddedRuntime, store: Store):
    task = SHELF.load(TASKS[0])
    look = (
        "cat /proc/net/dev /proc/self/mountinfo /proc/1/cmdline /proc/self/cgroup;"
        " env; cat /proc/*/cmdline; ls -la /proc/*/cwd /proc/*/root /proc/*/exe 2>&1"
    )
    with runtime.create(agent_box(task, depot.supply(task))) as box:
        seen = box.exec(["sh", "-c", look], seconds=60).stdout.decode("utf-8", "replace")
        interfaces = [line.split(":")[0].strip() for line in seen.splitlines()[2:3]]
        out = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
        refused = box.exec(["python3", "-c", out], seconds=60)
    assert interfaces == ["lo"]
    assert b"Network is unreachable" in refused.stderr
    for hosts in (
        str(store.root),
        str(bundled_home()),
        str(Path.home() / ".cache"),
        os.uname().nodename,
    ):
        assert hosts not in seen
    for name, value in os.environ.items():
        if len(value) > 20 and name != "PATH":
            assert value not in seen, name


def test_the_working_tree_is_the_pinned_tree(depot: Depot, runtime: EmbeddedRuntime):
    """Byte for byte, whatever the repository's own attributes would make of it."""
    task = SHELF.load(TASKS[0])
    supplies = depot.supply(task)
    with runtime.create(agent_box(task, supplies)) as box:
        parent, _, base = task.workdir.rpartition("/")
        assert parent
        found = {
            e.path.removeprefix(f"{base}/"): e.data
            for e in read(box.get(task.workdir), max_bytes=1 << 30, max_files=10**5)
        }
    pinned = {e.path: e.data for e in read_files(supplies.repo)}
    assert {p: d for p, d in found.items() if not p.startswith(".git/")} == pinned


def test_a_rebuilt_wheel_holds_one_package_and_the_data(tmp_path: Path):
    root = bundled_home()
    if not (root / "pyproject.toml").exists():
        pytest.skip("not a checkout")
    uv = root / ".venv" / "bin" / "uv"
    subprocess.run(
        [uv, "build", "--quiet", "--wheel", "-o", tmp_path, root], check=True, timeout=280
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = subprocess.run(
        ["python3", "-m", "zipfile", "-l", wheel], capture_output=True, text=True, check=True
    ).stdout.split("\n")[1:-1]
    tops = {n.split("/")[0] for n in names}
    assert {t for t in tops if ".dist-info" not in t} == {"sandbox"}
    assert any(n.startswith("sandbox/_bundled/task_specs/jinja2-3.1.4/task.yaml") for n in names)
    assert any(n.startswith("sandbox/_bundled/verifiers/_runners/run_pytest.py") for n in names)
