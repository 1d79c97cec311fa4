"""Many terminals at one time: in 200 a program runs; in 100, one command follows the other."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from sandbox.model.step import Run, Signal, Status
from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store
from sandbox.runtime.terminal import Terminal
from tests.bench import ours
from tests.bench.fresh import Memory, fresh
from tests.bench.machine import MIB

BOXES = 4
PROGRAMS = ("sleep 1000", "sh -c 'while :; do echo tick; sleep 1; done'")
"""One that says nothing, one that says something every second."""
_OPENERS = 8
_SECONDS = 240.0


def measure_alive(store: Store, image: Image, count: int) -> dict[str, Any]:
    found: dict[str, Any] = fresh(alive, store, image, count, seconds=_SECONDS)
    return found


def measure_rate(
    kind: ours.Kind, store: Store, image: Image, sessions: int, commands: int
) -> dict[str, Any]:  # fmt: skip
    found: dict[str, Any] = fresh(rate, kind, store, image, sessions, commands, seconds=_SECONDS)
    return found


def alive(store: Store, image: Image, count: int) -> dict[str, Any]:
    """All of them have a program running; then each is interrupted, and answers."""
    with ours.boxes("embedded", store, image, BOXES) as made, ExitStack() as stack:
        with ours.terminal(made[0]) as first:  # what the first one costs is not the second one's
            ours.must(first.do(Run("true")))
        memory = Memory()
        began = time.perf_counter()
        terminals, states, grown = [], [], []
        for number in range(count):
            terminals.append(stack.enter_context(ours.terminal(made[number % BOXES])))
            states.append(_start(terminals[-1], number))
            grown.append(memory.grown())
        opened = time.perf_counter() - began
        errors: list[str] = []
        return {
            "wanted": count,
            "boxes": BOXES,
            "open_seconds": round(opened, 2),
            "running": states.count(Status.RUNNING),
            "states": {state.value: states.count(state) for state in sorted(set(states))},
            "mib_per_terminal": round(_each(grown) / MIB, 4),
            "answered": sum(_answers(terminal, errors) for terminal in terminals),
            "errors": errors[:5],
        }


def rate(
    kind: ours.Kind, store: Store, image: Image, sessions: int, commands: int
) -> dict[str, Any]:  # fmt: skip
    """Commands a second of so many threads, each with a terminal of its own; for each mode."""
    with ours.boxes(kind, store, image, BOXES) as made, ExitStack() as stack:
        with ThreadPoolExecutor(_OPENERS) as openers:
            terminals = list(
                openers.map(
                    lambda n: _opened(stack, ours.terminal(made[n % BOXES])), range(sessions)
                )
            )
        return {
            mode: _together(terminals, ours.true(mode), commands // sessions) for mode in ours.MODES
        }


def _together(terminals: list[Terminal], action: Run, each: int) -> dict[str, Any]:
    ready = threading.Barrier(len(terminals) + 1, timeout=_SECONDS)

    def work(terminal: Terminal) -> list[float]:
        ready.wait()
        return [_timed(terminal, action) for _ in range(each)]

    with ThreadPoolExecutor(len(terminals)) as pool:
        workers = [pool.submit(work, terminal) for terminal in terminals]
        ready.wait()
        began = time.perf_counter()
        times = [ms for worker in workers for ms in worker.result()]
        took = time.perf_counter() - began
    return {
        "sessions": len(terminals),
        "commands": len(times),
        "seconds": round(took, 3),
        "per_second": round(len(times) / took, 1),
        "ms": [round(ms, 2) for ms in sorted(times)[:: max(1, len(times) // 1000)]],
    }


def _timed(terminal: Terminal, action: Run) -> float:
    began = time.perf_counter()
    ours.must(terminal.do(action))
    return (time.perf_counter() - began) * 1e3


def _each(grown: list[int]) -> float:
    """Bytes of ours for one more. The first ones may get memory that was free before: it counts
    what the later ones took, if that is more."""
    first, later = len(grown) // 4, len(grown) - len(grown) // 4
    return max(grown[-1] / len(grown), (grown[-1] - grown[first]) / later)


def _opened(stack: ExitStack, terminal: Terminal) -> Terminal:
    return stack.enter_context(terminal)


def _start(terminal: Terminal, number: int) -> Status:
    command = PROGRAMS[number % len(PROGRAMS)]
    return terminal.do(Run(command, seconds=0.03, on_timeout="keep")).status


def _answers(terminal: Terminal, errors: list[str]) -> bool:
    ended = terminal.do(Signal("INT", seconds=10.0))
    seen = terminal.do(Run("echo here"))
    right = seen.status is Status.EXITED and seen.output == "here\n"
    if not right:
        errors.append(f"after INT: {ended.status}; then {seen.status}: {seen.output[:200]!r}")
    return right
