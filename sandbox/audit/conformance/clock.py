"""A clock of its own: what `BoxSpec.still` promises of every program, whichever way it was started."""

import json
import os
import tarfile
import time
from dataclasses import replace
from math import ceil
from pathlib import Path

from sandbox.audit.conformance.bench import (
    Bench,
    Unseen,
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
from sandbox.audit.conformance.tars import raw_tar
from sandbox.audit.conformance.terminals import read_all, terminal
from sandbox.audit.conformance.ways import AT, RAW, READ, SECOND, SHELL, STEP, WAYS, clocked
from sandbox.errors import RuntimeFault
from sandbox.runtime.embedded.still import UPTIME_SECONDS
from sandbox.runtime.spec import BoxSpec, Stillness

GROUP = Group("clock")
_GRAIN = SECOND // 20
"""The kernel dates files by its last tick, some milliseconds ago."""
_FILE = """
import json, os, time
before = time.time_ns()
with open("/tmp/written", "w") as f:
    f.write("x")
os.mkdir("/tmp/made")
os.symlink("x", "/tmp/linked")
after = time.time_ns()
found = {"before": before, "after": after}
for name in ("written", "made", "linked"):
    s = os.lstat("/tmp/" + name)
    found[name] = [s.st_mtime_ns, s.st_ctime_ns, s.st_atime_ns]
found["scanned"] = [e.stat().st_mtime_ns for e in os.scandir("/tmp") if e.name == "written"]
print(json.dumps(found))
"""
_HARM = """
import ctypes, os, signal
for number in range(1, 65):
    try:
        os.kill(1, number)
    except OSError:
        pass
libc = ctypes.CDLL(None, use_errno=True)
for request in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
    print(libc.ptrace(request, 1, 0, 0))
for name in ("mem", "fd/0", "environ", "maps"):
    try:
        path = "/proc/1/" + name
        os.readlink(path) if "fd" in name else open(path, "r+b" if name == "mem" else "rb").read(1)
        print("opened", path)
    except OSError:
        pass
"""
_SINCE_START = """
import time
with open("/proc/uptime") as f:
    print(time.time() - float(f.read().split()[0]))
"""
_HAMMER = """
import ctypes, os, time
number = {"x86_64": 228, "aarch64": 113}[os.uname().machine]
libc, found = ctypes.CDLL(None), ctypes.create_string_buffer(16)
for _ in range(3):
    os.fork()
open("/tmp/hammering", "w").close()
while True:
    libc.syscall(number, 0, found)
    os.stat("/tmp")
"""


@GROUP.check("still")
def every_way_into_a_box_leads_to_one_clock(bench: Bench) -> None:
    """`BoxSpec.still`, ticking: from its instant on, in order, however a program was started."""
    began = time.monotonic_ns()
    with clocked(bench) as box:
        # Its clock begins after what may have to be done first, such as the loading of an image.
        previous, way_before, last = AT, "the start", (opened := time.monotonic_ns())
        for way, read in WAYS.items():
            asked = time.monotonic_ns()
            found = read(box)
            latest = AT + time.monotonic_ns() - began
            hold(found >= previous, f"{way} reads no less than {way_before}: {found}, {previous}")
            hold(found <= latest + _GRAIN, f"{way} reads no more than has gone by: {found - AT}")
            previous, way_before = found, way
            last = asked
        hold(
            previous - AT >= (last - opened) // 2,
            f"it ticks as fast as monotonic time: {previous - AT} in {last - opened}",
        )


@GROUP.check("still")
def a_fixed_clock_stands_for_all(bench: Bench) -> None:
    """`Stillness.mode`: `fixed`."""
    with clocked(bench, "fixed") as box:
        found = {way: read(box) - AT for way, read in WAYS.items()}
        expect(found, dict.fromkeys(WAYS, 0), "nanoseconds after the instant")


@GROUP.check("still")
def a_clock_that_steps_moves_with_every_read(bench: Bench) -> None:
    """`Stillness.mode`: `step`; by `step_ns`, whoever reads."""
    twice = "import time; a = time.time_ns(); b = time.time_ns(); print(b - a)"
    with clocked(bench, "step") as box:
        previous = -1
        for way, read in WAYS.items():
            found = read(box) - AT
            hold(found > previous, f"{way} reads more than whoever read before: {found}")
            expect(found % STEP, 0, f"{way}: what is no whole step")
            previous = found
        expect(int(python(box, twice)), STEP, "between two reads")


@GROUP.check("still")
def waiting_takes_as_long_as_it_says(bench: Bench) -> None:
    """`Stillness`: monotonic time is never touched, also when the clock stands."""
    script = """
import json, threading, time
lock, found = threading.Lock(), []
lock.acquire()
for wait in (
    lambda: time.sleep(0.3),
    lambda: threading.Event().wait(0.3),
    lambda: lock.acquire(timeout=0.3),
):
    began = time.monotonic()
    wait()
    found.append(time.monotonic() - began)
print(json.dumps(found))
"""
    for mode in ("ticking", "fixed", "step"):
        with clocked(bench, mode) as box:
            for seconds in json.loads(python(box, script)):
                hold(0.29 < seconds < 10, f"{mode}: a wait of 0.3 seconds took {seconds}")
            began = time.monotonic()
            expect(run(box, "timeout", "0.5", "sleep", "60").exit_code, 124, f"{mode}: a timeout")
            hold(0.5 < time.monotonic() - began < 30, f"{mode}: a timeout of half a second")


@GROUP.check("still")
def files_are_dated_by_the_box_s_clock(bench: Bench) -> None:
    """What is written has the time at which it was written, of the box's clock."""
    with clocked(bench) as box:
        found = json.loads(python(box, _FILE))
        first, last = found["before"] - _GRAIN, found["after"]
        hold(first > AT - SECOND, f"it is about {AT} in the box: {found}")
        for name in ("written", "made", "linked"):
            for one in found[name]:
                hold(first <= one <= last, f"{name} is dated between {first} and {last}: {one}")
        expect(found["scanned"], found["written"][:1], "the time that a listing tells")
        shown = int(said(box, "stat", "-c", "%Y", "/tmp/written"))
        expect(shown, found["written"][0] // SECOND, "the time that stat tells")
        trusted = int(said(box, "stat", "-c", "%Y", "/tmp/written", trusted=True))
        expect(trusted, shown, "the time that it tells when it is trusted")
        said(box, "touch", "/tmp/later")
        newer = sh(box, "find /tmp -newer /tmp/written -type f; find /tmp -newermt @1800000000")
        expect(newer, "/tmp/later\n", "files that are newer")


@GROUP.check("still")
def files_keep_their_order_and_are_not_of_the_future_when_the_clock_stands(bench: Bench) -> None:
    """`make` compares them, and warns of a date that is still to come."""
    with clocked(bench, "fixed") as box:
        found = json.loads(python(box, _FILE))
        for name in ("written", "made", "linked"):
            for one in found[name]:
                hold(AT - 10 * SECOND <= one <= AT, f"{name} is of shortly before {AT}: {one}")


@GROUP.check("still")
def a_date_that_was_meant_stays(bench: Bench) -> None:
    """Of `touch -d`, in the past and the future; and of an archive that was put."""
    member = tarfile.TarInfo("old")
    member.mtime, member.size = 1_600_000_000, 1
    now = tarfile.TarInfo("now")
    now.mtime = AT // SECOND
    with clocked(bench) as box:
        sh(box, "touch -d @1500000000 /tmp/a; touch -d @2500000000 /tmp/b")
        box.put(raw_tar((member, b"x"), (now, b"")), "/tmp")
        found = sh(box, "stat -c %Y /tmp/a /tmp/b /tmp/old /tmp/now").split()
        wanted = ["1500000000", "2500000000", "1600000000", str(AT // SECOND)]
        expect(found, wanted, "dates that were meant")
        made = int(said(box, "stat", "-c", "%Z", "/tmp/old"))
        hold(0 <= made - AT // SECOND < 600, f"what was put came to be when it was put: {made}")


@GROUP.check("still", "snapshot")
def a_snapshot_has_the_box_s_dates_and_clock_and_a_new_box_goes_on_from_there(
    bench: Bench,
) -> None:
    """`Snapshot.clock_ns`; also with `fork`."""
    with clocked(bench) as box:
        sh(box, "sleep 0.3; echo x > /tmp/x; touch -d @1500000000 /tmp/old")
        shown = int(said(box, "stat", "-c", "%Y", "/tmp/x"))
        before = int(python(box, READ))
        taken = box.snapshot(bench.scratch / "tar")
        after = int(python(box, READ))
        hold(taken.clock_ns is not None, "a snapshot of such a box has its time")
        hold(before <= (taken.clock_ns or 0) <= after, f"{before} <= {taken.clock_ns} <= {after}")
        expect(_dates(taken.tar, "tmp/x", "tmp/old"), [shown, 1_500_000_000], "dates in the file")
        with box.fork() as other:
            hold(int(python(other, READ)) >= after, "a fork goes on from when it was made")
            expect(int(said(other, "stat", "-c", "%Y", "/tmp/x")), shown, "the date in a fork")
    with clocked(bench, snapshot=taken) as box:
        began = time.monotonic_ns()
        found = int(python(box, READ))
        hold(found >= (taken.clock_ns or 0), f"a new box goes on from the snapshot: {found}")
        expect(int(said(box, "stat", "-c", "%Y", "/tmp/x")), shown, "the date in a new box")
        box.reset()
        found = int(python(box, READ)) - (taken.clock_ns or 0)
        hold(0 <= found <= time.monotonic_ns() - began, f"a reset goes back to there: {found}")
    with bench.box() as box:
        expect(box.snapshot(bench.scratch / "none").clock_ns, None, "the clock of one without")


@GROUP.check("still")
def a_reset_starts_the_clock_anew(bench: Bench) -> None:
    """`reset`: back to how it was made."""
    with clocked(bench) as box:
        said(box, "sleep", "0.5")
        used = int(python(box, READ))
        began = time.monotonic_ns()
        box.reset()
        found = int(python(box, READ))
        hold(AT <= found <= AT + time.monotonic_ns() - began, f"anew: {found - AT}")
        hold(used - AT >= SECOND // 2, f"it had gone on before: {used - AT}")


@GROUP.check("still")
def a_box_goes_on_by_its_clock_after_everything_was_killed(bench: Bench) -> None:
    """`kill_all`, and a program that tries it itself."""
    with clocked(bench) as box:
        before = int(python(box, READ))
        run(box, "bash", "-c", "kill -KILL -1")
        between = int(python(box, RAW))
        box.kill_all()
        after = int(python(box, READ, trusted=True))
        hold(AT <= before <= between <= after, f"in order: {before}, {between}, {after}")


@GROUP.check("still", "freeze")
def a_box_that_was_paused_while_it_read_the_clock_goes_on(bench: Bench) -> None:
    """`freeze`, `thaw`, and what pauses a box by itself, at any moment."""
    with clocked(bench) as box:
        sh(box, 'python3 -c "$1" > /dev/null 2>&1 < /dev/null &', _HAMMER)
        hold(
            eventually(lambda: run(box, "test", "-e", "/tmp/hammering").exit_code == 0),
            "programs read the clock all the time",
        )
        for _ in range(10):
            box.freeze()
            box.thaw()
            box.changes()
        before = int(python(box, READ))
        box.freeze()
        box.thaw()
        hold(int(python(box, RAW)) > before, "the clock goes on")
        expect(box.lost(), False, "the box is lost")


@GROUP.check("still")
def programs_can_neither_end_nor_stop_nor_read_what_holds_the_clock(bench: Bench) -> None:
    """The first process: no signal reaches it, nobody traces it; nor can anybody set the clock."""
    setting = "import time; time.clock_settime(time.CLOCK_REALTIME, 1)"
    with clocked(bench) as box:
        for user in ("0:0", "1234:2345"):
            found = python(box, _HARM, user=user, cwd="/")
            expect(found, "-1\n-1", f"what {user} could do to process 1")
        hold(run(box, "python3", "-c", setting).exit_code != 0, "nobody sets the clock")
        hold(int(python(box, RAW)) < AT + 600 * SECOND, "the clock is as it was")
        expect(box.lost(), False, "the box is lost")


@GROUP.check("still")
def programs_have_no_more_rights_for_it(bench: Bench) -> None:
    """A clock takes rights to hold; what runs in the box has none of them."""
    script = "grep -E '^(Cap|NoNewPrivs|Uid|Gid|Groups)' /proc/self/status"
    with bench.box() as box:
        wanted = sh(box, script)
    with clocked(bench) as box:
        expect(sh(box, script), wanted, "rights")
        expect(sh(box, script, trusted=True), wanted, "rights of a trusted program")


@GROUP.check("still")
def the_machine_seems_to_have_started_a_day_before_the_box(bench: Bench) -> None:
    """Where the kernel lets it: /proc/uptime and btime of /proc/stat, which belong together."""
    began = time.monotonic()
    with clocked(bench) as box:
        up = float(said(box, "cat", "/proc/uptime").split()[0])
        elapsed = time.monotonic() - began
        if abs(up - float(Path("/proc/uptime").read_text().split()[0])) < 5:
            raise Unseen("this runtime leaves the uptime as it is")
        within = 0 <= up - UPTIME_SECONDS <= 1000 + elapsed
        hold(within, f"a day, and some minutes at most: {up}")
        line = said(box, "grep", "^btime", "/proc/stat")
        since = python(box, _SINCE_START)
        off = float(since) - int(line.split()[1])
        hold(-2 <= off <= 3, f"the clock, less the uptime, is when it started; off by {off}")


@GROUP.check("still", "cpus")
def a_box_has_as_many_processors_as_it_may_use(bench: Bench) -> None:
    """`limits.cpus`, rounded up, where the machine has so many."""
    there = len(os.sched_getaffinity(0))
    script = "import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))"
    for cpus in (1.0, 1.5):
        with clocked(bench, limits=replace(bench.spec.limits, cpus=cpus)) as box:
            wanted = min(ceil(cpus), there)
            for trusted in (False, True):
                found = python(box, script, trusted=trusted)
                if found == f"{os.cpu_count()} {there}" and wanted != there:
                    raise Unseen("this runtime shows the machine's processors")
                expect(found, f"{wanted} {wanted}", f"processors of a box with {cpus}")


@GROUP.check("still")
def a_clock_is_no_change(bench: Bench) -> None:
    """`changes`: whatever holds the clock is no part of them."""
    with clocked(bench) as box:
        said(box, "bash", "-c", SHELL, trusted=True)
        expect(box.changes(), [], "changes of a box with a clock")


@GROUP.check()
def a_box_without_a_clock_of_its_own_has_the_machine_s(bench: Bench) -> None:
    """`BoxSpec.still`: None."""
    with bench.box() as box:
        for way in ("a program", "a trusted program"):
            before = time.time_ns()
            found = WAYS[way](box)
            hold(before <= found <= time.time_ns(), f"{way} reads the machine's clock: {found}")


@GROUP.check()
def a_clock_that_cannot_be_held_is_refused(bench: Bench) -> None:
    """`Capabilities.still`: why; a box is never made without the clock it was to have."""
    if not bench.runtime.capabilities().still:
        raise Unseen("this runtime can hold a clock here")
    spec: BoxSpec = replace(bench.spec, still=Stillness(at_ns=AT))
    with refused("a box with a clock", RuntimeFault):
        bench.runtime.create(spec).destroy()


@GROUP.check()
def the_umask_is_the_stated_one(bench: Bench) -> None:
    """`BoxSpec.umask`: for programs, terminals, trusted programs, and other users'."""
    script = "umask; : > /tmp/file$1; stat -c %a /tmp/file$1"
    with bench.box(umask=0o027) as box:
        expect(sh(box, script, "1").split(), ["0027", "640"], "of a program")
        expect(sh(box, script, "2", trusted=True).split(), ["0027", "640"], "of a trusted one")
        other = sh(box, script, "3", user="1234:2345", cwd="/").split()
        expect(other, ["0027", "640"], "of another user's")
        with terminal(box, "sh", "-c", "umask") as pty:
            expect(read_all(pty).split(), [b"0027"], "on a terminal")


def _dates(tar: Path, *names: str) -> list[int]:
    with tarfile.open(tar, encoding="utf-8", errors="surrogateescape") as source:
        return [int(source.getmember(name).mtime) for name in names]
