"""`lock checks` finds canaries, and with them who forges is found out and who is honest loses nothing."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox.formats.digest import Entry
from sandbox.formats.patchwrite import make_patch
from sandbox.formats.taskfile import load_task
from sandbox.grading.judge import judge
from sandbox.grading.verify import verify
from sandbox.model.record import Submission
from sandbox.model.task import TaskSpec
from sandbox.model.verdict import Verdict
from sandbox.rollout import plugins
from sandbox.runtime.base import Runtime
from sandbox.runtime.locks import lock_task, new_task
from sandbox.runtime.store import Store
from sandbox.runtime.supplies import Depot
from tests.e2e.conftest import command
from tests.support.absent import absent

pytestmark = [pytest.mark.box, pytest.mark.network]
TESTS = '''\
import pytest
from words import count_words

LONG = {"three words here": 3, "and four of them": 4}


@pytest.mark.parametrize(("text", "count"), [("a b", 2), ("one", 1)])
def test_words_are_counted(text, count):
    assert count_words(text) == count


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a  b", 2)])
def test_white_space_is_no_word(text, count):
    """Not 7 of them."""
    assert count_words(text) == count


class TestMore:
    def test_a_line(self):
        assert count_words(" a\\n") == 1

    def test_of_nothing(self):
        with pytest.raises(AttributeError, match="split"):
            count_words(None)


def test_long_ones():
    for text, count in LONG.items():
        assert count_words(text) == count


def test_it_is_the_same_twice():
    assert count_words(str()) == count_words(str())
'''
AT = "tests/test_words.py::"
SCORED = (
    *("test_white_space_is_no_word[-0]", "test_white_space_is_no_word[a  b-2]"),
    *("TestMore::test_a_line", "test_long_ones"),
)
GATES = (
    *("test_words_are_counted[a b-2]", "test_words_are_counted[one-1]"),
    *("TestMore::test_of_nothing", "test_it_is_the_same_twice"),
)
RIGHT = "def count_words(text):\n    return len(text.split())\n"
PARTLY = "def count_words(text):\n    return len(text.split(' ')) if text.split() else 0\n"
FORGERS = {
    "reports that say passed": """
import _pytest.reports
made = _pytest.reports.TestReport.from_item_and_call.__func__
def passed(cls, item, call):
    report = made(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report
_pytest.reports.TestReport.from_item_and_call = classmethod(passed)
def count_words(text):
    return -1
""",
    "equal to everything": """
class Equal(int):
    __eq__ = __ge__ = __le__ = lambda *_: True
    __hash__ = int.__hash__
def count_words(text):
    return Equal(text.split and 1)
""",
    "looks at who asks": """
import linecache, re, sys
def count_words(text):
    text.split
    frame = sys._getframe(1)
    if "count" in frame.f_locals:
        return frame.f_locals["count"]
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return int(re.search(r"== (\\\\d+)|$", line)[1] or 0)
""".replace("\\\\", "\\"),
}


@dataclass(frozen=True)
class Locked:
    """A task that has canaries, and where submissions to it are judged."""

    home: Path
    task: TaskSpec
    depot: Depot
    runtime: Runtime

    def verdict(self, source: str, attempt: int = 0) -> Verdict:
        supplies = self.depot.supply(self.task)
        after = [Entry("words.py", "file", source.encode())]
        patch = make_patch(supplies.base, after)
        made = Submission(task=self.task.id, patch=patch)
        seen = verify(self.task, made, self.runtime, supplies, attempt=attempt)
        return judge(self.task.verifier, seen, supplies.layers)


@pytest.fixture(scope="module")
def locked(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    home = tmp_path_factory.mktemp("home")
    new_task(store, home, "short-1")
    folder = home / "verifiers" / "short-1"
    (folder / "bundle" / "tests" / "test_words.py").write_text(TESTS)
    checks = {"schema": 1, "scored": [AT + c for c in SCORED], "gates": [AT + c for c in GATES]}
    (folder / "checks.yaml").write_text(json.dumps(checks))
    depot = Depot(store, lambda *_: None)
    lock_task(depot, load_task(home, "short-1"))
    with closing(plugins.runtime("embedded", store)) as runtime:
        if why := runtime.capabilities().still:
            absent(why)
        done = lock(home)
        assert done.returncode == 0, done.stderr
        assert "7 of 8 checks have a canary" in done.stdout
        yield Locked(home, load_task(home, "short-1"), depot, runtime)


def lock(home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("lock", "checks", "short-1", "--wrong", "0"),
        cwd=home, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip


def test_what_is_found_is_pinned_and_what_is_not_covered_is_named(locked: Locked):
    found = json.loads((locked.home / "verifiers/short-1/canaries.json").read_text())
    assert found["uncovered"] == {f"{AT}test_it_is_the_same_twice": "there is no literal to edit"}
    assert len(found["units"]) == 5
    assert "canary" in locked.task.verifier.layers
    text = (locked.home / "task_specs/short-1/task.yaml").read_text()
    assert "# Hidden: verifiers/short-1/bundle/" in text


@pytest.mark.parametrize("attempt", range(3))
def test_what_is_right_is_resolved_whatever_the_coins(locked: Locked, attempt: int):
    verdict = locked.verdict(RIGHT, attempt)
    assert (verdict.reward, verdict.flags) == (1.0, ()), verdict


def test_what_is_right_in_part_gets_its_part(locked: Locked):
    verdict = locked.verdict(PARTLY)
    assert (verdict.reward, verdict.flags) == (0.5, ()), verdict


@pytest.mark.parametrize("name", FORGERS)
def test_what_passes_whatever_is_expected_is_forged(locked: Locked, name: str):
    verdict = locked.verdict(FORGERS[name])
    assert (verdict.reward, verdict.flags) == (0.0, ("forged",)), verdict
