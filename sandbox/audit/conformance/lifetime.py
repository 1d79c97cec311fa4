"""How boxes begin and end, alone and in numbers."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from sandbox.audit.conformance.bench import (
    Bench,
    alive,
    dead,
    expect,
    hold,
    refused,
    run,
    said,
    see,
    sh,
    sleeper,
)
from sandbox.audit.conformance.registry import Group
from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box, Capabilities
from sandbox.runtime.store import Store

GROUP = Group("lifetime")


@GROUP.check()
def a_runtime_says_what_it_can_do(bench: Bench) -> None:
    """`name` and `capabilities`: the second time the same."""
    found = bench.runtime.capabilities()
    hold(isinstance(found, Capabilities), f"capabilities are Capabilities: {found!r}")
    expect(bench.runtime.capabilities(), found, "capabilities, asked again")
    hold(found.disk, "there is a way to hold the disk limit")
    hold(bench.runtime.name.isidentifier(), f"it has a plain name: {bench.runtime.name!r}")


@GROUP.check()
def an_image_can_be_made_ready_again_and_again(bench: Bench) -> None:
    """`ensure_image`."""
    bench.runtime.ensure_image(bench.image)
    bench.runtime.ensure_image(bench.image)
    with bench.box() as box:
        expect(said(box, "echo", "fine"), "fine\n", "a box of it")


@GROUP.check()
def destroying_twice_is_harmless(bench: Bench) -> None:
    """`destroy`, and `stop` of what is gone."""
    box = bench.box()
    box.destroy()
    box.destroy()
    box.stop()


@GROUP.check()
def a_destroyed_box_runs_nothing(bench: Bench) -> None:
    """Every verb that needs the box raises a RuntimeFault."""
    box = bench.box()
    box.destroy()
    verbs: dict[str, Any] = {
        "exec": lambda: run(box, "true"),
        "exec, trusted": lambda: run(box, "true", trusted=True),
        "open_pty": lambda: box.open_pty(["true"]),
        "changes": box.changes,
        "snapshot": lambda: box.snapshot(bench.scratch / "tar"),
        "fork": box.fork,
        "reset": box.reset,
        "stats": box.stats,
    }
    for name, verb in verbs.items():
        with refused(f"{name} of a destroyed box", RuntimeFault):
            verb()


@GROUP.check()
def boxes_have_ids_of_their_own(bench: Bench) -> None:
    """`Box.id`."""
    with bench.box() as one, bench.box() as two:
        hold(one.id != two.id, f"two boxes have two ids: {one.id}, {two.id}")


@GROUP.check()
def a_box_is_destroyed_when_its_block_fails(bench: Bench) -> None:
    """A box is a context manager, and hides no error."""
    made: list[Box] = []
    with refused("the block's own error", ZeroDivisionError), bench.box() as box:
        made.append(box)
        _ = 1 / 0
    with refused("a program in a destroyed box", RuntimeFault):
        run(made[0], "true")


@GROUP.check()
def no_process_outlives_its_box(bench: Bench) -> None:
    """`destroy`: daemons, sessions of their own, ignored signals."""
    with bench.box() as box:
        marker = f"4242.{time.time_ns()}"
        sh(box, f"trap '' HUP TERM INT; (setsid nohup sleep {marker} > /dev/null 2>&1 &)")
        see(marker)
    hold(not alive(marker), "when destroy returns, no process of the box is left")


@GROUP.check()
def stopping_kills_everything_and_keeps_the_files(bench: Bench) -> None:
    """`stop`, and what is refused after it."""
    with bench.box() as box:
        sh(box, "echo kept > /tmp/file")
        marker = sleeper(box)
        box.stop()
        hold(dead(marker), "no process of the box is left")
        hold(b"kept" in b"".join(box.get("/tmp/file")), "its files can be read")
        for what, trusted in (("a program", False), ("a trusted program", True)):
            with refused(what, RuntimeFault):
                run(box, "true", trusted=trusted)


@GROUP.check()
def a_box_is_lost_when_it_is_gone_but_not_when_it_was_stopped(bench: Bench) -> None:
    """`lost`."""
    with bench.box() as box:
        expect(box.lost(), False, "lost, while it runs")
        box.stop()
        expect(box.lost(), False, "lost, after it was stopped")
        box.destroy()
        expect(box.lost(), True, "lost, after it was destroyed")


@GROUP.check()
def a_box_that_is_destroyed_while_a_program_runs_is_lost(bench: Bench) -> None:
    """`lost`: for whoever runs the program, as soon as that fails."""
    marker = f"4242.{time.time_ns()}"
    with bench.box() as box, ThreadPoolExecutor(1) as pool:

        def lost() -> bool:
            with refused("a program", RuntimeFault):
                run(box, "sleep", marker)
            return box.lost()

        asked = pool.submit(lost)
        see(marker)
        box.destroy()
        expect(asked.result(), True, "lost, when the program failed")


@GROUP.check()
def what_runs_in_a_box_does_not_make_it_lost(bench: Bench) -> None:
    """`lost`: programs that kill everything, themselves, or process 1."""
    with bench.box() as box:
        run(box, "sh", "-c", "kill -KILL 1; kill -TERM 1; kill -KILL -1")
        expect(box.lost(), False, "lost")
        expect(said(box, "echo", "usable"), "usable\n", "the box after it")


@GROUP.check()
def twenty_boxes_at_once_from_eight_threads(bench: Bench) -> None:
    """A runtime is safe to use from several threads."""

    def live(number: int) -> str:
        with bench.box() as box:
            sh(box, f"echo {number} > /tmp/n", seconds=120)
            return said(box, "cat", "/tmp/n", seconds=120)

    with ThreadPoolExecutor(8) as pool:
        expect(list(pool.map(live, range(20))), [f"{n}\n" for n in range(20)], "answers")


@GROUP.check()
def twenty_boxes_live_at_one_time(bench: Bench) -> None:
    """Each answers."""
    with ThreadPoolExecutor(8) as pool:
        boxes = list(pool.map(lambda _: bench.box(), range(20)))
        try:
            answers = pool.map(lambda box: run(box, "true", seconds=120).exit_code, boxes)
            expect(list(answers), [0] * 20, "exit codes")
        finally:
            list(pool.map(lambda box: box.destroy(), boxes))


@GROUP.check()
def closing_a_runtime_destroys_its_boxes(bench: Bench) -> None:
    """`Runtime.close`; harmless the second time."""
    with bench.another() as other:
        box = other.create(bench.spec)
        marker = sleeper(box)
        other.close()
        other.close()
        hold(dead(marker), "no process of its boxes is left")
        with refused("a program in a box of a closed runtime", RuntimeFault):
            run(box, "true")


@GROUP.check()
def reaping_removes_the_boxes_of_the_dead_and_leaves_those_of_the_living(bench: Bench) -> None:
    """`reap`: by who holds a lease, and it says what it removed; the second time nothing is left."""
    lost, kept = f"4242.1{time.time_ns()}", f"4242.2{time.time_ns()}"
    with bench.box() as box, controller(bench, lost) as one, controller(bench, kept):
        one.send_signal(signal.SIGKILL)
        one.wait()
        bench.runtime.reap()
        hold(dead(lost), "the dead run's processes are gone")
        hold(alive(kept), "a living run's processes go on")
        expect(said(box, "echo", "alive"), "alive\n", "our own box")
        expect(bench.runtime.reap(), [], "what is left to be reaped")


@GROUP.check()
def a_store_does_not_reap_the_boxes_of_another(bench: Bench) -> None:
    """Whose owners cannot be seen from it."""
    with bench.box() as box:
        with bench.another(Store(bench.scratch / "store")) as other:
            other.reap()
        expect(said(box, "echo", "alive"), "alive\n", "a box of this store")


@GROUP.check()
def labels_change_nothing(bench: Bench) -> None:
    """`BoxSpec.labels` are for people who look at boxes from outside."""
    labels = {"task": "click-841", "odd name": "ä'\"$(x)\n", "empty": ""}
    with bench.box(labels=labels) as box:
        expect(said(box, "echo", "fine"), "fine\n", "a program")
        hold(
            "click-841" not in sh(box, "env; cat /proc/1/environ 2>/dev/null || true"),
            "they are not told",
        )


@GROUP.check()
def a_box_has_the_host_name_it_is_given(bench: Bench) -> None:
    """`BoxSpec.hostname`."""
    with bench.box(hostname="still-room") as box:
        expect(said(box, "uname", "-n"), "still-room\n", "host name")


@contextmanager
def controller(bench: Bench, marker: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has a box in which `sleep <marker>` runs."""
    module = "sandbox.audit.conformance.controller"
    command = [sys.executable, "-m", module, bench.kind, str(bench.store.root), marker]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    with subprocess.Popen(command, stdin=-1, stdout=-1, env=env) as other:
        assert other.stdin is not None  # noqa: S101 - for the type checker
        assert other.stdout is not None  # noqa: S101
        kind = pickle.dumps(bench.spec)
        with suppress(BrokenPipeError):
            other.stdin.write(b"%d\n%s" % (len(kind), kind))
            other.stdin.flush()
        try:
            expect(other.stdout.readline(), b"ready\n", "what another run says when it has a box")
            see(marker)
            yield other
        finally:
            other.communicate()
