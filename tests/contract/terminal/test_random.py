"""A script in the terminal is what it is to `bash -c` on a terminal, or before a pipe."""

import os
import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from sandbox.audit.conformance import Bench
from sandbox.model.step import Run, Status
from sandbox.runtime.base import Box
from sandbox.runtime.ready import readable
from sandbox.runtime.terminal import Terminal
from tests.contract.terminal.scripts import scripts

EXAMPLES = {"embedded": 200, "docker": 40}
FRESH_EVERY = 25
_PREFIX = re.compile(r"\b(?:bash|environment|main|f): line \d+: ")
"""An interactive bash neither counts lines nor says where functions are from."""


class Compared:
    """One box, and a terminal in it for many scripts."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._terminal: Terminal | None = None
        self._turns = 0

    def terminal(self) -> Terminal:
        if self._terminal is None or self._turns % FRESH_EVERY == 0:
            self.close()
            made = Terminal(self._box, cwd="/root", command_seconds=20, output_bytes=1 << 16)
            self._terminal = made.__enter__()
        self._turns += 1
        return self._terminal

    def close(self) -> None:
        if self._terminal:
            self._terminal.__exit__()
            self._terminal = None

    def on_terminal(self, script: bytes) -> tuple[str, int | None]:
        pty = self._box.open_pty(plainly(script), cwd="/root")
        printed = bytearray()
        try:
            while readable([pty.fileno()], 20) and (data := _read(pty.fileno())):
                printed += data
            return shown(bytes(printed)), pty.wait(20)
        finally:
            pty.close()

    def before_pipe(self, script: bytes) -> tuple[str, int | None]:
        done = self._box.exec(plainly(script, "exec 2>&1; "), seconds=20, cwd="/root")
        return shown(done.stdout + done.stderr), done.exit_code


@pytest.fixture(scope="module")
def compared(shared: tuple[Bench, Box]) -> Iterator[Compared]:
    made = Compared(shared[1])
    yield made
    made.close()


def plainly(script: bytes, before: str = "") -> list[str]:
    """Bash that becomes the bash that runs it: so that its bytes pass as plain ASCII."""
    word = "$'" + "".join(f"\\{byte:03o}" for byte in script) + "'"
    return [
        "bash",
        "--norc",
        "--noprofile",
        "-c",
        f"{before}exec bash --norc --noprofile -c {word}",
    ]


def shown(printed: bytes) -> str:
    text = printed.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    return _PREFIX.sub("bash: ", text.replace("\0", "\\x00"))


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 1 << 16)
    except OSError:  # nobody has the other end any more
        return b""


def test_random_scripts_do_what_they_do_without_us(compared: Compared, shared: tuple[Bench, Box]):
    @settings(
        max_examples=EXAMPLES[shared[0].kind],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(scripts)
    def hold(script: bytes) -> None:
        text = script.decode("utf-8", "surrogateescape")
        for tty in (True, False):
            seen = compared.terminal().do(Run(text, tty=tty))
            wanted = compared.on_terminal(script) if tty else compared.before_pipe(script)
            assert seen.status is Status.EXITED, seen
            assert (shown(seen.output.encode()), seen.exit_code) == wanted

    hold()
