"""What an agent's box must not hold: the hidden tests, the solution, the future, the host."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.audit.gate.look import project, wanted
from sandbox.audit.gate.trials import source_of
from sandbox.audit.leaks.box import leaks
from sandbox.formats.digest import Entry
from sandbox.formats.home import bundled_home
from sandbox.model.task import TaskId
from sandbox.rollout.catalogue import Catalogue
from sandbox.rollout.run import agent_box
from sandbox.runtime.base import Box
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.repo.pins import read_files
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot
from sandbox.runtime.tarball import pack, read

pytestmark = [pytest.mark.box, pytest.mark.network, pytest.mark.timeout(900)]
SHELF = Catalogue((bundled_home(),))
TASKS = SHELF.suites()["core"].tasks


@pytest.fixture(scope="module")
def depot(store: Store) -> Depot:
    return Depot(store, lambda *_: None)


@pytest.fixture(scope="module")
def runtime(store: Store):
    made = EmbeddedRuntime(store)
    yield made
    made.close()


def git(box: Box, *arguments: str) -> set[str]:
    done = box.exec(["git", *arguments], seconds=60)
    assert done.exit_code == 0, done.stderr
    return set(done.stdout.decode().split("\n")) - {""}


@pytest.mark.parametrize("name", TASKS)
def test_no_trace_of_solution_hidden_tests_or_future(
    name: TaskId, depot: Depot, runtime: EmbeddedRuntime
):
    task = SHELF.load(name)
    supplies = depot.supply(task)
    secrets = wanted(source_of(task, depot), supplies)
    assert len(secrets) > 2, "there is something to look for"
    with runtime.create(agent_box(task, supplies)) as box:
        assert [leak.said for leak in leaks(box, secrets, project(task))] == []
        assert git(box, "rev-parse", "HEAD") == {task.repo.commit}
        assert git(box, "status", "--porcelain", "--ignored") == set()
        assert git(box, "remote") == git(box, "tag") == git(box, "stash", "list") == set()
        assert git(box, "reflog", "--all") == set()
        assert git(box, "for-each-ref", "--format=%(refname)") == {"refs/heads/main"}


PLANTED = """
set -e
python3 - <<'END'
import gzip, io, py_compile, tarfile, zipfile
lines = open('/secret').read()
with zipfile.ZipFile('/opt/a.whl', 'w', zipfile.ZIP_DEFLATED) as z:
    z.writestr('b/c.py', lines)
inner = io.BytesIO(gzip.compress(lines.encode()))
with tarfile.open('/opt/d.tar.xz', 'w:xz') as t:
    info = tarfile.TarInfo('e.gz')
    info.size = len(inner.getvalue())
    t.addfile(info, inner)
open('/opt/f.py', 'w').write('def f(): ' + '; '.join(open('/names').read().split()))
py_compile.compile('/opt/f.py', '/opt/f.pyc')
END
rm /secret /names /opt/f.py
mkdir -p /opt/h11-9.9.dist-info && touch /opt/h11-9.9.dist-info/METADATA
git hash-object -w --stdin </etc/hostname
"""


def test_what_is_planted_in_archives_bytecode_and_objects_is_found(
    depot: Depot, runtime: EmbeddedRuntime
):
    """On a small task: what is looked for is there, and only just so."""
    task = SHELF.load(TaskId("h11-0.14.0"))
    supplies = depot.supply(task)
    names = frozenset({b"a_name_that_it_brings", b"another_name_that_it_brings"})
    secrets = replace(wanted(source_of(task, depot), supplies), names=names)
    files = (
        Entry("secret", "file", b"\n".join(sorted(secrets.lines)[:2])),
        Entry("names", "file", b" ".join(sorted(secrets.names)[:2])),
    )
    with runtime.create(agent_box(task, supplies)) as box:
        box.put(pack(files), "/")
        done = box.exec(["sh", "-c", PLANTED], seconds=60)
        assert done.exit_code == 0, done.stderr
        found = list(leaks(box, secrets, project(task)))
    said = {leak.said.split(" ")[0] for leak in found if leak.what == "solution"}
    assert said == {"/opt/a.whl!b/c.py", "/opt/d.tar.xz!content!e.gz!content", "/opt/f.pyc"}
    assert [x.said for x in found if x.what == "dist"] == [
        "/opt/h11-9.9.dist-info/METADATA is of h11 itself"
    ]
    assert [x.said[:15] for x in found if x.what == "history"] == ["1 git objects b"]


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
