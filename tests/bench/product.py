"""Our runtimes as subjects: nothing is used that a user would not get by default."""

import io
import os
import tarfile
import time
from contextlib import suppress
from typing import Any, Protocol

from sandbox.model.task import Limits
from sandbox.runtime.base import Box
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.spec import BoxSpec, Image
from tests.bench import clock as m
from tests.bench.clock import Clock, until_prompt

LIMITS = Limits(memory_mib=256, pids=64, cpus=2.0)
SECONDS = 120
PAYLOAD = os.urandom(100_000)
CHANGE_200 = """
set -- /usr/lib/python3*/*.py
i=0
while [ $i -lt 10 ]; do rm "$1"; shift; echo changed >> "$1"; shift; i=$((i + 1)); done
block=$(printf '%08192d' 0)
while [ $i -lt 190 ]; do
    mkdir -p /srv/changed/$((i % 9))
    echo "$block" > /srv/changed/$((i % 9))/$i
    i=$((i + 1))
done
"""
"""As an agent would leave it: 180 new files of 8 KiB, ten modified and ten deleted ones."""
CHANGED = 200
IN_A_ROW = 4
POOL_SECONDS = 120.0
WARM = 2


class Warmable(Protocol):
    """What the bench needs of a runtime; the Docker one is held to the same contract."""

    def create(self, spec: BoxSpec) -> Any: ...

    def close(self) -> None: ...


def spec_of(image: Image) -> BoxSpec:
    return BoxSpec(image=image, limits=LIMITS)


def true(box: Box) -> None:
    assert box.exec(["true"], seconds=SECONDS).exit_code == 0


class Product:
    """One of our runtimes, through everything the contract has."""

    def __init__(self, name: str, runtime: Warmable, image: Image) -> None:
        self.name = name
        self.runtime = runtime
        self._spec = spec_of(image)
        self._archive = payload_tar()

    def round(self, clock: Clock) -> None:
        began = time.perf_counter()
        with self.runtime.create(self._spec) as box:
            clock.note(m.CREATE, began)
            true(box)
            clock.note(m.FIRST, began)
            self._everything(box, clock)
        began = time.perf_counter()
        with self.runtime.create(self._spec) as box:
            true(box)
            over = time.perf_counter()
            box.destroy()
            clock.note(m.DESTROY, over)
            clock.note(m.LIFE, began)

    def close(self) -> None:
        self.runtime.close()

    def _everything(self, box: Box, clock: Clock) -> None:
        with clock.optional(m.EXEC):
            true(box)
        with clock.optional(m.PUT):
            box.put(self._archive, "/tmp")
        with clock.optional(m.GET):
            taken = sum(map(len, box.get("/tmp/payload")))
            assert taken > len(PAYLOAD)
        with clock.attempt(m.PTY):
            self._terminal(box, clock)
        done = box.exec(["sh", "-c", CHANGE_200], seconds=SECONDS)
        assert done.exit_code == 0, done.stderr
        with clock.optional(m.CHANGES):
            assert len(box.changes()) >= CHANGED
        with clock.attempt(m.FORK):
            self._fork(box, clock)
        with clock.attempt(m.RESET):
            began = time.perf_counter()
            box.reset()
            clock.note(m.RESET, began)
            true(box)
            clock.note(m.RESET_FIRST, began)

    def _terminal(self, box: Box, clock: Clock) -> None:
        began = time.perf_counter()
        pty = box.open_pty(["sh"])
        try:
            until_prompt(pty.fileno())
            clock.note(m.PTY, began)
        finally:
            pty.close()

    def _fork(self, box: Box, clock: Clock) -> None:
        began = time.perf_counter()
        with box.fork() as other:
            true(other)
            clock.note(m.FORK, began)


class Pooled:
    """The embedded runtime with boxes that are ready before they are asked for.

    It is full before it is asked, untimed: that is what a pool is. It fills up again while the
    round goes on.
    """

    name = "embedded, warm pool"

    def __init__(self, runtime: EmbeddedRuntime, image: Image) -> None:
        self._runtime = runtime
        self._spec = spec_of(image)
        runtime.warm(self._spec, WARM)

    def round(self, clock: Clock) -> None:
        self._fill()
        began = time.perf_counter()
        with self._runtime.create(self._spec) as box:
            clock.note(m.CREATE, began)
            true(box)
            first = clock.note(m.FIRST, began)
            with clock.optional(m.EXEC):
                true(box)
            self._fill()
            began = time.perf_counter()
            box.reset()
            clock.note(m.RESET, began)
            true(box)
            clock.note(m.RESET_FIRST, began)
            began = time.perf_counter()
            box.destroy()
            clock.add(m.LIFE, first + clock.note(m.DESTROY, began))
        self._fill()  # whoever is measured next should not pay for it

    def close(self) -> None:
        self._runtime.close()

    def _fill(self) -> None:
        assert self._runtime._pool.full(self._spec, POOL_SECONDS), "the pool does not fill up"


class InARow:
    """The embedded runtime when boxes are wanted faster than their blanks can be made.

    Two blanks are ordered ahead by default; the last of four in a row finds none.
    """

    name = f"embedded, {IN_A_ROW}th in a row"

    def __init__(self, runtime: EmbeddedRuntime, image: Image) -> None:
        self._runtime = runtime
        self._spec = spec_of(image)

    def round(self, clock: Clock) -> None:
        boxes = []
        try:
            for number in range(IN_A_ROW):
                began = time.perf_counter()
                boxes.append(self._runtime.create(self._spec))
                created = time.perf_counter()
                true(boxes[-1])
                if number == IN_A_ROW - 1:
                    clock.note(m.FIRST, began)
                    clock.add(m.CREATE, (created - began) * 1e3)
        finally:
            for box in boxes:
                with suppress(OSError):
                    box.destroy()

    def close(self) -> None:
        self._runtime.close()


def payload_tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo("payload")
        info.size = len(PAYLOAD)
        tar.addfile(info, io.BytesIO(PAYLOAD))
    return buffer.getvalue()
