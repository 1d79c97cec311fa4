"""What `exec` promises."""

import time
from concurrent.futures import ThreadPoolExecutor

from sandbox.audit.conformance.bench import (
    SECONDS,
    Bench,
    alive,
    dead,
    eventually,
    expect,
    hold,
    refused,
    run,
    said,
    see,
    sh,
)
from sandbox.audit.conformance.registry import Group
from sandbox.errors import RuntimeFault

GROUP = Group("exec")
EVERY_BYTE = bytes(range(256))
MB = 1_000_000


@GROUP.check()
def a_program_gives_its_output_and_exit_code(bench: Bench) -> None:
    """`ExecResult`: the exit code, and the two streams apart."""
    with bench.box() as box:
        result = run(box, "sh", "-c", "echo out; echo err >&2; exit 7")
    found = (result.exit_code, result.stdout, result.stderr)
    expect(found, (7, b"out\n", b"err\n"), "exit code, output, errors")
    expect((result.truncated, result.timed_out, result.limit), (False, False, ""), "the rest")


@GROUP.check()
def a_program_that_a_signal_ends_exits_with_128_and_its_number(bench: Bench) -> None:
    """`ExecResult.exit_code`, as in a shell."""
    with bench.box() as box:
        expect(run(box, "sh", "-c", "kill -KILL $$").exit_code, 137, "exit code after SIGKILL")
        expect(run(box, "sh", "-c", "kill -TERM $$").exit_code, 143, "exit code after SIGTERM")
        expect(run(box, "sh", "-c", "kill -USR1 $$").exit_code, 138, "exit code after SIGUSR1")


@GROUP.check()
def exit_codes_126_and_127_of_a_program_are_its_own(bench: Bench) -> None:
    """A program that cannot be started raises; an exit code never stands for that."""
    with bench.box() as box:
        expect(run(box, "sh", "-c", "exit 127").exit_code, 127, "exit code")
        expect(run(box, "sh", "-c", "exit 126").exit_code, 126, "exit code")


@GROUP.check()
def arguments_arrive_as_they_are(bench: Bench) -> None:
    """`argv` is no shell's line: nothing in it is split, expanded or unquoted."""
    words = ["", " a  b ", "$HOME", "new\nline", "ä", "'", '"', "\\", "-n", "\udcff"]
    with bench.box() as box:
        wanted = "".join(f"<{word}>" for word in words)
        expect(said(box, "printf", "<%s>", *words), wanted, "arguments")


@GROUP.check()
def the_environment_is_the_stated_one_and_nothing_else(bench: Bench) -> None:
    """`BoxSpec.environment`, and `env` of exec on top; nothing of the host's or the engine's."""
    with bench.box() as box:
        text = said(box, "env", "-0", env={"EXTRA": "x=y", "TASK": "other"})
    pairs = (pair.partition("=") for pair in text.split("\0") if pair)
    wanted = {**bench.spec.environment, "TASK": "other", "EXTRA": "x=y"}
    expect({name: value for name, _, value in pairs}, wanted, "environment")


@GROUP.check()
def the_image_s_environment_is_there(bench: Bench) -> None:
    """`Image.env`."""
    with bench.box() as box:
        lines = said(box, "env").splitlines()
    for name, value in bench.image.env.items():
        hold(f"{name}={value}" in lines, f"{name}={value} is in the environment: {lines}")


@GROUP.check()
def the_search_for_a_program_goes_by_the_path_it_is_given(bench: Bench) -> None:
    """`env` may hold another PATH."""
    with bench.box() as box:
        sh(
            box,
            "mkdir -p /opt/own && printf '#!/bin/sh\\necho own\\n' > /opt/own/it && chmod 755 /opt/own/it",
        )
        found = said(box, "it", env={"PATH": "/opt/own:/usr/bin:/bin"})
    expect(found, "own\n", "output of the program in the added folder")


@GROUP.check()
def it_starts_in_the_working_directory_or_where_it_is_told(bench: Bench) -> None:
    """`BoxSpec.workdir` and `cwd`."""
    with bench.box() as box:
        expect(sh(box, "pwd"), "/root\n", "where it starts")
        expect(sh(box, "pwd", cwd="/tmp"), "/tmp\n", "where it was told")


@GROUP.check()
def a_working_directory_that_the_image_lacks_is_made(bench: Bench) -> None:
    """`BoxSpec.workdir`: made with the box, root's."""
    with bench.box(workdir="/work dir/here") as box:
        found = sh(box, "pwd; stat -c '%u:%g %a' .")
    expect(found, "/work dir/here\n0:0 755\n", "folder, owner, mode")


@GROUP.check()
def it_is_root_on_a_host_called_box_with_umask_022(bench: Bench) -> None:
    """`BoxSpec.user` and `BoxSpec.hostname` when nothing is said."""
    with bench.box() as box:
        expect(
            sh(box, "id -u; id -g; uname -n; umask"), "0\n0\nbox\n0022\n", "uid, gid, name, umask"
        )


@GROUP.check()
def a_program_can_run_as_another_user(bench: Bench) -> None:
    """`user` of exec: `uid:gid`, with no other group, and without root's rights."""
    script = "id -u; id -g; id -G; touch /root/x 2>/dev/null || echo refused; touch /tmp/mine && stat -c %u:%g /tmp/mine"
    with bench.box() as box:
        found = sh(box, script, user="1234:2345", cwd="/")
        expect(found.split(), ["1234", "2345", "2345", "refused", "1234:2345"], "as user 1234:2345")
        expect(sh(box, "id -u"), "0\n", "the next one's user")
        status = sh(box, "grep ^CapEff: /proc/self/status", user="1234:2345", cwd="/")
    expect(int(status.split()[1], 16), 0, "capabilities of somebody who is not root")


@GROUP.check()
def the_spec_s_user_is_who_programs_run_as_unless_told_otherwise(bench: Bench) -> None:
    """`BoxSpec.user`, for exec and terminals."""
    with bench.box(user="1234:2345", workdir="/") as box:
        expect(sh(box, "id -u; id -g"), "1234\n2345\n", "the spec's user")
        expect(sh(box, "id -u; id -g", user="0:0"), "0\n0\n", "another user")


@GROUP.check()
def input_arrives_and_ends(bench: Bench) -> None:
    """`input`, then an end of file; at once when there is none."""
    with bench.box() as box:
        expect(said(box, "cat", input=b"typed"), "typed", "what was read")
        expect(said(box, "cat"), "", "what was read without input")


@GROUP.check()
def input_that_nobody_reads_does_not_matter(bench: Bench) -> None:
    """A program may end before it has read its input."""
    with bench.box() as box:
        expect(run(box, "true", input=bytes(5 * MB)).exit_code, 0, "exit code")


@GROUP.check()
def every_byte_passes_unchanged_in_both_directions(bench: Bench) -> None:
    """`input` and `stdout` are bytes, whatever they are."""
    data = EVERY_BYTE * (3 * MB // 256)
    with bench.box() as box:
        result = run(box, "cat", input=data, output_bytes=4 * MB)
    hold(result.stdout == data, f"3 MB came back as they were: {len(result.stdout)} bytes")
    expect(result.truncated, False, "truncated")


@GROUP.check()
def output_and_errors_stay_apart_when_both_are_large(bench: Bench) -> None:
    """No stream waits for the other."""
    one = "head -c 1000000 /dev/zero | tr '\\0' "
    with bench.box() as box:
        result = run(box, "sh", "-c", f"{one} o & {one} e >&2; wait")
    hold(result.stdout == b"o" * MB, f"a million o: {len(result.stdout)} bytes")
    hold(result.stderr == b"e" * MB, f"a million e: {len(result.stderr)} bytes")


@GROUP.check()
def the_beginning_of_a_long_output_is_kept(bench: Bench) -> None:
    """`output_bytes` bounds what is kept, not what a program may print."""
    with bench.box() as box:
        script = "printf start; head -c 3000000 /dev/zero; exit 5"
        result = run(box, "sh", "-c", script, output_bytes=1000)
        exact = run(box, "head", "-c", "1000", "/dev/zero", output_bytes=1000)
    expect((result.exit_code, result.truncated), (5, True), "exit code, truncated")
    hold(result.stdout == b"start" + bytes(995), f"the first 1000 bytes: {result.stdout[:20]!r}")
    expect((len(exact.stdout), exact.truncated), (1000, False), "just the kept size")


@GROUP.check()
def it_ends_with_the_program_although_a_child_holds_its_output(bench: Bench) -> None:
    """`exec` ends when the program does, whoever still holds its pipes."""
    with bench.box() as box:
        began = time.monotonic()
        result = run(box, "sh", "-c", "sleep 50 & echo done", seconds=40)
        hold(time.monotonic() - began < 15, "a child that sleeps does not delay the result")
        expect((result.exit_code, result.stdout), (0, b"done\n"), "exit code, output")


@GROUP.check()
def it_ends_with_the_program_although_a_child_goes_on_printing(bench: Bench) -> None:
    """The same, with a pipe that is never silent."""
    script = "while :; do echo more; sleep 0.05; done & echo done"
    with bench.box() as box:
        began = time.monotonic()
        result = run(box, "sh", "-c", script, seconds=40)
    hold(time.monotonic() - began < 15, "a child that prints does not delay the result")
    expect((result.exit_code, b"done\n" in result.stdout), (0, True), "exit code, output")


@GROUP.check()
def a_program_that_closes_its_output_still_runs_to_its_end(bench: Bench) -> None:
    """The end of a pipe is not the end of a program."""
    with bench.box() as box:
        result = run(box, "sh", "-c", "exec >&- 2>&-; sleep 0.5; exit 9")
    expect(result.exit_code, 9, "exit code")


@GROUP.check()
def background_processes_live_on_between_programs(bench: Bench) -> None:
    """A box is one machine to everything that runs in it."""
    with bench.box() as box:
        sh(box, "(sleep 0.3; echo later > /tmp/later) >/dev/null 2>&1 &")
        hold(
            eventually(lambda: run(box, "cat", "/tmp/later").stdout == b"later\n"),
            "what was started in the background goes on",
        )


@GROUP.check()
def when_time_is_up_everything_in_the_box_is_killed(bench: Bench) -> None:
    """`seconds`: the result is there soon after, with what was printed; the box is stopped."""
    marker = f"4242.{time.time_ns()}"
    script = f"setsid sleep {marker} & echo begun; sleep {marker}"
    with bench.box() as box:
        began = time.monotonic()
        result = run(box, "sh", "-c", script, seconds=2)
        hold(time.monotonic() - began < 20, "it ends soon after its time is up")
        expect((result.exit_code, result.timed_out), (None, True), "exit code, timed out")
        expect(result.stdout, b"begun\n", "what it had printed")
        hold(dead(marker), "no process of the box is left")
        with refused("a program in a box whose time is up", RuntimeFault):
            run(box, "true")


@GROUP.check()
def other_boxes_go_on_when_the_time_of_one_is_up(bench: Bench) -> None:
    """Only what is in the box is killed."""
    marker = f"4242.{time.time_ns()}"
    with bench.box() as box, bench.box() as other:
        sh(other, f"sleep {marker} > /dev/null 2>&1 &")
        see(marker)
        run(box, "sleep", "50", seconds=0.5)
        hold(alive(marker), "a process of another box lives on")
        expect(said(other, "echo", "fine"), "fine\n", "another box")


@GROUP.check()
def a_program_that_is_not_there_is_a_fault(bench: Bench) -> None:
    """`exec` raises RuntimeFault when the program cannot be started, and names it."""
    with bench.box() as box:
        for name in ("no-such-program", "/no/such", "/etc"):
            try:
                run(box, name)
            except RuntimeFault as e:
                hold(name in str(e), f"the fault names the program {name}: {e}")
            else:
                raise AssertionError(f"{name} is no program, and there was no fault")
        expect(said(box, "echo", "fine"), "fine\n", "the box after it")


@GROUP.check()
def a_working_directory_that_is_not_there_is_a_fault(bench: Bench) -> None:
    """`cwd` is not made for a program."""
    with bench.box() as box, refused("a working directory that is not there", RuntimeFault):
        run(box, "true", cwd="/no/such")


@GROUP.check()
def programs_run_side_by_side_in_one_box(bench: Bench) -> None:
    """A box can be used from several threads, and answers each with its own."""
    with bench.box() as box, ThreadPoolExecutor(6) as pool:
        answers = pool.map(
            lambda n: sh(box, f"sleep 0.1; echo {n}", seconds=2 * SECONDS), range(12)
        )
        expect(list(answers), [f"{n}\n" for n in range(12)], "answers")
