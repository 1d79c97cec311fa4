"""Tasks whose checks are no pytest tests, in real boxes: written, pinned, run and judged."""

import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Stillroom

pytestmark = [pytest.mark.box, pytest.mark.docker, pytest.mark.network]

UNITTEST = {
    "tests/test_words.py": """
        import os, time, unittest
        from words import count_words

        class Words(unittest.TestCase):
            def test_words_are_counted(self):
                self.assertEqual(count_words("a b"), 2)
            def test_white_space_is_no_word(self):
                for text, count in (("", 0), ("a  b", 2)):
                    with self.subTest(text=text):
                        self.assertEqual(count_words(text), count)
            def test_it_does_not_hang(self):
                if count_words(""):
                    time.sleep(1000)
            def test_it_does_not_end(self):
                if count_words(""):
                    os._exit(0)
    """,
}
UNITTEST_CHECKS = """
    schema: 1
    scored:
      - tests.test_words.Words.test_white_space_is_no_word
      - tests.test_words.Words.test_it_does_not_hang
      - tests.test_words.Words.test_it_does_not_end
    gates: [tests.test_words.Words.test_words_are_counted]
"""
ASK = """#!/bin/sh
asked() { python3 -c "
import sys, urllib.request
print(urllib.request.urlopen('http://127.0.0.1:8080/' + sys.argv[1]).read().decode())
" "$1"; }
say() { echo "{\\"check\\": \\"$1\\", \\"outcome\\": \\"$2\\"}" >&$STILLROOM_CHECKS; }
"""
SHELL = {
    "tests/none.sh": ASK + 'test "$(asked "")" = 0\n',
    "tests/some.sh": ASK
    + """
        test "$(asked a%20b)" = 2 && say two passed
        test "$(asked uid)" = 65531 && test "$(id -u)" = 65534 && say users passed
        ! touch words.py 2>/dev/null && say untouched passed
        true
    """,
}
SHELL_CHECKS = """
    schema: 1
    scored: [tests/none.sh]
    gates: [tests/some.sh, "tests/some.sh::two", "tests/some.sh::users", "tests/some.sh::untouched"]
"""
SERVICES = """
  services:
    - name: hello
      run: echo hello; exit 0
      ready: {seconds: 0}
    - name: count
      ready: {port: 8080}
      run: |
        exec python3 -c "
        import http.server, os, urllib.parse, words
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                text = urllib.parse.unquote(self.path[1:])
                said = os.getuid() if text == 'uid' else words.count_words(text)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(str(said).encode())
        http.server.HTTPServer(('127.0.0.1', 8080), Handler).serve_forever()
        "
"""

BASE = {
    "tests.test_words.Words.test_white_space_is_no_word": "failed",
    "tests.test_words.Words.test_it_does_not_hang": "failed",
    "tests.test_words.Words.test_it_does_not_end": "failed",
    "tests.test_words.Words.test_words_are_counted": "passed",
    "tests/none.sh": "failed",
    "tests/some.sh": "passed",
    "tests/some.sh::two": "passed",
    "tests/some.sh::users": "passed",
    "tests/some.sh::untouched": "passed",
}


def write_task(
    stillroom: Stillroom, home: Path, task: str, tests: dict[str, str], checks: str, verifier: str
) -> None:
    """As `stillroom new` makes it, with other hidden tests."""
    assert stillroom("new", task).status == 0
    (home / f"verifiers/{task}/bundle/tests/test_words.py").unlink()
    for name, text in tests.items():
        path = home / f"verifiers/{task}/bundle" / name
        head, _, rest = text.partition("\n\n") if text.startswith("#!") else ("", "", text)
        path.write_text(text if head else textwrap.dedent(rest))
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    (home / f"verifiers/{task}/checks.yaml").write_text(textwrap.dedent(checks))
    path = home / f"task_specs/{task}/task.yaml"
    text = path.read_text()
    assert "  runner: pytest\n" in text
    path.write_text(text.replace("  runner: pytest\n", verifier.strip("\n") + "\n"))
    done = stillroom("lock", "task", task)
    assert done.status == 0, done.err


@pytest.fixture
def tasks(stillroom: Stillroom, tmp_path: Path) -> list[str]:
    verifier = "  runner: unittest\n  check_seconds: 3\n"
    write_task(stillroom, tmp_path, "unit", UNITTEST, UNITTEST_CHECKS, verifier)
    write_task(stillroom, tmp_path, "asked", SHELL, SHELL_CHECKS, "  runner: shell\n" + SERVICES)
    return ["unit", "asked"]


def verdicts(stillroom: Stillroom, runtime: str, agent: str, tasks: list[str]) -> dict[str, Any]:
    options = ("--agent", agent, "--runtime", runtime, "--json", "--out", f"{runtime}-{agent[:6]}")
    done = stillroom("run", *tasks, *options)
    return {r["task"]: r["verdict"] for r in done.lines if "task" in r}


@pytest.mark.timeout(600)
def test_checks_of_unittest_and_of_shell_scripts_that_ask_a_service(
    stillroom: Stillroom, tasks: list[str], tmp_path: Path
):
    (tmp_path / "break.txt").write_text("echo 'print(\"oh\"); exit(3)' >words.py\n")
    for runtime in ("embedded", "docker"):
        right = verdicts(stillroom, runtime, "oracle", tasks)
        assert [v["reward"] for v in right.values()] == [1.0, 1.0], right
        base = verdicts(stillroom, runtime, "nop", tasks)
        assert {check: how for v in base.values() for check, how in v["checks"].items()} == BASE
        down = verdicts(stillroom, runtime, "script:break.txt", ["asked"])["asked"]
        assert down["reward"] == 0.0
        assert "service `count` (port 8080) ended with exit code 3; it said: oh" in down["reason"]
