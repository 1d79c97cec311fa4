"""Boxes that are made before they are asked for: `warm`."""

import time
from dataclasses import replace

from sandbox.audit.conformance.bench import Bench, eventually, expect, hold, run, said, sh
from sandbox.audit.conformance.registry import Group
from sandbox.runtime.base import Runtime

GROUP = Group("warm")
_AGE = "cut -d')' -f2 /proc/1/stat | cut -d' ' -f21; getconf CLK_TCK 2>/dev/null || echo 100"


@GROUP.check()
def warm_boxes_are_as_new(bench: Bench) -> None:
    """One that was used is never given out again, and has what its spec says."""
    with bench.another() as runtime:
        runtime.warm(bench.spec, 2)
        for _ in range(5):
            with runtime.create(bench.spec) as box:
                found = sh(
                    box, 'ls -A /tmp; cat /etc/mark 2>/dev/null; pwd; echo "$TASK"; uname -n'
                )
                expect(found, "/root\none two\nbox\n", "a new box")
                sh(box, "echo mine > /tmp/mine; echo mine > /etc/mark")


@GROUP.check()
def warm_boxes_are_used(bench: Bench) -> None:
    """A box that is asked for after a while was there before it was asked for."""
    with bench.another() as runtime:
        runtime.warm(bench.spec, 1)
        hold(
            eventually(lambda: _was_there(bench, runtime), 60),
            "sooner or later a box comes from the pool",
        )


@GROUP.check()
def a_box_of_another_spec_does_not_come_from_the_pool(bench: Bench) -> None:
    """The pool's boxes are of its spec; others are made as ever."""
    with bench.another() as runtime:
        runtime.warm(bench.spec, 1)
        other = replace(bench.spec, hostname="other", env={"TASK": "three"})
        with runtime.create(other) as box:
            expect(
                sh(box, 'uname -n; echo "$TASK"'),
                "other\nthree\n",
                "the other's name and environment",
            )


@GROUP.check()
def warm_boxes_go_with_their_runtime(bench: Bench) -> None:
    """`close`; and none is kept when none is wanted."""
    with bench.another() as runtime:
        runtime.warm(bench.spec, 2)
        runtime.warm(bench.spec, 0)
        with runtime.create(bench.spec) as box:
            expect(run(box, "true").exit_code, 0, "exit code")
    expect(bench.runtime.reap(), [], "what is left to be reaped")


def _was_there(bench: Bench, runtime: Runtime) -> bool:
    """Is the first process of the box we get older than our wish?"""
    asked = time.clock_gettime(time.CLOCK_BOOTTIME)
    with runtime.create(bench.spec) as box:
        ticks, each = said(box, "sh", "-c", _AGE).split()
    return int(ticks) / int(each) < asked - 0.05
