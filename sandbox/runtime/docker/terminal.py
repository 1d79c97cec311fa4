"""A terminal in a box: a socket of ours, a pseudo-terminal of the engine's."""

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sandbox.errors import RuntimeFault
from sandbox.runtime.docker.container import Container
from sandbox.runtime.docker.engine import faults
from sandbox.runtime.docker.execute import Looks
from sandbox.runtime.docker.server import EASIER_TO_KILL
from sandbox.runtime.docker.wire import read_until, start_exec

if TYPE_CHECKING:
    from sandbox.runtime.docker.address import Socket

DETACH_KEYS = "ctrl-@,ctrl-^,ctrl-@,ctrl-_,ctrl-@"
"""The engine's own, Ctrl-P Ctrl-Q, would swallow what a shell's user types every day."""
LAUNCH = (
    f"echo {EASIER_TO_KILL} > /proc/self/oom_score_adj; "
    'stty rows "$1" cols "$2" && shift 2 && echo $$ && exec "$@"'
)
"""Run by sh: the size is right before the program starts, and we learn its process id. When
memory is short, the kernel takes it before the container's first process."""
START_SECONDS = 60.0
KILLED = 137
"""The exit code of a program whose box has gone."""
FIRST_LINE_BYTES = 4096

Hangup = Callable[[int], None]
"""Signal the process with this id, in the box."""


class DockerPty:
    def __init__(self, container: Container, exec_id: str, hang_up: Hangup) -> None:
        self._container = container
        self._engine = container.engine
        self._exec_id = exec_id
        self._hang_up = hang_up
        self._sock: Socket | None = None
        self._pid = 0

    def start(self) -> None:
        """Start the prepared program, and read the line that says what its process id is."""
        with faults("open a terminal"):
            sock = start_exec(self._engine.address, self._engine.version, self._exec_id, tty=True)
            try:
                sock.settimeout(START_SECONDS)
                line = read_until(sock, b"\n", FIRST_LINE_BYTES)
                sock.settimeout(None)
            except BaseException:
                sock.close()
                raise
            self._sock = sock
        if not line.strip().isdigit():
            self.close()
            raise RuntimeFault(f"cannot open a terminal: {line.decode(errors='replace').strip()}")
        self._pid = int(line)

    def fileno(self) -> int:
        if self._sock is None:
            raise RuntimeFault("the terminal is closed", retry=False)
        return self._sock.fileno()

    def resize(self, rows: int, cols: int) -> None:
        """Of a program that has ended, nothing is resized."""
        try:
            with faults("resize the terminal"):
                self._engine.api.exec_resize(self._exec_id, height=rows, width=cols)
        except RuntimeFault:
            if self._state()["Running"]:
                raise

    def wait(self, seconds: float) -> int | None:
        deadline = time.monotonic() + seconds
        looks = Looks()
        while (state := self._state())["Running"]:
            if time.monotonic() >= deadline:
                return None
            time.sleep(max(0.0, min(looks.at, deadline) - time.monotonic()))
            looks.due()
        code = state["ExitCode"]
        return KILLED if code is None else int(code)

    def close(self) -> None:
        """The engine keeps the terminal open when its client leaves; the signal has to be sent."""
        if self._sock is None:
            return
        self._sock.close()
        self._sock = None
        with contextlib.suppress(RuntimeFault):  # the box is gone, and the program with it
            if self._pid and self._state()["Running"]:
                self._hang_up(self._pid)

    def _state(self) -> dict[str, Any]:
        """A program goes with its container: then the engine has forgotten both."""
        try:
            with faults("ask whether the program runs"):
                return dict(self._engine.api.exec_inspect(self._exec_id))
        except RuntimeFault:
            if self._container.running():
                raise
            return {"Running": False, "ExitCode": None}
