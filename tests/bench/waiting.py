"""Does a program wait for somebody to type? Never said of one that does not; soon of one that does."""

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from sandbox.model.step import Run, Signal, Status
from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store
from sandbox.runtime.terminal import Terminal
from tests.bench import ours
from tests.bench.fresh import fresh

PATIENT = (
    "sleep 0.02",
    "sleep 0.25",
    "sleep 0.7",
    "for i in 1 2 3 4 5; do sleep 0.03; echo $i; done",
    "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done",
    "seq 1 100000 | sort -n | tail -n 1",
    "sleep 0.3 | cat",
    "cat < <(sleep 0.2; echo late)",
    "read -r line < <(sleep 0.3; echo late); echo $line",
    "read -r -t 0.2 line < <(sleep 0.4); true",
    "sleep 0.2 & wait",
    "(trap 'exit 0' TERM; sleep 0.3)",
    "timeout 0.3 tail -f /dev/null; true",
    "f=/tmp/f.$$.$RANDOM; mkfifo $f; (sleep 0.2; echo late > $f) & cat $f; rm $f; wait",
    "head -c 5000000 /dev/zero | sha256sum",
    "python3 -c 'import time; time.sleep(0.3)'",
    "python3 -c 'import select; select.select([], [], [], 0.3)'",
    """python3 -c 'import socket
listener = socket.create_server(("127.0.0.1", 0))
listener.settimeout(0.3)
try: listener.accept()
except TimeoutError: pass'""",
    """python3 -c 'import socket
one, other = socket.socketpair()
one.settimeout(0.3)
try: one.recv(1)
except TimeoutError: pass'""",
    "python3 -c 'sum(i * i for i in range(500000))'",
)
"""None of them ever reads from the terminal."""
JOBS = 8
_SECONDS = 240.0


def measure(
    kind: ours.Kind, store: Store, image: Image, runs: int, rounds: int
) -> dict[str, Any]:  # fmt: skip
    found: dict[str, Any] = fresh(look, kind, store, image, runs, rounds, seconds=_SECONDS)
    return found


def look(kind: ours.Kind, store: Store, image: Image, runs: int, rounds: int) -> dict[str, Any]:
    with ours.boxes(kind, store, image) as (box,), ExitStack() as stack:
        terminals = [stack.enter_context(ours.terminal(box)) for _ in range(JOBS)]
        commands = [PATIENT[number % len(PATIENT)] for number in range(runs)]
        random.Random(runs).shuffle(commands)
        with ThreadPoolExecutor(JOBS) as pool:
            parts = [commands[number::JOBS] for number in range(JOBS)]
            states = [state for part in pool.map(_all, terminals, parts) for state in part]
        told = Counter(state for _, state, _ in states)
        return {
            "runs": len(states),
            "states": {state.value: count for state, count in sorted(told.items())},
            "alarms": [command for command, state, _ in states if state is Status.AWAITING_INPUT],
            "failed": [f"{command}: {code}" for command, _, code in states if code][:5],
            "cat_ms": [_cat(terminals[0]) for _ in range(rounds)],
        }


def _all(terminal: Terminal, commands: list[str]) -> list[tuple[str, Status, int | None]]:
    return [(command, *_one(terminal, command)) for command in commands]


def _one(terminal: Terminal, command: str) -> tuple[Status, int | None]:
    """What is said of it; if it is said to be still going, it is ended for the next one."""
    seen = terminal.do(Run(command, seconds=60.0, on_timeout="keep"))
    if seen.status is not Status.EXITED:
        _end(terminal)
    return seen.status, seen.exit_code


def _cat(terminal: Terminal) -> float | None:
    """Milliseconds until it is said that it waits; None when that is not said."""
    began = time.perf_counter()
    seen = terminal.do(Run("cat", seconds=10.0, on_timeout="keep"))
    took = (time.perf_counter() - began) * 1e3
    _end(terminal)
    return round(took, 2) if seen.status is Status.AWAITING_INPUT else None


def _end(terminal: Terminal) -> None:
    for name in ("INT", "TERM", "KILL"):
        if terminal.do(Signal(name, seconds=5.0)).status is Status.EXITED:
            return
