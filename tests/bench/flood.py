"""Much output: how fast it is read, what is shown of it, and what it costs us in memory."""

import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pexpect

from sandbox.model.step import Run
from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store
from tests.bench import ours
from tests.bench.clock import TROUBLE
from tests.bench.fresh import Memory, fresh
from tests.bench.machine import MIB
from tests.bench.program import say

BARE = "bare pexpect loop"
_READ_BYTES = 256 << 10
_WARM = "seq 1 20000"
_SECONDS = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    name: str
    command: str
    printed: int
    lines: int
    rounds: int

    def expected(self, mode: str) -> int:
        """A terminal makes two bytes of each line's end."""
        return self.printed + (self.lines if mode == "tty" else 0)


def floods(part: int = 1) -> tuple[Flood, ...]:
    """Those that must be shown, or a part of each to see that it works."""
    numbers, pairs, line = 5_000_000 // part, (200 << 20) // part // 2, 100_000_000 // part
    return (
        Flood(
            name=f"seq 1 {numbers}",
            command=f"seq 1 {numbers}",
            printed=_digits(numbers) + numbers,
            lines=numbers,
            rounds=3,
        ),
        Flood(
            name=f"a line of {line // 1_000_000} MB",
            command=f"head -c {line} /dev/zero | tr '\\0' x; echo",
            printed=line + 1,
            lines=1,
            rounds=2,
        ),
        Flood(
            name=f"yes, {pairs * 2 >> 20} MiB",
            command=f"yes | head -c {pairs * 2}",
            printed=pairs * 2,
            lines=pairs,
            rounds=1,
        ),
    )


def measure(
    store: Store, image: Image, kinds: Sequence[ours.Kind], part: int
) -> dict[str, Any]:  # fmt: skip
    """Every subject's every round in a process of its own, one after the other."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    left_out: dict[str, str] = {}
    for flood in floods(part):
        found[flood.name] = {}
        for number in range(flood.rounds):
            subjects = [(BARE, "tty"), *((kind, mode) for kind in kinds for mode in ours.MODES)]
            random.Random(number).shuffle(subjects)
            for kind, mode in subjects:
                name = kind if kind == BARE else f"{kind}, {mode}"
                if (kind, mode, flood.rounds) == ("docker", "tty", 1):
                    left_out[f"{name}: {flood.name}"] = "it takes a minute; embedded shows the same"
                    continue
                say(f"{flood.name}: {name}")
                try:
                    if kind == BARE:
                        one = fresh(bare, flood.command, seconds=_SECONDS)
                    else:
                        one = fresh(shown, kind, store, image, flood, mode, seconds=_SECONDS)
                except TROUBLE as e:
                    left_out[f"{name}: {flood.name}"] = f"{type(e).__name__}: {e}"
                    continue
                found[flood.name].setdefault(name, []).append(one)
    return {"floods": found, "left_out": left_out}


def bare(command: str) -> dict[str, Any]:
    """Nothing but reading until the end: what pexpect and a terminal can do at best."""
    began, total = time.perf_counter(), 0
    child = pexpect.spawn("bash", ["-c", command], maxread=_READ_BYTES, timeout=_SECONDS)
    child.delaybeforesend = child.delayafterread = None
    try:
        with suppress(pexpect.EOF):
            while True:
                total += len(child.read_nonblocking(_READ_BYTES, _SECONDS))
        return {"seconds": round(time.perf_counter() - began, 4), "bytes": total}
    finally:
        child.close(force=True)


def shown(kind: ours.Kind, store: Store, image: Image, flood: Flood, mode: str) -> dict[str, Any]:
    tty = mode == "tty"
    with ours.boxes(kind, store, image) as (box,), ours.terminal(box) as terminal:
        ours.must(terminal.do(Run(_WARM, tty=tty)))
        memory = Memory()
        began = time.perf_counter()
        seen = ours.must(terminal.do(Run(flood.command, tty=tty)))
        took = time.perf_counter() - began
        return {
            "seconds": round(took, 4),
            "bytes": seen.total_bytes,
            "expected": flood.expected(mode),
            "shown": len(seen.output),
            "truncated": seen.truncated,
            "grown_mib": round(memory.peak() / MIB, 2),
        }


def _digits(last: int) -> int:
    """In all numbers from 1 to that."""
    total, first, width = 0, 1, 1
    while first <= last:
        total += (min(last, first * 10 - 1) - first + 1) * width
        first, width = first * 10, width + 1
    return total
