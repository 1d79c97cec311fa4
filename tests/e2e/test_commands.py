"""Each verb, as a person or a program uses it."""

import fcntl
import hashlib
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

from sandbox.formats.asciicast import read_cast
from sandbox.rollout.folder import RolloutFolder
from tests.e2e.conftest import Stillroom, command
from tests.support.waiting import eventually

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
    done = stillroom("check", task, "--quick", "--json")
    assert done.status == 0, done.err
    (told,) = done.lines
    assert [f["severity"] for f in told.pop("findings")] == ["info", "info"]
    assert told == {"task": task, "problems": [], "void": False, "advice": []}
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
    told, *steps_of = events
    assert (told["type"], told["seq"]) == ("task", 1)
    assert [(e["seq"], e["step"], e["type"]) for e in steps_of] == [
        (2, 1, "action"),
        (3, 1, "observation"),
        (4, 2, "action"),
        (5, 2, "observation"),
        (6, 3, "action"),
    ]
    assert [e["action"] for e in events if e["type"] == "action"] == ["run", "run", "submit"]
    steps = stillroom("show", "out", task)
    assert steps.status == 0
    assert "grep -c split words.py" in steps.out
    replayed = stillroom("show", "out", task, "--replay")
    assert replayed.status == 0, replayed.err
    assert f"/workspace/{task}\n1\n" in replayed.out
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
    "stale": (
        '-    return len(text.split("x"))\n+    return 0\n',
        0.0,
        "patch:3: this hunk fits no place",
    ),
    "torn": ("-    return", 0.0, "patch:4: the patch is cut here"),
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
    patch = head + "@@ -0,0 +1 @@\n+words.py\n\\ No newline at end of file\n"
    (tmp_path / "s.jsonl").write_text(json.dumps({"task": task, "patch": patch}) + "\n")
    done = stillroom("grade", "s.jsonl", "--json")
    assert done.status == 0, done.out
    assert "no folder in place of deep" in done.lines[0]["verdict"]["reason"]


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
    done = stillroom("check", task, "--quick")
    assert done.status == 0, done.out + done.err
    assert "already" in stillroom("lock", "task", task).out


class Person:
    """Sits at a real terminal with the command in it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execv(sys.executable, command(*arguments))
        self.seen = b""

    def size(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def types(self, data: bytes) -> None:
        """Looks while typing, as an emulator does: neither side may wait for the other."""
        while data:
            readable, writable, _ = select.select([self.master], [self.master], [], 10)
            assert readable or writable
            if readable:
                self.seen += os.read(self.master, 65536)
            if writable:
                data = data[os.write(self.master, data[:512]) :]

    def until(self, text: bytes, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < end:
            if select.select([self.master], [], [], 1)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    break
        before, found, self.seen = self.seen.partition(text)
        assert found, before.decode("utf-8", "replace")

    def status(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.mark.parametrize("runtime", ["embedded", pytest.param("docker", marks=pytest.mark.docker)])
def test_a_person_can_take_the_agents_place(
    stillroom: Stillroom, task: str, tmp_path: Path, runtime: str
):
    """With a real terminal: keys in, screen out, window size, and a verdict at the end."""
    person = Person(tmp_path, "play", task, "--out", "out", "--runtime", runtime)
    person.size(30, 90)
    person.until(b"Leave the shell")  # keys typed this early wait for the shell
    person.types(b"sed -i 's/split(\" \")/split()/' words.py; echo do''ne\r")
    person.until(b"done\r\n")
    person.until(b"# ")
    person.types(b"sh -c 'echo star''ted; exec sleep 1000'\r")
    person.until(b"started\r\n")  # before that, it would be the shell that is interrupted
    person.types(b"\x03")
    person.until(b"# ")
    person.types(b"tty && stty size\r")
    person.until(b"/dev/pts/0\r\n30 90\r\n")
    person.until(b"# ")
    person.size(50, 120)
    recording = tmp_path / "out" / "rollouts" / task / "0" / "terminal.cast"
    assert eventually(lambda: '"r", "120x50"' in recording.read_text())
    person.types(b"stty size\r")
    person.until(b"50 120\r\n")
    paste = b"".join(b"%05d %s\n" % (i, b"x" * 90) for i in range(1024))
    person.types(b"stty -echo; echo rea''dy; cat > /tmp/file; stty echo; md5sum < /tmp/file\r")
    person.until(b"ready\r\n")
    person.types(paste + b"\x04")
    person.until(hashlib.md5(paste, usedforsecurity=False).hexdigest().encode())
    person.types(b"exit\r")
    person.until(b"1 of 1 resolved")
    assert person.status() == 0
    os.close(person.master)
    assert json.loads((tmp_path / "out" / "results.jsonl").read_text())["agent"] == "person"
    check_what_was_recorded(stillroom, task, recording)


def check_what_was_recorded(stillroom: Stillroom, task: str, recording: Path) -> None:
    begin, end = RolloutFolder(recording.parent).read_events()
    assert (begin["type"], begin["what"], begin["rows"], begin["cols"]) == (
        "person",
        "begin",
        30,
        90,
    )
    assert (end["what"], end["exit_code"]) == ("end", 0)
    events = read_cast(recording).events
    shown = "".join(e.data for e in events if e.code == "o").encode()
    assert (end["bytes"], end["sha256"]) == (len(shown), hashlib.sha256(shown).hexdigest())
    assert [e.data for e in events if e.code == "m"] == ["begin", "end"]
    replayed = stillroom("show", "out", task, "--replay")
    assert replayed.status == 0
    assert "50 120\n" in replayed.out


def test_a_person_whose_terminal_goes_away_is_judged_all_the_same(
    stillroom: Stillroom, task: str, tmp_path: Path
):
    person = Person(tmp_path, "play", task, "--out", "out")
    person.until(b"Leave the shell")  # the instruction has such a sign, too
    person.until(b"# ")
    person.types(b"sed -i 's/split(\" \")/split()/' words.py; echo do''ne; sleep 1000\r")
    person.until(b"done\r\n")
    os.close(person.master)
    assert person.status() == 0
    result = json.loads((tmp_path / "out" / "results.jsonl").read_text())
    assert result["verdict"]["resolved"]
    assert result["ending"] == "submitted"


def test_a_person_s_terminal_is_given_back_when_play_is_told_to_end(task: str, tmp_path: Path):
    person = Person(tmp_path, "play", task, "--out", "out")
    before = termios.tcgetattr(person.master)
    person.until(b"Leave the shell")
    person.until(b"# ")
    assert termios.tcgetattr(person.master) != before
    person.types(b"printf '\\033[?1049h'; echo do''ne\r")
    person.until(b"done\r\n")
    os.kill(person.pid, signal.SIGTERM)
    person.until(b"\x1b[?1049l")
    person.until(b"error[interrupted]")
    assert termios.tcgetattr(person.master) == before
    assert person.status() == 130
    os.close(person.master)


def test_play_takes_keys_from_a_pipe_too(stillroom: Stillroom, task: str):
    done = stillroom("play", task, stdin="sed -i 's/split(\" \")/split()/' words.py")
    assert done.status == 0, done.err
    assert "1 of 1 resolved" in done.out


def test_doctor_says_what_works(stillroom: Stillroom):
    found = {line["name"]: line for line in stillroom("doctor", "--json").lines}
    assert set(found) == {"python", "git", "store", "image", "embedded", "docker"}
    assert found["embedded"]["ok"], found
    assert stillroom("doctor", "--reap").status == 0
