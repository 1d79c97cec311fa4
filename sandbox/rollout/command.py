"""An agent that is a program on the host: JSON lines, observations in and actions out.

The protocol is described in docs/reference/agent-protocol.md.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from sandbox.errors import AgentFault, UserError
from sandbox.formats.shape import plain
from sandbox.model.step import Action, Observation, Submit
from sandbox.rollout.actions import read_action
from sandbox.rollout.agent import Opening
from sandbox.runtime.lease import Lease, orphans
from sandbox.runtime.ready import readable, writable
from sandbox.runtime.store import Store

PROTOCOL = 3
"""1 passed over keys that it did not know; 2 knew no `model`."""
MARK = "STILLROOM_AGENT"
"""In the environment of the program and of all it starts: how leftovers are found."""
_LINE_BYTES = 16 << 20
_SLICE_SECONDS = 0.2


class Command:
    """One process per rollout, with our environment; its standard error goes to agent.log."""

    def __init__(self, argument: str, store: Store, *, ending_seconds: float = 5.0) -> None:
        """`ending_seconds`: from the end of the program's output to its own."""
        if not argument.strip():
            raise UserError("shell: needs a command", hint="--agent 'shell:python3 my_agent.py'")
        self.name = f"shell:{argument}"
        self._command = argument
        self._store = store
        self._ending_seconds = ending_seconds

    def begin(self, opening: Opening) -> "CommandSession":
        return CommandSession(self._command, opening, self._store, self._ending_seconds)


class CommandSession:
    def __init__(self, command: str, opening: Opening, store: Store, ending_seconds: float) -> None:
        self._opening = opening
        self._ending_seconds = ending_seconds
        self._until = time.monotonic() + opening.limits.wall_seconds
        self._lease = Lease.fresh(store.root / "agents")
        self._mark = self._lease.name
        self._buffer = bytearray()
        self._told = False
        opening.folder.mkdir(parents=True, exist_ok=True)
        with (opening.folder / "agent.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                env={**os.environ, MARK: self._mark},
                start_new_session=True,
            )
        assert self._process.stdin  # noqa: S101 - for the type checker: PIPE was asked for
        os.set_blocking(self._process.stdin.fileno(), False)

    def act(self, seen: Observation) -> Action:
        if not self._told:
            self._told = True
            self._send({"type": "task", "protocol": PROTOCOL, **_told(self._opening)})
        else:
            self._send({"type": "observation", **plain(seen)})
        line = self._line()
        if line is None:
            return Submit()
        return read_action(line)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        kill_marked(self._mark)
        self._lease.release()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin  # noqa: S101 - for the type checker: PIPE was asked for
        fd = self._process.stdin.fileno()
        left = json.dumps(message).encode() + b"\n"
        # A pipe holds little, and the program need not read: waiting for it costs it its time.
        while left and not self._over():
            if not writable(fd, _SLICE_SECONDS):
                continue
            try:
                left = left[os.write(fd, left) :]
            except BlockingIOError:
                continue
            except OSError:
                return  # it is gone, or has closed its input: reading will tell

    def _over(self) -> bool:
        return self._opening.cancelled.is_set() or time.monotonic() > self._until

    def _line(self) -> bytes | None:
        """The program's next line; None when it ended in peace, or its time is over."""
        assert self._process.stdout  # noqa: S101 - for the type checker: PIPE was asked for
        fd = self._process.stdout.fileno()
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > _LINE_BYTES:
                raise AgentFault(f"the agent wrote a line of more than {_LINE_BYTES >> 20} MiB")
            if self._over():
                return None
            if not readable([fd], _SLICE_SECONDS):
                continue
            block = os.read(fd, 1 << 16)
            if not block:
                self._check_ending()
                return None
            self._buffer += block
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _check_ending(self) -> None:
        try:
            status = self._process.wait(timeout=self._ending_seconds)
        except subprocess.TimeoutExpired:
            raise AgentFault("the agent closed its output and went on running") from None
        if status != 0:
            log = _tail(self._opening.folder / "agent.log")
            raise AgentFault(
                f"the agent's program ended with status {status}" + (f": {log}" if log else ""),
                hint=f"see {self._opening.folder / 'agent.log'}",
            )


def reap(store: Store) -> list[str]:
    """End the programs of dead runs' agents, wherever they have moved to."""
    gone = []
    for lease in orphans(store.root / "agents"):
        with lease:
            gone += [f"agent process {pid}" for pid in kill_marked(lease.path.stem)]
    return gone


def kill_marked(mark: str) -> list[int]:
    """Kill every process that was started with this mark in its environment."""
    wanted = f"{MARK}={mark}".encode()
    killed = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
                killed.append(int(entry.name))
    return killed


def _told(opening: Opening) -> dict[str, Any]:
    return {
        "task": opening.task,
        "attempt": opening.attempt,
        "instruction": opening.instruction,
        "workdir": opening.workdir,
        "limits": plain(opening.limits),
    }


def _tail(path: Path) -> str:
    try:
        return path.read_bytes()[-500:].decode("utf-8", "backslashreplace").strip()
    except OSError:
        return ""
