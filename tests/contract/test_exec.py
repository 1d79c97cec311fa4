"""What `exec` promises, on every runtime."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box, BoxSpec, Runtime
from tests.contract.conftest import host_processes
from tests.support.waiting import eventually

EVERY_BYTE = bytes(range(256))
MB = 1_000_000


def sh(box: Box, script: str, *, seconds: float = 30) -> str:
    """What a script prints, after it has shown that it worked."""
    result = box.exec(["sh", "-c", script], seconds=seconds)
    assert result.exit_code == 0, result
    return result.stdout.decode()


def test_a_program_gives_its_output_and_exit_code(box: Box):
    result = box.exec(["sh", "-c", "echo out; echo err >&2; exit 7"], seconds=30)
    assert (result.exit_code, result.stdout, result.stderr) == (7, b"out\n", b"err\n")
    assert not result.truncated
    assert not result.timed_out


def test_a_program_that_a_signal_ends_exits_with_128_and_its_number(box: Box):
    assert box.exec(["sh", "-c", "kill -KILL $$"], seconds=30).exit_code == 137
    assert box.exec(["sh", "-c", "kill -TERM $$"], seconds=30).exit_code == 143


def test_exit_code_127_of_a_program_is_its_own(box: Box):
    assert box.exec(["sh", "-c", "exit 127"], seconds=30).exit_code == 127


def test_arguments_arrive_as_they_are(box: Box):
    words = ["", " a  b ", "$HOME", "new\nline", "ä", "'", '"', "\\", "-n"]
    result = box.exec(["printf", "<%s>", *words], seconds=30)
    assert result.stdout.decode() == "".join(f"<{word}>" for word in words)


def test_the_environment_is_the_stated_one_and_nothing_else(box: Box, spec: BoxSpec):
    result = box.exec(["env", "-0"], seconds=30, env={"EXTRA": "x=y", "TASK": "other"})
    pairs = (pair.partition("=") for pair in result.stdout.decode().split("\0") if pair)
    assert {name: value for name, _, value in pairs} == {
        **spec.environment,
        "TASK": "other",
        "EXTRA": "x=y",
    }


def test_the_image_s_environment_is_there(box: Box):
    assert sh(box, "echo $TINY") == "yes\n"


def test_it_starts_in_the_working_directory_or_where_it_is_told(box: Box):
    assert sh(box, "pwd") == "/root\n"
    assert box.exec(["sh", "-c", "pwd"], seconds=30, cwd="/tmp").stdout == b"/tmp\n"


def test_a_working_directory_that_the_image_lacks_is_made(runtime: Runtime, spec: BoxSpec):
    with runtime.create(replace(spec, workdir="/work dir/here")) as box:
        assert sh(box, "pwd; stat -c '%u:%g %a' .") == "/work dir/here\n0:0 755\n"


def test_it_is_root_on_a_host_called_box_with_umask_022(box: Box):
    assert sh(box, "id -u; id -g; uname -n; umask") == "0\n0\nbox\n0022\n"


def test_input_arrives_and_ends(box: Box):
    assert box.exec(["cat"], seconds=30, input=b"typed").stdout == b"typed"


def test_without_input_there_is_an_end_of_file(box: Box):
    assert box.exec(["cat"], seconds=30).exit_code == 0


def test_input_that_nobody_reads_does_not_matter(box: Box):
    assert box.exec(["true"], seconds=30, input=bytes(5 * MB)).exit_code == 0


def test_every_byte_passes_unchanged_in_both_directions(box: Box):
    data = EVERY_BYTE * (3 * MB // 256)
    result = box.exec(["cat"], seconds=60, input=data, output_bytes=4 * MB)
    assert result.stdout == data
    assert not result.truncated


def test_output_and_errors_stay_apart_when_both_are_large(box: Box):
    script = (
        "head -c 1000000 /dev/zero | tr '\\0' o & head -c 1000000 /dev/zero | tr '\\0' e >&2; wait"
    )
    result = box.exec(["sh", "-c", script], seconds=60)
    assert result.stdout == b"o" * MB
    assert result.stderr == b"e" * MB


def test_the_beginning_of_a_long_output_is_kept(box: Box):
    script = "printf start; head -c 3000000 /dev/zero; exit 5"
    result = box.exec(["sh", "-c", script], seconds=60, output_bytes=1000)
    assert result.exit_code == 5
    assert result.truncated
    assert result.stdout == b"start" + bytes(995)


def test_output_of_just_the_kept_size_is_not_truncated(box: Box):
    result = box.exec(["head", "-c", "1000", "/dev/zero"], seconds=30, output_bytes=1000)
    assert result.stdout == bytes(1000)
    assert not result.truncated


def test_it_ends_with_the_program_although_a_child_holds_its_output(box: Box):
    began = time.monotonic()
    result = box.exec(["sh", "-c", "sleep 30 & echo done"], seconds=20)
    assert time.monotonic() - began < 5
    assert (result.exit_code, result.stdout) == (0, b"done\n")


def test_it_ends_with_the_program_although_a_child_goes_on_printing(box: Box):
    script = "while :; do echo more; sleep 0.05; done & echo done"
    began = time.monotonic()
    result = box.exec(["sh", "-c", script], seconds=20)
    assert time.monotonic() - began < 5
    assert result.exit_code == 0
    assert b"done\n" in result.stdout


def test_a_program_that_closes_its_output_still_runs_to_its_end(box: Box):
    script = "exec >&- 2>&-; sleep 0.5; exit 9"
    assert box.exec(["sh", "-c", script], seconds=20).exit_code == 9


def test_background_processes_live_on_between_programs(box: Box):
    sh(box, "(sleep 0.3; echo later > /tmp/later) >/dev/null 2>&1 &")
    assert eventually(lambda: box.exec(["cat", "/tmp/later"], seconds=30).stdout == b"later\n")


def test_when_time_is_up_everything_in_the_box_is_killed(box: Box):
    marker = f"4242.{time.time_ns()}"
    script = f"echo begun; setsid sleep {marker} & sleep {marker}"
    began = time.monotonic()
    result = box.exec(["sh", "-c", script], seconds=1)
    assert time.monotonic() - began < 10
    assert result.timed_out
    assert result.exit_code is None
    assert result.stdout == b"begun\n"
    assert eventually(lambda: not host_processes(marker))
    with pytest.raises(RuntimeFault):
        box.exec(["true"], seconds=30)


def test_a_program_that_is_not_there_is_a_fault(box: Box):
    with pytest.raises(RuntimeFault, match="no-such-program"):
        box.exec(["no-such-program"], seconds=30)
    with pytest.raises(RuntimeFault, match="/no/such"):
        box.exec(["/no/such"], seconds=30)


def test_a_working_directory_that_is_not_there_is_a_fault(box: Box):
    with pytest.raises(RuntimeFault):
        box.exec(["true"], seconds=30, cwd="/no/such")


def test_programs_run_side_by_side_in_one_box(box: Box):
    def ask(number: int) -> bytes:
        return box.exec(["sh", "-c", f"sleep 0.1; echo {number}"], seconds=60).stdout

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, range(12))) == [f"{n}\n".encode() for n in range(12)]
