"""Each verb, as a person or a program uses it."""

import json
import os
import pty
import select
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import Stillroom, command

pytestmark = [pytest.mark.box, pytest.mark.network]
AGENT = """
import json, sys
told = json.loads(sys.stdin.readline())
assert told["type"] == "task" and "words" in told["instruction"], told
def act(**action):
    print(json.dumps(action), flush=True)
    return json.loads(sys.stdin.readline())
seen = act(type="run", command="pwd; grep -c split words.py")
assert seen["exit_code"] == 0 and seen["output"] == told["workdir"] + "\\n1\\n", seen
act(type="run", command="sed -i 's/split(\\" \\")/split()/' words.py", seconds=10)
print(json.dumps({"type": "submit"}), flush=True)
"""


@pytest.fixture
def task(stillroom: Stillroom) -> str:
    assert stillroom("new", "my-task").status == 0
    return "my-task"


def test_a_new_task_is_sound(stillroom: Stillroom, task: str):
    done = stillroom("check", task, "--json")
    assert done.status == 0, done.err
    assert done.lines == [{"task": task, "problems": [], "void": False}]
    again = stillroom("new", task)
    assert again.status == 2
    assert "exists already" in again.err


def test_a_task_that_nothing_resolves_fails_the_gate(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    patch = tmp_path / "task_specs" / task / "solution" / "solution.patch"
    patch.write_text(patch.read_text().replace("text.split())", "text.split(None))*2"))
    done = stillroom("check", task)
    assert done.status == 1
    assert "NOT SOUND" in done.out
    assert "the reference solution does not resolve it" in done.out


def test_an_agent_that_is_a_program(stillroom: Stillroom, task: str, tmp_path: Path):
    (tmp_path / "agent.py").write_text(AGENT)
    agent = f"shell:{sys.executable} agent.py"
    done = stillroom("run", task, "--agent", agent, "--json", "--out", "out")
    assert done.status == 0, done.err
    rollout, end = done.lines
    assert rollout["verdict"]["resolved"]
    assert rollout["steps"] == 2
    assert end["summary"]["resolved"] == 1
    folder = tmp_path / "out" / "rollouts" / task / "0"
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [e["action"]["type"] for e in events] == ["run", "run"]
    assert b"text.split()" in (folder / "submission.patch").read_bytes()
    assert json.loads((folder / "evidence.json").read_text())["ran"] == "finished"


def test_an_agent_that_breaks_is_void_and_tried_again_by_the_same_command(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    (tmp_path / "agent.sh").write_text("test -e mended && exit 0; echo 'no key' >&2; exit 7\n")
    run = ("run", task, "--agent", "shell:sh agent.sh", "--out", "out", "--retries", "0")
    done = stillroom(*run)
    assert done.status == 3
    assert "ended with status 7" in done.out + done.err
    assert "no key" in done.out + done.err
    (tmp_path / "mended").touch()
    assert stillroom(*run).status == 0
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    first, second = map(json.loads, lines)
    assert first["verdict"] is None
    assert first["fault"]["code"] == "agent"
    assert second["verdict"]["reward"] == 0.0


def test_what_has_ended_is_not_run_again(stillroom: Stillroom, task: str, tmp_path: Path):
    run = ("run", task, "--agent", "nop", "--out", "out", "-k", "2")
    assert stillroom(*run).status == 0
    before = (tmp_path / "out" / "results.jsonl").read_bytes()
    done = stillroom(*run)
    assert done.status == 0
    assert "2 of 2 had ended before" in done.err
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == before
    other = stillroom("run", task, "--agent", "oracle", "--out", "out")
    assert other.status == 2
    assert "holds a run with agent `nop`" in other.err


def test_grading_what_a_run_submitted_gives_the_same_verdicts(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    assert stillroom("run", task, "--agent", "oracle", "--out", "out").status == 0
    done = stillroom("grade", "out/submissions.jsonl", "--json", "--out", "graded")
    assert done.status == 0, done.err
    ran = json.loads((tmp_path / "out" / "results.jsonl").read_text())
    graded = done.lines[0]
    assert graded["verdict"] == ran["verdict"]
    assert graded["patch_sha256"] == ran["patch_sha256"]
    assert graded["ending"] == "graded"


PATCHES = {
    "good": ('-    return len(text.split(" "))\n+    return len(text.split())\n', 1.0, ""),
    "stale": ('-    return len(text.split("x"))\n+    return 0\n', 0.0, "does not apply"),
    "torn": ("-    return", 0.0, "rejected"),
}


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_applies_strictly_or_is_rejected(
    stillroom: Stillroom, task: str, tmp_path: Path, name: str
):
    change, reward, why = PATCHES[name]
    head = "--- a/words.py\n+++ b/words.py\n@@ -6 +6 @@\n"
    line = {"task": task, "patch": head + change}
    (tmp_path / "s.jsonl").write_text(json.dumps(line) + "\n")
    done = stillroom("grade", "s.jsonl", "--json")
    assert done.status == 0, done.err
    assert done.lines[0]["verdict"]["reward"] == reward
    assert why in done.lines[0]["verdict"]["reason"]


def test_what_lies_outside_the_declared_paths_does_not_count(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    forged = "import pytest\n@pytest.hookimpl\ndef pytest_collection_modifyitems(items):\n items.clear()\n"
    added = "".join(f"+{line}\n" for line in forged.splitlines())
    count = len(forged.splitlines())
    patch = f"--- /dev/null\n+++ b/conftest.py\n@@ -0,0 +1,{count} @@\n{added}"
    (tmp_path / "s.jsonl").write_text(json.dumps({"task": task, "patch": patch}) + "\n")
    done = stillroom("grade", "s.jsonl", "--json", "--out", "out")
    assert done.lines[0]["verdict"]["reward"] == 0.0
    evidence = json.loads(
        (tmp_path / "out" / "rollouts" / task / "0" / "evidence.json").read_text()
    )
    assert evidence["outside"] == ["conftest.py"]
    assert len(evidence["report"]) == 5, "the tests ran as they are"


def test_a_submission_cannot_keep_the_hidden_tests_out(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    """A link where their folder's parent has to be: rejected, not void, and nothing lands there."""
    spec = tmp_path / "task_specs" / task / "task.yaml"
    text = spec.read_text().replace("[words.py]", "[words.py, deep]")
    text = text.replace("paths: [tests]", "paths: [deep/tests]").replace(
        "run: [tests]", "run: [deep]"
    )
    spec.write_text(text)
    bundle = tmp_path / "verifiers" / task / "bundle"
    (bundle / "deep").mkdir()
    (bundle / "tests").rename(bundle / "deep" / "tests")
    assert stillroom("lock", "task", task).status == 0
    head = "diff --git a/deep b/deep\nnew file mode 120000\n--- /dev/null\n+++ b/deep\n"
    patch = head + "@@ -0,0 +1 @@\n+/usr/lib\n\\ No newline at end of file\n"
    (tmp_path / "s.jsonl").write_text(json.dumps({"task": task, "patch": patch}) + "\n")
    done = stillroom("grade", "s.jsonl", "--json")
    assert done.status == 0, done.out
    assert "no folder in place of /workspace/my-task/deep" in done.lines[0]["verdict"]["reason"]


def test_tampered_hidden_tests_are_refused_by_name(stillroom: Stillroom, task: str, tmp_path: Path):
    tests = tmp_path / "verifiers" / task / "bundle" / "tests" / "test_words.py"
    tests.write_text(tests.read_text() + "\n")
    done = stillroom("run", task, "--agent", "oracle", "--json")
    assert done.status == 3
    fault = done.lines[0]["fault"]
    assert fault["code"] == "verifier"
    assert f"refused: the hidden tests of `{task}`" in fault["message"]
    assert done.lines[0]["verdict"] is None


def test_changed_files_are_noticed_and_can_be_pinned_again(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    source = tmp_path / "repos" / task / "words.py"
    source.write_text(source.read_text().replace("A word counter", "A counter of words"))
    refused = stillroom("check", task)
    assert refused.status == 2
    assert f"stillroom lock repo {task}" in refused.err
    assert stillroom("lock", "repo", task).status == 0
    tests = tmp_path / "verifiers" / task / "bundle" / "tests" / "test_words.py"
    tests.write_text(tests.read_text() + "\n")
    assert stillroom("lock", "task", task).status == 0
    done = stillroom("check", task)
    assert done.status == 0, done.out + done.err
    assert "already" in stillroom("lock", "task", task).out


def test_a_person_can_take_the_agents_place(stillroom: Stillroom, task: str, tmp_path: Path):
    """With a real terminal: keys in, screen out, window size, and a verdict at the end."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, command("play", task, "--out", "out"))
    seen = b""

    def until(text: bytes, seconds: float = 30) -> None:
        nonlocal seen
        end = time.monotonic() + seconds
        while text not in seen and time.monotonic() < end:
            if select.select([master], [], [], 1)[0]:
                try:
                    seen += os.read(master, 65536)
                except OSError:
                    break
        before, found, seen = seen.partition(text)
        assert found, before.decode("utf-8", "replace")

    until(b"Leave the shell")  # keys typed this early wait for the shell
    os.write(master, b"sed -i 's/split(\" \")/split()/' words.py; echo do''ne\r")
    until(b"done\r\n")
    until(b"# ")
    os.write(master, b"sh -c 'echo star''ted; exec sleep 1000'\r")
    until(b"started\r\n")  # before that, it would be the shell that is interrupted
    os.write(master, b"\x03")
    until(b"# ")
    os.write(master, b"tty && stty size\r")
    until(b"/dev/pts/0\r\n")
    until(b"# ")
    os.write(master, b"exit\r")
    until(b"1 of 1 resolved")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(master)
    assert json.loads((tmp_path / "out" / "results.jsonl").read_text())["agent"] == "person"


def test_play_takes_keys_from_a_pipe_too(stillroom: Stillroom, task: str):
    done = stillroom("play", task, stdin="sed -i 's/split(\" \")/split()/' words.py\nexit\n")
    assert done.status == 0, done.err
    assert "1 of 1 resolved" in done.out


def test_doctor_says_what_works(stillroom: Stillroom):
    found = {line["name"]: line for line in stillroom("doctor", "--json").lines}
    assert set(found) == {"python", "git", "store", "image", "embedded", "docker"}
    assert found["embedded"]["ok"], found
    assert stillroom("doctor", "--reap").status == 0
