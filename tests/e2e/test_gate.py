"""The gate before tasks: a bad one, of which much is to be said, and a good one, of which nothing is."""

from pathlib import Path

import pytest

from tests.e2e.conftest import Stillroom

pytestmark = [pytest.mark.box, pytest.mark.network, pytest.mark.timeout(900)]
TESTS = '''import inspect

import pytest
import words
from words import count_words

came = []


@pytest.mark.parametrize(("text", "count"), [("a b", 2), ("one", 1)])
def test_words_are_counted(text, count):
    """In this order."""
    assert came == ["a b"] * (text == "one")
    came.append(text)
    assert count_words(text) == count


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a  b", 2), (" a\\n", 1)])
def test_white_space_is_no_word(text, count):
    assert count_words(text) == count
    assert "# at any space" in inspect.getsource(words)
    assert words.spare
'''
SOLUTION = """--- a/words.py
+++ b/words.py
@@ -1,6 +1,12 @@
-\"\"\"A word counter.\"\"\"
+\"\"\"A counter of words.\"\"\"


 def count_words(text: str) -> int:
     \"\"\"The number of words in the text.\"\"\"
-    return len(text.split(" "))
+    # at any space
+    return len(text.split())
+
+
+def spare() -> int:
+    limit = 3
+    return limit
"""


@pytest.fixture
def bad(stillroom: Stillroom, tmp_path: Path) -> str:
    """The agents see nothing wrong: the reference solution resolves it, and nothing does not."""
    assert stillroom("new", "bad").status == 0
    (tmp_path / "verifiers/bad/bundle/tests/test_words.py").write_text(TESTS)
    (tmp_path / "task_specs/bad/solution/solution.patch").write_text(SOLUTION)
    assert stillroom("lock", "task", "bad").status == 0
    (tmp_path / "certificates").mkdir()
    (tmp_path / "certificates/bad.json").write_text("{}\n")
    return "bad"


def test_a_bad_task_is_kept_out_with_everything_that_is_wrong(
    stillroom: Stillroom, bad: str, tmp_path: Path
):
    done = stillroom("check", bad, "--json", "-j", "2", seconds=600)
    assert done.status == 1, done.out + done.err
    (told,) = done.lines
    found = {f["id"]: f["evidence"] for f in told["findings"]}
    assert "sound" not in told
    assert not told["void"], told
    assert set(found) == {
        "SR-ALONE", "SR-COST", "SR-HUNK", "SR-KNOCKOUT", "SR-NARROW", "SR-ORDER", "SR-UNSAID",
        "semantic.replayability",
    }  # fmt: skip
    assert found["SR-HUNK"] == "words.py:1-1 can stay as it was"
    assert found["SR-KNOCKOUT"].endswith("spare can return None")
    assert found["SR-UNSAID"] == "spare"
    assert "one" in found["SR-ORDER"]
    again = stillroom("check", bad, seconds=60)
    assert again.status == 1
    assert "nothing is left to do" in again.err
    assert "bad: NOT SOUND\n  error" in again.out
    assert "hint: test what the task asks for" in again.out
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("check-bad-embedded-")


def test_a_good_task_is_let_in_and_nothing_is_said_against_it(stillroom: Stillroom):
    assert stillroom("new", "good").status == 0
    done = stillroom("check", "good", "--json", "-j", "2", seconds=600)
    assert done.status == 0, done.out + done.err
    (told,) = done.lines
    assert told["problems"] == []
    assert {f["severity"] for f in told["findings"]} == {"info"}


def test_two_levels_at_once_are_none(stillroom: Stillroom):
    done = stillroom("check", "jinja2-3.1.4", "--quick", "--full")
    assert done.status == 2
    assert "two levels" in done.err
