"""Other ways to have a shell, each in a process of its own, which is asked for commands.

    python tests/bench/peers.py NAME [FOLDER]

Says what it is when its shell is there; then reads numbers, one a line, runs `true` so often each
time, and answers with the milliseconds that each took, as JSON. It ends with its input. Some of
these run with an interpreter that has neither us nor our dependencies: nothing of ours is imported.
"""

import asyncio
import importlib
import importlib.metadata
import json
import logging
import os
import pty
import resource
import sys
import time
from collections.abc import Callable
from typing import Protocol

MEMORY = 4 << 30
"""Of addresses: some of these keep all that they ever read."""


class Shell(Protocol):
    def true(self) -> None: ...

    def close(self) -> None: ...


class Bare:
    """The limit: a local PTY and bash, a typed line and a mark, no library at all."""

    def __init__(self, _: str) -> None:
        self._number = 0
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.environ.update(PS1="", PS2="")
            os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        os.write(self._fd, b"stty -echo; PS1= PS2=; printf 'READ%s\\n' Y\n")
        self._until(b"READY\r\n")

    def true(self) -> None:
        self._number += 1
        os.write(self._fd, b"true; printf '\\e]7133;D;%016d;%%s\\a' $?\n" % self._number)
        self._until(b"\x1b]7133;D;%016d;0\a" % self._number)

    def close(self) -> None:
        os.close(self._fd)
        os.waitpid(self._pid, 0)

    def _until(self, mark: bytes) -> None:
        seen = b""
        while mark not in seen:
            seen = seen[-64:] + os.read(self._fd, 1 << 18)


class Replwrap:
    """pexpect as it comes: it waits 50 ms before it types anything."""

    def __init__(self, _: str) -> None:
        self._shell = importlib.import_module("pexpect.replwrap").bash()

    def true(self) -> None:
        self._shell.run_command("true", timeout=30)

    def close(self) -> None:
        self._shell.child.close(force=True)


class SweRex:
    """A bash session of its local runtime, without the HTTP server that is otherwise around it."""

    def __init__(self, _: str) -> None:
        self._said = importlib.import_module("swerex.runtime.abstract")
        logging.disable(logging.CRITICAL)
        self._loop = asyncio.Runner()
        self._runtime = importlib.import_module("swerex.runtime.local").LocalRuntime()
        self._loop.run(self._runtime.create_session(self._said.CreateBashSessionRequest()))

    def true(self) -> None:
        action = self._said.BashAction(command="true", timeout=30)
        seen = self._loop.run(self._runtime.run_in_session(action))
        if seen.exit_code != 0:
            raise OSError(f"exit code {seen.exit_code}")

    def close(self) -> None:
        self._loop.run(self._runtime.close())
        self._loop.close()


class Tmux:
    """libtmux: the command is typed into a pane, and `tmux wait-for` tells when it is over."""

    def __init__(self, folder: str) -> None:
        libtmux = importlib.import_module("libtmux")
        self._server = libtmux.Server(socket_path=f"{folder}/tmux", config_file="/dev/null")
        shell = "bash --norc --noprofile"
        session = self._server.new_session(session_name="bench", window_command=shell)
        self._pane = session.active_pane
        self._number = 0

    def true(self) -> None:
        self._number += 1
        self._pane.send_keys(f"true; tmux wait-for -S {self._number}", enter=True)
        self._server.cmd("wait-for", str(self._number))

    def close(self) -> None:
        self._server.kill()


SHELLS: dict[str, tuple[Callable[[str], Shell], str]] = {
    "bare": (Bare, ""),
    "replwrap": (Replwrap, "pexpect"),
    "swe-rex": (SweRex, "swe-rex"),
    "tmux": (Tmux, "libtmux"),
}


def main(name: str, folder: str = "") -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # some of them log to where our answers go
    make, distribution = SHELLS[name]
    shell = make(folder)
    try:
        version = importlib.metadata.version(distribution) if distribution else "itself"
        answers.write(f"{version}\n")
        for line in sys.stdin:
            answers.write(json.dumps([_timed(shell) for _ in range(int(line))]) + "\n")
    finally:
        shell.close()


def _timed(shell: Shell) -> float:
    began = time.perf_counter()
    shell.true()
    return (time.perf_counter() - began) * 1e3


if __name__ == "__main__":
    main(*sys.argv[1:])
