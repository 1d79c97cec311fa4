"""The shipped fake keeps what of a runtime's promises it can keep without running anything."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import RuntimeFault
from sandbox.formats.digest import Entry
from sandbox.model.step import Keys, Run, Status
from sandbox.runtime.base import ExecResult, Runtime
from sandbox.runtime.fake import NO_IMAGE, Call, FakeBox, FakeRuntime, Reply, no_reply, said
from sandbox.runtime.spec import BoxSpec, Stillness
from sandbox.runtime.tarball import pack, read
from sandbox.runtime.terminal import Terminal
from tests.support.homes import a_seed
from tests.support.waiting import eventually

SPEC = BoxSpec(image=NO_IMAGE, workdir="/work")


def a_box(reply: Reply = no_reply) -> FakeBox:
    return FakeRuntime(reply).create(SPEC)


def a_terminal(box: FakeBox) -> Terminal:
    return Terminal(box, cwd="/work", command_seconds=30, output_bytes=10_000)


def echo(box: FakeBox, call: Call) -> ExecResult | None:
    """A reply for the commands that these tests type."""
    del box
    match call.command.split(" ", 1):
        case ["echo", words]:
            return said(words + "\n")
        case ["fail"]:
            return said("no\n", 3, errors="why\n")
        case ["hang"]:
            return said("started\n", None)
        case ["flood"]:
            return said("x" * 500_000)
        case ["where"]:
            return said(call.cwd)
        case ["bug"]:
            raise ZeroDivisionError("in the reply")
        case _:
            return None


def got(box: FakeBox, path: str) -> list[Entry]:
    return list(read(box.get(path), max_bytes=1 << 20, max_files=1000))


def test_it_is_a_runtime():
    runtime: Runtime = FakeRuntime()
    assert (runtime.name, runtime.reap()) == ("fake", [])


def test_a_program_gets_the_reply_s_answer_and_is_remembered():
    box = a_box(lambda _, call: said(call.input.decode(), 7) if call.argv[0] == "cat" else None)
    done = box.exec(["cat", "-"], seconds=5, input=b"typed", env={"A": "1"}, cwd="/x")
    assert (done.exit_code, done.stdout, done.truncated) == (7, b"typed", False)
    assert box.calls == [
        Call(argv=("cat", "-"), cwd="/x", env={"A": "1"}, input=b"typed", seconds=5)
    ]


def test_a_program_nobody_answers_for_is_not_found_and_says_so():
    done = a_box().exec(["pytest"], seconds=5)
    assert done.exit_code == 127
    assert b"no answer" in done.stderr


def test_the_beginning_of_a_long_output_is_kept():
    done = a_box(lambda *_: said("abcdef", 0)).exec(["x"], seconds=5, output_bytes=4)
    assert (done.stdout, done.truncated) == (b"abcd", True)


def test_when_time_is_up_the_box_is_stopped():
    box = a_box(lambda *_: said("", None))
    assert box.exec(["sleep"], seconds=1).timed_out
    with pytest.raises(RuntimeFault):
        box.exec(["true"], seconds=1)


def test_files_come_from_seeds_and_from_put_and_can_be_had_again(tmp_path: Path):
    seed = a_seed(tmp_path, {"work/a": b"1", "etc/b": b"2"})
    box = FakeRuntime().create(BoxSpec(image=NO_IMAGE, seeds=(seed,), workdir="/work"))
    box.put(pack([Entry("src/run", "exec", b"#!"), Entry("src/l", "link", b"run")]), "/work")
    assert got(box, "/work/a") == [Entry("a", "file", b"1")]
    assert got(box, "/work/src") == [
        Entry("src/l", "link", b"run"),
        Entry("src/run", "exec", b"#!"),
    ]
    assert [e.path for e in got(box, "/")] == ["etc/b", "work/a", "work/src/l", "work/src/run"]
    with pytest.raises(FileNotFoundError):
        box.get("/work/sr")


@given(st.dictionaries(st.sampled_from(["a", "b/c", "b/d", "e/f/g"]), st.binary(max_size=9)))
def test_what_is_put_is_got(files):
    box = a_box()
    entries = [Entry(name, "file", data) for name, data in sorted(files.items())]
    box.put(pack(entries), "/top/x")
    if files:
        found = got(box, "/top/x")
        assert [Entry(e.path.removeprefix("x/"), e.kind, e.data) for e in found] == entries


def test_rm_and_test_work_on_the_files():
    box = a_box()
    box.write("/work/src/a", b"")
    box.write("/work/src2/a", b"")
    assert box.exec(["test", "-d", "/work/src"], seconds=5).exit_code == 0
    assert box.exec(["rm", "-rf", "--", "/work/src", "/none"], seconds=5).exit_code == 0
    assert box.exec(["test", "-d", "/work/src"], seconds=5).exit_code == 1
    assert list(box.files) == ["/work/src2/a"]


def test_a_stopped_box_can_be_read_and_a_destroyed_one_cannot():
    runtime = FakeRuntime()
    box = runtime.create(SPEC)
    box.write("/a", b"1")
    box.stop()
    assert got(box, "/a") == [Entry("a", "file", b"1")]
    for gone in (lambda: box.open_pty(["bash"]), lambda: box.put(pack([]), "/")):
        with pytest.raises(RuntimeFault):
            gone()
    runtime.close()
    box.destroy()
    with pytest.raises(RuntimeFault):
        got(box, "/a")


def test_the_terminal_runs_commands_on_it():
    with a_box(echo) as box, a_terminal(box) as terminal:
        seen = terminal.do(Run("echo hello world"))
        assert (seen.output, seen.exit_code, seen.status) == ("hello world\n", 0, Status.EXITED)
        failed = terminal.do(Run("fail"))
        assert (failed.output, failed.exit_code) == ("no\nwhy\n", 3)
        assert terminal.do(Run("echo again")).output == "again\n"
        assert terminal.do(Run("nonsense")).exit_code == 127
    assert [c.command for c in box.calls if c.typed] == [
        "echo hello world", "fail", "echo again", "nonsense",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command", ["echo a\nb 'c' \"d\" $e \\", "echo " + "long " * 5000, "echo ä\udcff"]
)
def test_commands_arrive_as_they_were_meant(command: str):
    with a_box(lambda *_: said()) as box, a_terminal(box) as terminal:
        assert terminal.do(Run(command)).exit_code == 0
    assert box.calls[-1].command == command


def test_the_terminal_s_folder_is_kept():
    with a_box(echo) as box, a_terminal(box) as terminal:
        assert terminal.do(Run("cd src/../deep")).cwd == "/work/deep"
        assert terminal.do(Run("where")).output == "/work/deep"
        assert terminal.do(Run("cd /")).cwd == "/"


def test_a_command_that_runs_on_is_interrupted():
    with a_box(echo) as box, a_terminal(box) as terminal:
        seen = terminal.do(Run("hang", 0.05))
        assert (seen.status, seen.exit_code, seen.output) == (Status.TIMED_OUT, 130, "started\n")
        assert terminal.do(Run("echo fine")).output == "fine\n"


def test_typed_keys_start_a_program_that_c_c_ends():
    with a_box(echo) as box, a_terminal(box) as terminal:
        seen = terminal.do(Keys("hang\n", 5))
        assert (seen.status, seen.output) == (Status.RUNNING, "started\n")
        terminal.do(Keys("\x03", 0.05))
        assert terminal.do(Run("echo fine")).output == "fine\n"


def test_a_shell_that_exits_is_replaced():
    with a_box(echo) as box, a_terminal(box) as terminal:
        seen = terminal.do(Run("exit 5"))
        assert (seen.status, seen.exit_code) == (Status.RESTARTED, 5)
        assert terminal.do(Run("echo fine")).output == "fine\n"


def test_a_flood_is_cut_to_head_and_tail():
    with a_box(echo) as box, a_terminal(box) as terminal:
        seen = terminal.do(Run("flood"))
        assert (seen.truncated, seen.total_bytes, seen.exit_code) == (True, 500_000, 0)
        assert len(seen.output) < 11_000


def test_an_error_in_the_reply_is_not_hidden():
    with a_box(echo) as box, a_terminal(box) as terminal, pytest.raises(ZeroDivisionError):
        terminal.do(Run("bug"))


def test_a_box_that_is_stopped_under_the_terminal_is_gone():
    with a_box(echo) as box, a_terminal(box) as terminal:
        box.stop()
        assert terminal.do(Run("echo x")).status is Status.SHELL_LOST
        assert terminal.do(Run("echo x")).status is Status.SHELL_LOST


def test_a_terminal_leaves_no_file_descriptor_behind():
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with a_box(echo) as box, a_terminal(box):
        pass  # the first one opens what all of them share
    before = descriptors()
    for _ in range(3):
        with a_box(echo) as box, a_terminal(box) as terminal:
            terminal.do(Run("exit 1"))
    assert eventually(lambda: descriptors() <= before)


def test_a_box_with_a_clock_of_its_own_tells_it_and_keeps_it_in_a_snapshot(tmp_path: Path):
    still = Stillness(at_ns=1_715_774_400 * 10**9)
    box = FakeRuntime().create(replace(SPEC, still=still))
    assert box.exec(["date", "+%s"], seconds=5).stdout == b"1715774400\n"
    told = json.loads(box.exec(["/.stillroom/still", "probe", "1", "2"], seconds=5).stdout)
    assert (told["raw_time"], told["child"]) == (still.at_ns, still.at_ns)
    assert box.snapshot(tmp_path / "tar").clock_ns == still.at_ns
    with a_terminal(box) as terminal:
        assert terminal.do(Run("date +%s")).output == "1715774400\n"


def test_a_box_on_the_machine_s_clock_tells_no_time(tmp_path: Path):
    assert a_box().exec(["/.stillroom/still", "probe", "1", "2"], seconds=5).exit_code == 127
    assert a_box().snapshot(tmp_path / "tar").clock_ns is None
