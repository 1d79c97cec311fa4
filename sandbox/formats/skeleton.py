"""A new task's first files: small, and already sound, so that one starts from what works."""

from sandbox.errors import UserError
from sandbox.formats.taskfile import TASK_ID
from sandbox.model.task import Digest, ImagePin, RepoPin

_SOURCE = '''"""A word counter."""


def count_words(text: str) -> int:
    """The number of words in the text."""
    return len(text.split(" "))
'''
_SOLUTION = '''--- a/words.py
+++ b/words.py
@@ -3,4 +3,4 @@

 def count_words(text: str) -> int:
     """The number of words in the text."""
-    return len(text.split(" "))
+    return len(text.split())
'''
_INSTRUCTION = """# Empty strings are counted as words

`words.count_words("")` returns 1, and `count_words("a  b")` returns 3. Any run of white space
separates words: the results should be 0 and 2.
"""
_TESTS = """import pytest
from words import count_words


@pytest.mark.parametrize(("text", "count"), [("a b", 2), ("one", 1)])
def test_words_are_counted(text, count):
    assert count_words(text) == count


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a  b", 2), (" a\\n", 1)])
def test_white_space_is_no_word(text, count):
    assert count_words(text) == count
"""
_CHECKS = """schema: 1
# Each fails before the solution and passes after it; a pass earns its weight (1).
scored:
  - "tests/test_words.py::test_white_space_is_no_word[-0]"
  - "tests/test_words.py::test_white_space_is_no_word[a  b-2]"
  - "tests/test_words.py::test_white_space_is_no_word[ a\\\\n-1]"
# Each passes before and has to pass after; otherwise the reward is 0.
gates:
  - "tests/test_words.py::test_words_are_counted[a b-2]"
  - "tests/test_words.py::test_words_are_counted[one-1]"
"""


def task_files(task: str) -> dict[str, str]:
    """Path under the home → content; task.yaml comes later, when its pins are known."""
    if not TASK_ID.fullmatch(task):
        raise UserError(
            f"`{task}` is not a task id", hint="lower case letters, digits, and . _ - within"
        )
    return {
        f"repos/{task}/words.py": _SOURCE,
        f"task_specs/{task}/instruction.md": _INSTRUCTION,
        f"task_specs/{task}/solution/solution.patch": _SOLUTION,
        f"verifiers/{task}/bundle/tests/test_words.py": _TESTS,
        f"verifiers/{task}/checks.yaml": _CHECKS,
    }


def task_yaml(task: str, repo: RepoPin, image: ImagePin, bundle: Digest, clock: str) -> str:
    return f"""# What each key means: stillroom schema task
schema: 1
id: {task}
instruction: instruction.md
# What the agent finds in `workdir`. After a change of repos/{task}/: stillroom lock repo {task}
repo:
  name: {repo.name}
  commit: "{repo.commit}"
  tree: "{repo.tree}"
image:
  name: {image.name}
  digest: {image.digest}
workdir: /workspace/{task}
env:
  PYTHONPATH: /workspace/{task}
submission:
  paths: [words.py]
solution:
  patch: solution/solution.patch
verifier:
  # Hidden: verifiers/{task}/bundle/ replaces `paths` in the working directory.
  bundle:
    folder: bundle
    paths: [tests]
    digest: {bundle}
  runner: pytest
  run: [tests]
  seconds: 120
clock:
  at: {clock}
metadata:
  category: bug-fix
  difficulty: easy
  licence: CC0-1.0
  source: written for this suite
"""


def repo_entry(task: str, pin: RepoPin) -> str:
    """What is added to repos/lock.yaml."""
    return f"""  {task}:
    folder:
      path: {task}
    commit: "{pin.commit}"
    tree: "{pin.tree}"
    licence: CC0-1.0
"""
