"""What a box cannot use up, and how it is told."""

import resource
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from sandbox.audit.conformance.bench import (
    Bench,
    background,
    eventually,
    expect,
    hold,
    python,
    refused,
    run,
    said,
    sh,
)
from sandbox.audit.conformance.registry import Group
from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box

GROUP = Group("limits")
_MIB = 128
_FORKS = """
import os, signal, time
children = []
try:
    while len(children) < 500:
        if (pid := os.fork()) == 0:
            time.sleep(60)
            os._exit(0)
        children.append(pid)
except BlockingIOError:
    pass
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print(len(children))
"""
_MANY_SMALL = """
for i in $(seq 50); do (v=xxxxxxxx; while [ ${#v} -lt 1500000 ]; do v=$v$v; done; sleep 60)& done
wait
"""
_BUSY = """
import os, resource, time
end = time.monotonic() + 2
for _ in range(2):
    if os.fork() == 0:
        while time.monotonic() < end:
            pass
        os._exit(0)
for _ in range(2):
    os.wait()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""
_TERMINALS = """
import os
held = []
try:
    while len(held) < 100:
        held.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError:
    pass
print(len(held))
"""
_FILL = """
import os, sys
total, path = int(sys.argv[1]), sys.argv[2]
fd, written = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644), 0
try:
    while written < total << 20:
        written += os.write(fd, b"x" * (1 << 18))
except OSError as e:
    print(e.errno, end=" ")
print(written >> 20, flush=True)
"""


def hog(box: Box, mib: int = 3 * _MIB, **options: Any) -> int | None:
    """A program that wants so much memory; its exit code."""
    script = f"head -c {mib}M /dev/zero | tail -n 1 > /dev/null"
    return run(box, "sh", "-c", script, **options).exit_code


@GROUP.check("memory")
def more_memory_than_allowed_kills_the_program_not_the_box(bench: Bench) -> None:
    """`limits.memory_mib`."""
    with bench.limited(memory_mib=_MIB) as box:
        expect(hog(box), 137, "exit code of a program that wants too much")
        expect(said(box, "echo", "usable"), "usable\n", "the box after it")


@GROUP.check("memory")
def small_programs_that_use_up_the_memory_are_no_fault_of_the_box(bench: Bench) -> None:
    """The kernel kills the largest process, which may be the first: a program ended, no more."""
    with bench.limited(memory_mib=_MIB) as box:
        with suppress(RuntimeFault):
            run(box, "sh", "-c", _MANY_SMALL, seconds=30)
        expect(box.lost(), False, "lost")


@GROUP.check("memory")
def what_is_written_to_shared_memory_counts(bench: Bench) -> None:
    """/dev/shm holds 64 MiB, and they are the box's memory."""
    with bench.limited(memory_mib=_MIB) as box:
        number, written = python(box, _FILL, "100", "/dev/shm/fill").split()
        expect((number, written), ("28", "64"), "error (28: no space left) and MiB written")
        hold(box.stats().memory_bytes > 60 << 20, f"it counts: {box.stats()}")


@GROUP.check("pids")
def a_fork_bomb_is_bounded_and_the_box_usable_after_it(bench: Bench) -> None:
    """`limits.pids`."""
    with bench.limited(pids=64) as box:
        found = int(python(box, _FORKS))
        hold(20 < found < 64, f"it gets to some forty processes, not {found}")
        expect(said(box, "echo", "usable"), "usable\n", "the box after it")


@GROUP.check("pids")
def a_fork_bomb_that_never_ends_dies_with_its_box(bench: Bench) -> None:
    """In a bounded time."""
    box = bench.limited(pids=64)
    began = time.monotonic()
    with box, suppress(RuntimeFault):
        run(box, "bash", "-c", "bomb() { bomb | bomb & }; bomb; sleep 60", seconds=2)
    hold(time.monotonic() - began < 40, f"it took {time.monotonic() - began:.0f} s")


@GROUP.check("pids")
def children_nobody_waits_for_do_not_use_up_the_process_limit(bench: Bench) -> None:
    """Orphans are reaped."""
    with bench.limited(pids=64) as box:
        sh(box, "for i in $(seq 128); do (true &); done")
        gone = eventually(lambda: "Z (zombie)" not in _states(box))
    hold(gone, "no process that has ended is left")


def _states(box: Box) -> str:
    return sh(box, "grep -h State /proc/[0-9]*/status || true")


@GROUP.check("cpus")
def a_box_gets_its_share_of_the_processors(bench: Bench) -> None:
    """`limits.cpus`: two programs that are busy for two seconds use one, of half a processor."""
    with bench.limited(cpus=0.5) as box:
        used = float(python(box, _BUSY))
    hold(used < 1.5, f"about one second is used, not {used:.2f}")


@GROUP.check("file")
def a_file_grows_to_its_limit_and_no_further(bench: Bench) -> None:
    """`limits.file_mib`."""
    with bench.limited(file_mib=1) as box:
        script = "head -c 3M /dev/zero > /tmp/file; stat -c %s /tmp/file"
        size = run(box, "sh", "-c", script).stdout
        expect(size, b"1048576\n", "bytes in the file")
        expect(said(box, "echo", "usable"), "usable\n", "the box after it")


@GROUP.check("open_files")
def a_process_opens_so_many_files_and_no_more(bench: Bench) -> None:
    """`limits.open_files`, which a program cannot raise."""
    with bench.limited(open_files=100) as box:
        expect(sh(box, "ulimit -n; ulimit -Hn"), "100\n100\n", "limit, hard limit")
        raised = run(box, "sh", "-c", "ulimit -Hn 200")
        hold(raised.exit_code != 0, "it cannot be raised")


@GROUP.check("terminals")
def so_many_terminals_can_be_open_and_no_more(bench: Bench) -> None:
    """`limits.terminals`."""
    with bench.limited(terminals=10) as box:
        found = int(python(box, _TERMINALS))
        hold(5 <= found <= 10, f"about ten, not {found}")
        box.open_pty(["true"]).close()


@GROUP.check("disk", "disk: watch")
def a_box_that_fills_the_disk_is_stopped_and_told(bench: Bench) -> None:
    """`limits.disk_mib`, measured: the words are there, the files too, and it is not lost."""
    with bench.limited(disk_mib=16, disk="watch") as box:
        result = None
        with suppress(RuntimeFault):
            # It goes on after the disk is full: only the box's end ends it.
            result = run(
                box, "sh", "-c", "head -c 100M /dev/zero > /tmp/fill; sleep 50", seconds=40
            )
        words = (result.limit if result else "") + box.reached()
        hold("disk" in words, f"the limit is told in words: {words!r}")
        expect(box.lost(), False, "lost")
        with refused("a program in it", RuntimeFault):
            run(box, "true")
        hold(next(iter(box.get("/tmp/fill"))), "its files can be read")


@GROUP.check("disk", "disk: watch")
def many_empty_files_count_too(bench: Bench) -> None:
    """`disk_mib`: each file counts 4 KiB at least."""
    script = "i=0; while :; do i=$((i+1)); mkdir /tmp/$i; for j in 0 1 2 3 4 5 6 7 8 9; do : > /tmp/$i/$j; done; done"
    with bench.limited(disk_mib=4, disk="watch") as box:
        result = None
        with suppress(RuntimeFault):
            result = run(box, "sh", "-c", script, seconds=50)
        words = (result.limit if result else "") + box.reached()
        hold("disk" in words, f"the limit is told in words: {words!r}")


@GROUP.check("disk: tmpfs")
def a_disk_in_memory_has_its_size(bench: Bench) -> None:
    """`disk="tmpfs"`: no space is left, and the box goes on."""
    with bench.limited(disk_mib=16, disk="tmpfs") as box:
        _fills_up(box)


@GROUP.check("disk: loop")
def a_disk_of_its_own_has_its_size(bench: Bench) -> None:
    """`disk="loop"`: no space is left, and the box goes on."""
    with bench.limited(disk_mib=16, disk="loop") as box:
        _fills_up(box)


def _fills_up(box: Box) -> None:
    number, written = python(box, _FILL, "64", "/root/fill").split()
    expect(number, "28", "the error of the writer (28: no space left)")
    hold(int(written) <= 16, f"16 MiB were written at most, not {written}")
    said(box, "rm", "/root/fill")
    expect(sh(box, "echo fine > /root/new; cat /root/new"), "fine\n", "the box after it")


@GROUP.check()
def a_way_to_hold_the_disk_limit_that_is_unknown_is_refused(bench: Bench) -> None:
    """`create` raises RuntimeFault for a spec that asks for what cannot be held."""
    able = bench.runtime.capabilities().disk
    for kind in ("watch", "tmpfs", "loop", "floppy"):
        if kind in able:
            continue
        limits = replace(bench.spec.limits, disk=cast("Any", kind))
        with refused(f"a box whose disk is held by `{kind}`", RuntimeFault):
            bench.box(limits=limits).destroy()


@GROUP.check()
def folders_in_memory_have_their_size_and_leave_no_change(bench: Bench) -> None:
    """`BoxSpec.tmpfs`: MiB; for everybody to write to; no part of the changes."""
    with bench.box(tmpfs={"/scratch": 4}) as box:
        kind = sh(box, "grep ' /scratch ' /proc/mounts | cut -d' ' -f3")
        expect(kind, "tmpfs\n", "kind of file system")
        number, written = python(box, _FILL, "16", "/scratch/fill").split()
        expect((number, written), ("28", "4"), "error (28: no space left) and MiB written")
        paths = [c.path for c in box.changes() if c.path.startswith("/scratch/")]
        expect(paths, [], "changes below it")


@GROUP.check("memory")
def reaching_the_memory_limit_is_told_once_in_words(bench: Bench) -> None:
    """`reached`, and `ExecResult.limit`; a program that ends well has none."""
    with bench.limited(memory_mib=_MIB) as box:
        expect(box.reached(), "", "reached, at first")
        result = run(box, "sh", "-c", f"head -c {3 * _MIB}M /dev/zero | tail -n 1 > /dev/null")
        hold("memory" in result.limit, f"the program's result tells it: {result.limit!r}")
        expect(run(box, "true").limit, "", "the next program's")
    with bench.limited(memory_mib=_MIB) as box:
        background(box, "sh", "-c", f"head -c {3 * _MIB}M /dev/zero | tail -n 1")
        hold(eventually(lambda: box.stats().oom_kills > 0, 30), "a program was killed for memory")
        _told_once(box, "memory")


@GROUP.check("pids")
def reaching_the_process_limit_is_told_once_in_words(bench: Bench) -> None:
    """`reached` and `ExecResult.limit`."""
    with bench.limited(pids=64) as box:
        result = run(box, "python3", "-c", _FORKS)
        hold("process" in result.limit, f"the program's result tells it: {result.limit!r}")
    with bench.limited(pids=64) as box:
        background(box, "python3", "-c", _FORKS)
        hold(eventually(lambda: box.stats().forks_refused > 0, 30), "a process was refused")
        hold(eventually(lambda: box.stats().processes < 10, 30), "the bomb ends by itself")
        _told_once(box, "process")


def _told_once(box: Box, word: str) -> None:
    words = box.reached()
    hold(word in words, f"`{word}` is among the words: {words!r}")
    expect(box.reached(), "", "reached, asked again")


@GROUP.check()
def a_program_has_the_limits_of_its_box_not_of_its_maker(bench: Bench) -> None:
    """The `ulimit` of whoever started the run does not reach into a box."""
    old = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, old[1]))
    try:
        with bench.another() as runtime, runtime.create(bench.spec) as box:
            expect(sh(box, "ulimit -s"), "8192\n", "KiB of stack")
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, old)
