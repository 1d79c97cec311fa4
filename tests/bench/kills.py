"""A controller is killed without warning: how long until nothing of its boxes is left?"""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.spec import BoxSpec, Image
from sandbox.runtime.store import Store
from tests.bench import machine
from tests.bench.product import spec_of
from tests.support.leftovers import leftovers

BOXES, CONTAINERS = 20, 3
_POLL_SECONDS = 0.005
_LONGEST_SECONDS = 30.0
_ROOT = str(Path(__file__).parents[2])


def embedded(store: Store, image: Image, *, boxes: int = BOXES) -> dict[str, Any]:
    """One kill. Milliseconds until nothing of the boxes is there (processes, cgroups), until
    nothing at all is (the process that made them, mounts), and until their folders are gone. Then,
    what the next start leaves."""
    marker = _marker()
    with _owner("embedded", store, spec_of(image), boxes, marker) as owner:
        zygote = machine.zygote_of(store, owner.pid)
        known = {*machine.processes_of(store), *_sleepers(marker)} - {zygote}
        owner.kill()
        began = time.perf_counter()
        owner.wait()
        empty = _until(began, lambda: not _alive(known) and not machine.group_folders(store))
        # Looking for processes that we do not know takes as long as a poll: it comes last.
        clean = _until(began, lambda: not _alive({zygote}) and not _anything(store, marker))
        folder = store.root / "boxes"
        folders = _until(began, lambda: not folder.exists() or not os.listdir(folder))
    stay = machine.parent_groups(store)
    runtime = EmbeddedRuntime(store)
    runtime.reap()
    runtime.close()
    return {
        "processes": len(known) + 1,
        "boxes_ms": empty,
        "ms": clean,
        "folders_ms": folders,
        "empty_groups": stay,
        "left": [*leftovers(store), *["control group"] * machine.parent_groups(store)],
    }


def docker(store: Store, image: Image, *, boxes: int = CONTAINERS) -> dict[str, Any]:
    """One kill, then the next start: what it removes, and what is left after that."""
    marker = _marker()
    with _owner("docker", store, spec_of(image), boxes, marker) as owner:
        owner.kill()
        owner.wait()
        stayed = len(_sleepers(marker))
        runtime = DockerRuntime(store)
        try:
            began = time.perf_counter()
            reaped = len(runtime.reap())
            took = time.perf_counter() - began
        finally:
            runtime.close()
    left = [*leftovers(store), *(f"process {pid}" for pid in _sleepers(marker))]
    return {"stayed": stayed, "reaped": reaped, "reap_ms": round(took * 1e3, 1), "left": left}


@contextmanager
def _owner(
    runtime: str, store: Store, spec: BoxSpec, boxes: int, marker: str
) -> Iterator["subprocess.Popen[bytes]"]:
    argv = [sys.executable, "-m", "tests.bench.owner", runtime, str(store.root), str(boxes), marker]
    process = subprocess.Popen(argv, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    with process:
        try:
            pickled = pickle.dumps(spec)
            process.stdin.write(f"{len(pickled)}\n".encode() + pickled)
            process.stdin.flush()
            if process.stdout.readline() != b"ready\n":
                raise OSError("the controller did not get as far as being killed")
            yield process
        finally:
            process.kill()


def _until(began: float, is_so: Callable[[], bool]) -> float | None:
    while (now := time.perf_counter()) - began < _LONGEST_SECONDS:
        if is_so():
            return round((now - began) * 1e3, 1)
        time.sleep(_POLL_SECONDS)
    return None


def _alive(pids: set[int]) -> bool:
    """A zombie is dead: when it goes is up to the machine's first process, which inherited it."""
    return any(_state(pid) not in {"", "Z", "X"} for pid in pids)


def _state(pid: int) -> str:
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        return stat.rpartition(")")[2].split()[0]
    return ""


def _anything(store: Store, marker: str) -> bool:
    mounts = Path("/proc/mounts").read_text(encoding="utf-8")
    return bool(machine.processes_of(store) or _sleepers(marker)) or str(store.root) in mounts


def _marker() -> str:
    """Seconds nobody else sleeps for."""
    return f"4000.{time.time_ns() % 10**9:09d}"


def _sleepers(marker: str) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                if marker.encode() in words and words[0] == b"sleep":
                    found.append(int(entry))
    return found
