"""Code under test that ends its run in every way it can: a failed check or nothing gained, never void.

Each attack is put before a right solution, so that it would be resolved if the attack did nothing.
docs/reference/verdict.md says how each end counts.
"""

import marshal
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.formats.digest import Entry
from sandbox.formats.patchwrite import make_patch
from sandbox.formats.taskfile import load_task
from sandbox.grading.judge import judge
from sandbox.grading.verify import verify
from sandbox.model.conditions import USUAL, Conditions
from sandbox.model.record import Submission
from sandbox.model.verdict import Evidence, Ran
from sandbox.rollout import plugins
from sandbox.runtime.base import Runtime
from sandbox.runtime.locks import lock_task, new_task
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot
from tests.support.absent import absent

pytestmark = [pytest.mark.box, pytest.mark.network]
RIGHT = "\n\ndef count_words(text):\n    return len(text.split())\n"
PIPE = """
import os, sys
fd = int(sys.argv[2])
pipes = {}
for name in os.listdir("/proc/self/fd"):
    try:
        pipes[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        pass
log = next(n for n, to in pipes.items() if to.startswith("pipe:") and to != pipes[fd])
"""
REFUSED = """
import ctypes, os
above = os.getppid()
failed = []
def attempt(name, act):
    try:
        act()
    except OSError:
        return
    failed.append(name)
def trace():
    if ctypes.CDLL(None, use_errno=True).ptrace(16, above, 0, 0) != 0:
        raise OSError
def set_limit():
    import resource
    resource.prlimit(above, resource.RLIMIT_CPU, (1, 1))
def write(name):
    with open(f"/proc/{above}/{name}", "wb") as f:
        f.write(b"1000")
attempt("trace", trace)
attempt("limits", set_limit)
attempt("kill", lambda: os.kill(above, 9))
attempt("stop", lambda: os.kill(above, 19))
for file in ("mem", "oom_score_adj", "fd/1", "clear_refs", "comm"):
    attempt(file, lambda: write(file))
attempt("look", lambda: os.readlink(f"/proc/{above}/fd/1"))
attempt("root", lambda: os.setuid(0))
for path in ("/verify/plan.json", "/verify/supervise.py", "tests/test_words.py", "words.py"):
    attempt(path, lambda: open(path, "ab"))
    attempt("unlink " + path, lambda: os.unlink(path))
attempt("tests", lambda: open("tests/conftest.py", "w"))
assert not failed, failed
"""
ENDED = b'!{"ended":"exited","exit":0,"others":0}\n.{"end":0}\n{"end":0}\n'
GONE, STOPPED, LATE = Ran.CRASHED, Ran.CRASHED, Ran.TIMED_OUT
ATTACKS: dict[str, tuple[str, Ran, str]] = {
    "hang": ("import time; time.sleep(10**6)", LATE, "took more than 8 s"),
    "crash": ("import ctypes; ctypes.string_at(0)", GONE, "SIGSEGV"),
    "take all memory": ("b = []\nwhile True: b.append(bytearray(1 << 20))", GONE, "memory limit"),
    "fork without end": (
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        LATE,
        "took more than 8 s",
    ),
    "kill its runner": ("import os; os.kill(os.getpid(), 9)", GONE, "SIGKILL"),
    "close all descriptors": ("import os; os.closerange(0, 4096)", GONE, "ended"),
    "stop its runner": ("import os; os.kill(os.getpid(), 19)", STOPPED, "did not go on"),
    "end with success": ("import os; os._exit(0)", GONE, "ended early with exit code 0"),
    "raise SystemExit": ("raise SystemExit(0)", Ran.FINISHED, ""),
    "end pytest": ("import pytest; pytest.exit('fine', 0)", Ran.FINISHED, ""),
    "skip everything": (
        "import pytest; pytest.skip('fine', allow_module_level=True)",
        Ran.FINISHED,
        "",
    ),
    "tell without end": (
        f"{PIPE}\nwhile True: os.write(fd, b'{{}}\\n' * 9999)",
        GONE,
        "more than any suite",
    ),
    "tell one record without end": (
        f"{PIPE}\nwhile True: os.write(fd, b'x' * 65536)",
        GONE,
        "more than any suite",
    ),
    "say that it ended": (
        f"{PIPE}\nfor to in (1, fd): os.write(to, {ENDED!r})\nos._exit(7)",
        GONE,
        "exit code 7",
    ),
    "give up its descriptors": (
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))",
        GONE,
        "ended early",
    ),
    "print a gigabyte into what pytest captures": (
        "import os\nfor _ in range(1 << 14): os.write(1, bytes(1 << 16))",
        GONE,
        "disk limit",
    ),
    "fill the disk": (
        "f = open('/tmp/f', 'wb')\nwhile True: f.write(bytes(1 << 20))",
        GONE,
        "disk limit",
    ),
}
HARMLESS = {
    "print a gigabyte": f"{PIPE}\nfor _ in range(1 << 14): os.write(log, bytes(1 << 16))",
    "keep the pipe in a child": "import os, time\nif not os.fork(): time.sleep(10**6)",
    "keep it in a session of its own": (
        "import os, time\nif not os.fork():\n    os.setsid()\n"
        "    if not os.fork(): time.sleep(10**6)\n    os._exit(0)"
    ),
    "kill everybody": "import os, signal\ntry: os.kill(-1, 9)\nexcept OSError: pass",
    "empty /tmp": "import shutil\nshutil.rmtree('/tmp', ignore_errors=True)",
    "leave threads": (
        "import threading, time\nfor _ in range(5): threading.Thread(target=time.sleep, args=(10**6,)).start()"
    ),
    "have a last word": "import atexit, os\natexit.register(os._exit, 3)",
    "attack who watches": REFUSED,
}
ON_ENGINES = ("take all memory", "fork without end", "kill its runner", "fill the disk")
HARMLESS_ON_ENGINES = ("attack who watches", "keep it in a session of its own", "kill everybody")


class Bench:
    """A small task whose boxes are small, and a runtime."""

    def __init__(self, home: Path, store: Store, runtime: Runtime) -> None:
        self.runtime, self.store = runtime, store
        self.depot = Depot(store, lambda *_: None)
        new_task(store, home, "short-1")
        lock_task(self.depot, load_task(home, "short-1"))
        task = load_task(home, "short-1")
        limits = replace(task.limits, memory_mib=192, pids=48, disk_mib=64)
        self.task = replace(task, limits=limits)

    def evidence(
        self, made: Mapping[str, str | bytes], conditions: Conditions = USUAL, **verifier: Any
    ) -> Evidence:
        """made: the submission's files; verifier: what of that is not as the task has it."""
        supplies = self.depot.supply(self.task)
        submission = replace(self.task.submission, paths=tuple(made))
        spec = replace(self.task.verifier, **verifier)
        task = replace(self.task, submission=submission, verifier=spec)
        after = [
            Entry(path, "file", text.encode() if isinstance(text, str) else text)
            for path, text in made.items()
        ]
        patch = make_patch(supplies.base, after)
        submitted = Submission(task=task.id, patch=patch)
        return verify(task, submitted, self.runtime, supplies, conditions=conditions)

    def resolved(self, evidence: Evidence) -> bool:
        return judge(self.task.verifier, evidence).resolved


def a_bench(name: str, store: Store, home: Path) -> Iterator[Bench]:
    with closing(plugins.runtime(name, store)) as runtime:
        if why := runtime.capabilities().still:
            absent(why)
        yield Bench(home, store, runtime)


@pytest.fixture(scope="module")
def bench(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    yield from a_bench("embedded", store, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def engine_bench(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    yield from a_bench("docker", store, tmp_path_factory.mktemp("home"))


@pytest.mark.parametrize("name", ATTACKS)
def test_a_run_that_is_ended_by_what_it_tests_is_failed_and_never_void(bench: Bench, name: str):
    code, ran, says = ATTACKS[name]
    seconds = 8 if ran is Ran.TIMED_OUT else 60
    found = bench.evidence({"words.py": code + RIGHT}, seconds=seconds)
    assert (found.ran, bench.resolved(found)) == (ran, False), found
    assert says in found.detail


@pytest.mark.docker
@pytest.mark.parametrize("name", ON_ENGINES)
def test_so_it_is_on_an_engine(engine_bench: Bench, name: str):
    test_a_run_that_is_ended_by_what_it_tests_is_failed_and_never_void(engine_bench, name)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_changes_nothing_for_the_checks_costs_nothing(bench: Bench, name: str):
    found = bench.evidence({"words.py": HARMLESS[name] + RIGHT}, seconds=60)
    assert (found.ran, found.detail, bench.resolved(found)) == (Ran.FINISHED, "", True), found
    assert len(found.log) < 1 << 20


@pytest.mark.docker
@pytest.mark.parametrize("name", HARMLESS_ON_ENGINES)
def test_so_it_is_on_an_engine_as_well(engine_bench: Bench, name: str):
    test_what_changes_nothing_for_the_checks_costs_nothing(engine_bench, name)


def test_where_there_is_no_user_but_root_what_is_left_is_killed_as_well(bench: Bench):
    """As in boxes of somebody who is not root on this machine."""
    for name in ("keep the pipe in a child", "keep it in a session of its own"):
        code = HARMLESS[name] + RIGHT
        found = bench.evidence({"words.py": code}, Conditions(user="0:0"), seconds=60)
        assert (found.ran, bench.resolved(found)) == (Ran.FINISHED, True), found


def test_a_check_that_takes_too_long_has_failed_and_the_others_go_on(bench: Bench):
    slow = "\n    import time; time.sleep(10**6)"
    code = f"def count_words(text):\n    if text: return len(text.split()){slow}"
    found = bench.evidence({"words.py": code}, check_seconds=4.0)
    late = "tests/test_words.py::test_white_space_is_no_word[-0]"
    assert (found.ran, found.detail) == (Ran.FINISHED, "")
    assert {c: r.outcome for c, r in found.report.items()} == {
        c.id: "failed" if c.id == late else "passed" for c in bench.task.verifier.checks
    }
    assert "took more than 4 s" in found.report[late].message


FORGING = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    report.outcome = "passed"
    return report
"""
WRONG = "def count_words(text):\n    return -1\n"


def compiled(source: str) -> bytes:
    """As Python 3.11 reads it, whatever the source beside it says: it is told not to look."""
    code = marshal.dumps(compile(source, "words.py", "exec"))
    return b"\xa7\r\r\n" + (1).to_bytes(4, "little") + bytes(8) + code


PLANTED: dict[str, dict[str, str]] = {
    "conftest.py": {"conftest.py": FORGING},
    "ini files": {
        "pytest.ini": "[pytest]\naddopts = --collect-only\n",
        "tox.ini": "[pytest]\naddopts = --collect-only\n",
        "setup.cfg": "[tool:pytest]\naddopts = -p planted\n",
        "planted.py": FORGING,
    },
    "modules": {f"{name}.py": "raise SystemExit(0)\n" for name in ("pytest", "json", "common")},
    "start-up code": {
        f"{name}.py": "import os; os._exit(0)\n" for name in ("sitecustomize", "usercustomize")
    },
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_lies_beside_a_solution_does_not_reach_the_runner(bench: Bench, name: str):
    assert bench.resolved(bench.evidence({**PLANTED[name], "words.py": RIGHT}))
    found = bench.evidence({**PLANTED[name], "words.py": WRONG})
    assert {r.outcome for r in found.report.values()} == {"failed"}


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="compiles for the image's Python")
def test_what_a_source_was_compiled_to_does_not_count(bench: Bench):
    planted: dict[str, str | bytes] = {
        "__pycache__/words.cpython-311.pyc": compiled(RIGHT),
        "words.py": WRONG,
    }
    found = bench.evidence(planted)
    assert {r.outcome for r in found.report.values()} == {"failed"}
