"""What a box has become: `changes`, `fork`, `reset`, `freeze`, `kill_all`, `stats`."""

import time

from sandbox.audit.conformance.bench import (
    Bench,
    alive,
    background,
    dead,
    eventually,
    exists,
    expect,
    expect_list,
    hold,
    python,
    run,
    said,
    sh,
    sleeper,
)
from sandbox.audit.conformance.limits import hog
from sandbox.audit.conformance.registry import Group
from sandbox.audit.conformance.tars import Entry, make_tar, read_tar
from sandbox.runtime.base import Box, Change

GROUP = Group("state")
_COUNT = "i=0; while :; do i=$((i+1)); echo $i > /tmp/n.new; mv /tmp/n.new /tmp/n; sleep 0.01; done"
_EVERYTHING = """
cd /seeded
echo more >> file                            # modified
rm script                                    # deleted
rm -r folder; mkdir folder; echo x > folder/other    # replaced by another of the name
rm link; echo file > link                    # a link became a file
chmod 600 /etc/seeded                        # the mode alone
mkdir -p new/empty new/full; echo 1 > new/full/1; ln -s 1 new/full/2
mv old new/moved                             # renamed
chmod 700 kept                               # a folder's mode alone
echo 1 > kept/beside                         # something new in it
: > /tmp/passing; rm /tmp/passing            # no change at all
rm -r gone                                   # a folder with what was in it
rm tofolder; mkdir tofolder; : > tofolder/in
: > "$(printf 'odd\\nname \\377')"
"""
_WANTED = [
    Change("/etc/seeded", "modified"),
    Change("/seeded/file", "modified"),
    Change("/seeded/folder/file", "deleted"),
    Change("/seeded/folder/other", "added"),
    Change("/seeded/gone", "deleted"),
    Change("/seeded/kept", "modified"),
    Change("/seeded/kept/beside", "added"),
    Change("/seeded/link", "modified"),
    Change("/seeded/new", "added"),
    Change("/seeded/new/empty", "added"),
    Change("/seeded/new/full", "added"),
    Change("/seeded/new/full/1", "added"),
    Change("/seeded/new/full/2", "added"),
    Change("/seeded/new/moved", "added"),
    Change("/seeded/odd\nname \udcff", "added"),
    Change("/seeded/old", "deleted"),
    Change("/seeded/script", "deleted"),
    Change("/seeded/tofolder", "modified"),
    Change("/seeded/tofolder/in", "added"),
]


def changed(box: Box) -> list[Change]:
    """Without what making the box may have done, such as its working directory."""
    return [c for c in box.changes() if c.path.startswith(("/seeded", "/etc/seeded", "/tmp/"))]


@GROUP.check()
def a_new_box_has_no_changes(bench: Bench) -> None:
    """`changes`: what was made to run a box at all is none of them."""
    with bench.box(seeds=(bench.seed,)) as box:
        expect(box.changes(), [], "changes of a new box")
        sh(box, "cat /seeded/file /etc/passwd > /dev/null; ls -R /seeded > /dev/null")
        expect(box.changes(), [], "changes after reading")


@GROUP.check()
def changes_are_what_was_done(bench: Bench) -> None:
    """`changes`: added, modified, deleted, replaced, renamed; each once, sorted."""
    with bench.box(seeds=(bench.seed,)) as box:
        sh(box, _EVERYTHING)
        expect_list(changed(box), _WANTED, "changes")
        box.stop()
        expect_list(changed(box), _WANTED, "changes of the stopped box")


@GROUP.check()
def what_was_put_is_a_change(bench: Bench) -> None:
    """By whomever: `put` is like a program that writes."""
    with bench.box(seeds=(bench.seed,)) as box:
        box.put(
            make_tar([Entry(name="file", content=b"other"), Entry(name="x", content=b"x")]),
            "/seeded",
        )
        wanted = [Change("/seeded/file", "modified"), Change("/seeded/x", "added")]
        expect(changed(box), wanted, "changes")


@GROUP.check()
def places_that_are_no_files_are_no_changes(bench: Bench) -> None:
    """`changes`: /proc, /sys, /dev and folders in memory are no part of it."""
    with bench.box(tmpfs={"/scratch": 4}) as box:
        sh(
            box,
            "echo x > /dev/shm/x; echo x > /scratch/x; echo 1 > /proc/self/oom_score_adj || true",
        )
        found = [
            c for c in box.changes() if c.path.startswith(("/dev", "/proc", "/sys", "/scratch/"))
        ]
        expect(found, [], "changes there")


@GROUP.check()
def a_deep_folder_is_a_change_like_others(bench: Bench) -> None:
    """Deeper than any path that the kernel takes in one piece."""
    script = (
        "import os; os.chdir('/tmp')\nfor _ in range(1000): os.mkdir('folder'); os.chdir('folder')"
    )
    with bench.box() as box:
        python(box, script)
        expect(len([c for c in box.changes() if c.path.startswith("/tmp/folder")]), 1000, "changes")


@GROUP.check()
def a_fork_has_the_files_and_none_of_the_processes(bench: Bench) -> None:
    """`fork`: another box, with an id of its own."""
    with bench.box(seeds=(bench.seed,)) as box:
        sh(box, _EVERYTHING)
        sleeper(box)
        with box.fork() as twin:
            hold(twin.id != box.id, "it has an id of its own")
            expect_list(changed(twin), _WANTED, "its changes")
            expect(said(twin, "cat", "/seeded/file"), "seeded\nmore\n", "a file of it")
            seen = sh(twin, "cat /proc/[0-9]*/cmdline || true")
            hold("4242." not in seen, "no process came with it")
            expect(
                sh(twin, 'pwd; echo "$TASK"'), "/root\none two\n", "its directory and environment"
            )


@GROUP.check()
def a_fork_and_its_origin_go_their_own_ways(bench: Bench) -> None:
    """`fork`: what one writes the other does not see, and it outlives it."""
    box = bench.box()
    with box:
        sh(box, "echo common > /tmp/file")
        twin = box.fork()
    with twin:
        expect(said(twin, "cat", "/tmp/file"), "common\n", "a file, after its origin's end")
    with bench.box() as box:
        sh(box, "echo common > /tmp/file")
        with box.fork() as twin, twin.fork() as third:
            for one, word in ((box, "one"), (twin, "two"), (third, "three")):
                sh(one, 'echo "$1" > /tmp/file; echo "$1" > "/tmp/$1"', word)
            for one, word in ((box, "one"), (twin, "two"), (third, "three")):
                found = sh(one, "cat /tmp/file; ls /tmp")
                expect(found, f"{word}\nfile\n{word}\n", f"files of box {word}")
        expect(said(box, "cat", "/tmp/file"), "one\n", "a file, after its forks' end")


@GROUP.check()
def reset_makes_a_box_as_it_was_made(bench: Bench) -> None:
    """`reset`: every process and change gone; the box keeps its id."""
    with bench.box(seeds=(bench.seed,)) as box:
        name = box.id
        for _ in range(2):
            sh(box, _EVERYTHING)
            marker = sleeper(box)
            pty = box.open_pty(["cat"])
            box.reset()
            hold(not alive(marker), "no process is left")
            hold(pty.wait(10) is not None, "its terminals' programs have ended")
            pty.close()
            expect((box.id, box.changes()), (name, []), "id and changes")
            found = sh(box, 'cat file; pwd; echo "$TASK"', cwd="/seeded")
            expect(found, "seeded\n/seeded\none two\n", "a file, directory, environment")


@GROUP.check()
def a_stopped_box_can_be_reset(bench: Bench) -> None:
    """`reset`: also after its time was up."""
    with bench.box() as box:
        run(box, "sleep", "50", seconds=0.5)
        box.reset()
        expect(said(box, "echo", "fine"), "fine\n", "a program")
        expect(box.lost(), False, "lost")


@GROUP.check("freeze")
def a_frozen_box_stands_still_until_it_is_thawed(bench: Bench) -> None:
    """`freeze`, `thaw`: each harmless the second time."""
    with bench.box() as box:
        box.thaw()
        background(box, "sh", "-c", _COUNT)
        hold(eventually(lambda: _count(box) > 0), "a counter counts")
        box.freeze()
        box.freeze()
        stood = _count(box)
        hold(not eventually(lambda: _count(box) != stood, 1), "it stands still")
        box.thaw()
        box.thaw()
        hold(eventually(lambda: _count(box) > stood), "it goes on")
        expect(said(box, "echo", "fine"), "fine\n", "a program")


@GROUP.check("freeze")
def a_frozen_box_can_be_stopped_and_destroyed(bench: Bench) -> None:
    """As any other, and in no longer time."""
    with bench.box() as box:
        marker = sleeper(box)
        box.freeze()
        box.stop()
        hold(dead(marker), "its processes are gone")
    began = time.monotonic()
    with bench.box() as box:
        marker = sleeper(box)
        box.freeze()
    hold(not alive(marker), "its processes are gone")
    hold(time.monotonic() - began < 30, "in a bounded time")


def _count(box: Box) -> int:
    """The counter, read from outside; 0 while there is none."""
    try:
        return int(read_tar(box.get("/tmp/n"))["n"].content or b"0")
    except FileNotFoundError:
        return 0


@GROUP.check()
def killing_all_leaves_a_box_that_goes_on(bench: Bench) -> None:
    """`kill_all`: every program ends, terminals too; files stay, new ones can be started."""
    with bench.box() as box:
        sh(box, "echo kept > /tmp/file")
        marker = sleeper(box)
        pty = box.open_pty(["cat"])
        box.kill_all()
        hold(dead(marker), "no program is left")
        hold(pty.wait(10) is not None, "the terminal's program has ended")
        pty.close()
        expect(said(box, "cat", "/tmp/file"), "kept\n", "a file")
        expect(box.lost(), False, "lost")
        box.kill_all()


@GROUP.check()
def stats_are_of_this_box(bench: Bench) -> None:
    """`stats`: processes, terminals, disk, memory, processor time."""
    hungry = (
        "import time; held = bytearray(b'x') * (50 << 20); open('/tmp/held', 'w'); time.sleep(1000)"
    )
    with bench.box() as box:
        first = box.stats()
        hold(0 <= first.processes < 5, f"few processes at first: {first}")
        expect((first.terminals, first.oom_kills, first.forks_refused), (0, 0, 0), "at first")
        hold(first.disk_bytes < 1 << 20, f"hardly any disk at first: {first}")
        background(box, "python3", "-c", hungry)
        hold(eventually(lambda: exists(box, "/tmp/held"), 30), "it starts")
        sh(
            box,
            "head -c 5M /dev/urandom > /tmp/five; i=0; while [ $i -lt 200 ]; do i=$((i+1)); : > /tmp/f$i; done",
        )
        pty = box.open_pty(["cat"])
        found = box.stats()
        hold(found.processes >= first.processes + 2, f"two more processes: {found}")
        hold(found.memory_bytes > first.memory_bytes + (45 << 20), f"50 MiB more memory: {found}")
        hold(found.disk_bytes > (5 << 20) + 200 * 4096, f"5 MiB and 200 files more: {found}")
        hold(found.cpu_seconds > first.cpu_seconds, f"some time more: {found}")
        expect(found.terminals, 1, "terminals")
        pty.close()


@GROUP.check("memory")
def stats_count_who_was_killed_for_memory(bench: Bench) -> None:
    """`Stats.oom_kills`, since the box was made."""
    with bench.box() as box:
        hog(box, 3 * bench.spec.limits.memory_mib)
        hold(box.stats().oom_kills >= 1, f"one was: {box.stats()}")
        hog(box, 3 * bench.spec.limits.memory_mib)
        hold(box.stats().oom_kills >= 2, f"and another: {box.stats()}")


@GROUP.check()
def a_stopped_box_still_tells_what_changed(bench: Bench) -> None:
    """`changes` works after `stop`."""
    with bench.box() as box:
        sh(box, "echo x > /tmp/x")
        box.stop()
        expect([c.path for c in changed(box)], ["/tmp/x"], "changes")
