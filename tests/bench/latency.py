"""How long `true` takes, of everybody in turn: ours, a bare PTY, and what others do."""

import json
import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol

from sandbox.runtime.base import Box
from sandbox.runtime.spec import Image
from sandbox.runtime.store import Store, default_store
from tests.bench import ours
from tests.bench.clock import TROUBLE
from tests.bench.others import NaiveSdk
from tests.bench.program import say

BARE, REX, TMUX = "bare PTY + bash", "SWE-ReX", "libtmux"
CLI, SDK, DEFAULTS = "docker exec", "exec_run of the Docker SDK", "pexpect with its delays"
REQUIREMENTS = {REX: "swe-rex==1.4.0", TMUX: "libtmux==0.62.0"}
TURNS = 50
SLOW = 10
"""Who takes 100 ms for a command gets a tenth of them."""
_START_SECONDS, _COMMAND_SECONDS, _INSTALL_SECONDS = 60.0, 30.0, 240.0
_PEERS = Path(__file__).with_name("peers.py")


class Subject(Protocol):
    def take(self, commands: int) -> list[float]:
        """Run `true` so often; milliseconds of each."""
        ...

    def close(self) -> None: ...


class Ours:
    def __init__(self, box: Box, mode: str) -> None:
        self._stack = ExitStack()
        self._terminal = self._stack.enter_context(ours.terminal(box))
        self._action = ours.true(mode)

    def take(self, commands: int) -> list[float]:
        return [_timed(lambda: ours.must(self._terminal.do(self._action))) for _ in range(commands)]

    def close(self) -> None:
        self._stack.close()


class Peer:
    """One of peers.py, in a process of its own: a hang of it is told, and ended."""

    def __init__(self, name: str, folder: Path, python: Path = Path(sys.executable)) -> None:
        self._socket, self._log = folder / "tmux", folder / f"{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), str(_PEERS), name, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                start_new_session=True,
            )
        try:
            self.version = self._answer(_START_SECONDS).decode().strip()
        except BaseException:
            self.close()
            raise

    def take(self, commands: int) -> list[float]:
        assert self._process.stdin
        self._process.stdin.write(b"%d\n" % commands)
        found: list[float] = json.loads(self._answer(commands * _COMMAND_SECONDS))
        return found

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()
        if self._socket.exists():  # its server is a daemon, which outlives whoever is killed
            end = ["tmux", "-S", str(self._socket), "kill-server"]
            subprocess.run(end, capture_output=True, check=False, timeout=10)

    def _answer(self, seconds: float) -> bytes:
        assert self._process.stdout
        line, until = b"", time.monotonic() + seconds
        while not line.endswith(b"\n"):
            left = max(until - time.monotonic(), 0)
            if not select.select([self._process.stdout], [], [], left)[0]:
                raise TimeoutError(f"it hangs: no answer in {seconds:.0f} s")
            block = os.read(self._process.stdout.fileno(), 1 << 16)
            if not block:
                last = self._log.read_text(encoding="utf-8", errors="replace").strip()
                code = self._process.wait(10)
                raise OSError(f"it died, exit code {code}: {last.rpartition(chr(10))[2]}")
            line += block
        return line


class Engine:
    """A container, and a new process in it for each command."""

    def __init__(self, image: Image, token: str, *, cli: bool) -> None:
        self._sdk = NaiveSdk(image, token)
        try:
            self._container: Any = self._sdk.start()
        except BaseException:
            self._sdk.close()
            raise
        self._true = self._by_cli if cli else self._by_sdk

    def take(self, commands: int) -> list[float]:
        return [_timed(self._true) for _ in range(commands)]

    def close(self) -> None:
        self._sdk.close()

    def _by_sdk(self) -> None:
        self._sdk.true(self._container)

    def _by_cli(self) -> None:
        argv = ["docker", "exec", self._container.id, "true"]
        subprocess.run(argv, check=True, capture_output=True, timeout=_COMMAND_SECONDS)


class Turns:
    """All subjects there are here, taking turns in another order each time."""

    def __init__(self, store: Store, image: Image, token: str, stack: ExitStack) -> None:
        self._store, self._image, self._token, self._stack = store, image, token, stack
        self._subjects: dict[str, tuple[Subject, int]] = {}
        self.left_out: dict[str, str] = {}
        self.versions: dict[str, str] = {}

    def open(self, folder: Path, kinds: Sequence[ours.Kind]) -> None:
        self._peer(BARE, "bare", folder, 1)
        for kind in kinds:
            self._ours(kind)
        if "docker" in kinds:
            self._add(CLI, lambda: Engine(self._image, f"{self._token}cli", cli=True), SLOW)
            self._add(SDK, lambda: Engine(self._image, f"{self._token}sdk", cli=False), SLOW)
        self._peer(REX, "swe-rex", folder, SLOW)
        self._peer(TMUX, "tmux", folder, SLOW // 5)
        self._peer(DEFAULTS, "replwrap", folder, SLOW)

    def take(self, commands: int) -> dict[str, list[float]]:
        """The first turn of each warms up, and is not counted."""
        found: dict[str, list[float]] = {name: [] for name in self._subjects}
        turns = min(TURNS, commands)
        for number in range(turns + 1):
            names = list(self._subjects)
            random.Random(number).shuffle(names)
            for name in names:
                subject, share = self._subjects[name]
                try:
                    times = subject.take(max(1, commands // turns // share))
                except (*TROUBLE, subprocess.SubprocessError) as e:
                    self.left_out[name] = f"turn {number}: {type(e).__name__}: {e}"
                    del self._subjects[name]
                    continue
                if number:
                    found[name] += times
        return found

    def _ours(self, kind: ours.Kind) -> None:
        try:
            (box,) = self._stack.enter_context(ours.boxes(kind, self._store, self._image))
        except TROUBLE as e:
            self.left_out[kind] = f"not here: {type(e).__name__}: {e}"
            return
        for mode in ours.MODES:
            self._add(f"{kind}, {mode}", lambda mode=mode: Ours(box, mode), 1)  # type: ignore[misc]

    def _peer(self, name: str, word: str, folder: Path, share: int) -> None:
        def make() -> Peer:
            python = python_with(REQUIREMENTS[name]) if name in REQUIREMENTS else None
            peer = Peer(word, folder, python or Path(sys.executable))
            self.versions[name] = peer.version
            return peer

        self._add(name, make, share)

    def _add(self, name: str, make: Callable[[], Subject], share: int) -> None:
        try:
            subject = make()
        except (*TROUBLE, subprocess.SubprocessError) as e:
            self.left_out[name] = f"not here: {type(e).__name__}: {e}"
            return
        self._stack.callback(_close_quietly, subject)
        self._subjects[name] = (subject, share)


def python_with(requirement: str) -> Path:
    """An interpreter that has it: of a virtual environment for it alone, in the user's cache."""
    store = default_store(os.environ)
    folder = store.root / "bench" / requirement.replace("==", "-")
    python, complete = folder / "bin" / "python", folder / "complete"
    with store.lock(f"bench-{folder.name}"):
        if not complete.exists():
            say(f"installing {requirement}")
            _run(sys.executable, "-m", "venv", "--clear", folder)
            _run(python, "-m", "pip", "install", "--quiet", requirement)
            complete.touch()
    return python


def _run(*argv: str | Path) -> None:
    limit = _INSTALL_SECONDS
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=limit)
    if done.returncode:
        raise OSError(done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}")


def measure(
    store: Store, image: Image, folder: Path, kinds: Sequence[ours.Kind], commands: int
) -> dict[str, Any]:
    with ExitStack() as stack:
        turns = Turns(store, image, folder.name, stack)
        turns.open(folder, kinds)
        times = turns.take(commands)
    return {
        "ms": {name: [round(x, 4) for x in ms] for name, ms in times.items() if ms},
        "versions": turns.versions,
        "left_out": turns.left_out,
    }


def _timed(command: Callable[[], object]) -> float:
    began = time.perf_counter()
    command()
    return (time.perf_counter() - began) * 1e3


def _close_quietly(subject: Subject) -> None:
    with suppress(*TROUBLE):
        subject.close()
