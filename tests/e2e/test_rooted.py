"""A terminal task: what is judged lies in /srv and /etc, of the box and not of the repository."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Stillroom
from tests.e2e.test_runners import write_task

pytestmark = [pytest.mark.box, pytest.mark.docker, pytest.mark.network]

TASK = "site"
DECLARED = "  paths: [/srv/site, /etc/issue, /etc/site.conf, /srv/lib/own.so, /srv/version]\n"
SAY = """#!/bin/sh
say() { if "$@"; then echo passed; else echo failed; fi; }
tell() { echo "{\\"check\\": \\"$1\\", \\"outcome\\": \\"$2\\"}" >&$STILLROOM_CHECKS; }
"""
TESTS = {
    "tests/site.sh": SAY
    + """
        tell page "$(say test "$(cat /srv/site/www/index.html)" = hello)"
        tell tool "$(say test "$(/srv/site/tool)" = run)"
        tell issue "$(say test "$(cat /etc/issue)" = ours)"
        tell port "$(say test "$(cat /etc/site.conf)" = "port = 80")"
        tell served "$(say test "$(python3 -c "
import urllib.request
print(urllib.request.urlopen('http://127.0.0.1:8080/index.html').read().decode())")" = hello)"
    """,
    "tests/untouched.sh": SAY
    + """
        tell nobody "$(say test ! -w /srv/site/www/index.html)"
        tell clean "$(say test ! -e /srv/other -a ! -e /srv/site/link -a ! -e /srv/site/.bashrc)"
        tell library "$(say test ! -e /etc/ld.so.preload -a ! -e /srv/site/evil.so)"
    """,
}
SCORED = [f"tests/site.sh::{name}" for name in ("page", "tool", "issue", "port", "served")]
GATES = [f"tests/untouched.sh::{name}" for name in ("clean", "library", "nobody")]
CHECKS = f"""
    schema: 1
    scored: {json.dumps(SCORED)}
    gates: {json.dumps(GATES)}
"""
VERIFIER = """
  runner: shell
  services:
    - name: web
      run: exec python3 -m http.server -d /srv/site/www 8080
      ready: {port: 8080}
"""
WORK = """\
mkdir -p /srv/site/www && echo hello > /srv/site/www/index.html
printf '#!/bin/sh\\necho run\\n' > /srv/site/tool && chmod 700 /srv/site/tool
echo ours > /etc/issue; echo 'port = 80' > /etc/site.conf
"""
HOSTILE = """\
ln -s /etc/shadow /srv/site/link; ln /etc/passwd /srv/site/passwd; mkfifo /srv/site/pipe
echo 'echo oh' > /srv/site/.bashrc; echo x > /srv/other; echo /srv/site/evil.so > /etc/ld.so.preload
cp /bin/true /srv/site/evil.so; mkdir -p /srv/lib; ln -s /bin/true /srv/lib/own.so
"""
LINKED = "mv /srv /moved; ln -s /sys/module/{} /srv\n"
"""A link in a folder's place, to what only claims to have a size. Which ones there are is the host's."""


@pytest.fixture
def home(stillroom: Stillroom, tmp_path: Path) -> Path:
    write_task(stillroom, tmp_path, TASK, TESTS, CHECKS, VERIFIER)
    spec = tmp_path / f"task_specs/{TASK}/task.yaml"
    spec.write_text(spec.read_text().replace("  paths: [words.py]\n", DECLARED))
    (tmp_path / "work.txt").write_text(WORK)
    (tmp_path / "hostile.txt").write_text(WORK + HOSTILE)
    assert stillroom("lock", "task", TASK).status == 0
    return tmp_path


def module() -> str:
    """With a file in it that has the name of a declared path."""
    return next((p.parent.name for p in Path("/sys/module").glob("*/version")), "none")


def run(stillroom: Stillroom, agent: str, out: str, *more: str) -> dict[str, Any]:
    done = stillroom("run", TASK, "--agent", agent, "--out", out, "--json", *more)
    (line,) = (r for r in done.lines if "task" in r)
    assert line["verdict"], done.err
    return line


@pytest.mark.timeout(600)
def test_what_an_agent_leaves_in_the_box_is_judged_as_what_it_leaves_in_the_repository(
    stillroom: Stillroom, home: Path
):
    first = run(stillroom, "script:work.txt", "first")
    assert first["verdict"]["resolved"], first
    # What somebody did once is the reference solution.
    patch = (home / f"first/rollouts/{TASK}/0/submission.patch").read_bytes()
    (home / f"task_specs/{TASK}/solution/solution.patch").write_bytes(patch)
    oracle = run(stillroom, "oracle", "oracle")
    assert (oracle["verdict"]["reward"], oracle["patch_sha256"]) == (1.0, first["patch_sha256"])
    nop = run(stillroom, "nop", "nop")
    assert (nop["verdict"]["reward"], nop["patch_bytes"]) == (0.0, 0)

    for runtime in ("embedded", "docker"):
        hostile = run(stillroom, "script:hostile.txt", runtime, "--runtime", runtime)
        assert hostile["verdict"]["resolved"], hostile
        evidence = json.loads((home / f"{runtime}/rollouts/{TASK}/0/evidence.json").read_text())
        left_out = {"/srv/site/.bashrc", "/srv/site/evil.so", "/srv/site/link", "/srv/lib/own.so"}
        assert set(evidence["outside"]) == left_out

    (home / "linked.txt").write_text(WORK + LINKED.format(module()))
    linked = run(stillroom, "script:linked.txt", "linked")
    assert linked["verdict"]["reward"] == 0.4, linked  # what is in /etc counts

    again = stillroom("grade", "first/submissions.jsonl", "--out", "graded", "--json")
    assert [r["verdict"]["reward"] for r in again.lines if "task" in r] == [1.0]
    for same in (("--from-evidence", "first"), ("--verify", "first")):
        done = stillroom("grade", *same)
        assert done.status == 0, done.err
    told = stillroom("explain", "docker", TASK)
    assert told.status == 0
    assert "/srv/site/link" in told.out
