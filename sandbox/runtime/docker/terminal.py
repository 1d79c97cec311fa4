"""A terminal in a box: a socket of ours, a pseudo-terminal of the engine's; with wires, two."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Foreground
from sandbox.runtime.docker.container import Container, is_here
from sandbox.runtime.docker.engine import faults
from sandbox.runtime.docker.execute import Looks
from sandbox.runtime.docker.server import EASIER_TO_KILL
from sandbox.runtime.docker.wire import read_until, start_exec
from sandbox.runtime.docker.wires import OPEN, OPENED, DockerWires, pid_of
from sandbox.runtime.foreground import look

if TYPE_CHECKING:
    from sandbox.runtime.docker.address import Socket

DETACH_KEYS = "ctrl-@,ctrl-^,ctrl-@,ctrl-_,ctrl-@"
"""The engine's own, Ctrl-P Ctrl-Q, would swallow what a shell's user types every day."""
_BEGIN = (
    f"echo {EASIER_TO_KILL} > /proc/self/oom_score_adj; "
    'stty rows "$1" cols "$2" && shift 2 && echo $$'
)
LAUNCH = _BEGIN + ' && exec "$@"'
"""Run by sh: the size is right before the program starts, and we learn its process id. When
memory is short, the kernel takes it before the container's first process."""
LAUNCH_WIRED = f'{_BEGIN} && {OPEN} && exec "$@"'
"""Run by bash: other shells have no words for descriptors above 9."""
HANG_UP = """[ "$1" = 0 ] || { kill -HUP "$1" && kill -CONT "$1"; }
[ "$2" = 0 ] || kill -KILL "$2"
"""
"""Run by sh, with the program's process id and that of the holder of its wires, or 0."""
START_SECONDS = 60.0
FIND_SECONDS = 5.0
KILLED = 137
"""The exit code of a program whose box has gone."""
FIRST_LINE_BYTES = 4096
NO_PIPE = "none"
"""In place of the name of the pipe that is CONTROL, when there are no wires."""

_DOING: dict[str, Literal["input", "control", "other"]] = {
    "input": "input",
    "control": "control",
    "other": "other",
}


class NotInTime(Exception):
    """The box did not answer as fast as was needed, or does not answer any more."""


class Inside(Protocol):
    """The box, as its terminals see it."""

    def hang_up(self, pid: int, holder: int) -> None:
        """Tell a program that its terminal is gone, and end the holder of its wires; 0: none."""
        ...

    def tie(self, pid: int, holder: int) -> None:
        """The holder of a program's wires is to end with it."""
        ...

    def look(self, pid: int, control: str) -> Foreground | None:
        """What the foreground of this program's terminal does; `control`: its pipe's name.

        None: it cannot be told there. Raises NotInTime.
        """
        ...


class DockerPty:
    def __init__(
        self, container: Container, inside: Inside, exec_id: str, holder: str | None = None
    ) -> None:
        """`exec_id` and `holder` are the engine's names of programs that it has prepared."""
        self._container = container
        self._engine = container.engine
        self._inside = inside
        self._exec_id = exec_id
        self._holder = holder
        self._sock: Socket | None = None
        self._pid = self._holder_pid = 0
        self._wires: DockerWires | None = None
        self._control = NO_PIPE

    @property
    def wires(self) -> DockerWires | None:
        return self._wires

    def start(self) -> None:
        """Start what was prepared: both programs at once, as the engine takes its time for each."""
        try:
            with faults("open a terminal"):
                if self._holder is not None:
                    self._wires = DockerWires(self._started(self._holder, tty=False))
                self._sock = self._started(self._exec_id, tty=True)
                self._sock.settimeout(START_SECONDS)
                self._pid = self._learn_pid(self._sock)
                if self._wires is not None:
                    self._holder_pid = pid_of(self._wires, START_SECONDS)
                    self._inside.tie(self._pid, self._holder_pid)
                    self._hand_over(self._sock)
                self._sock.settimeout(None)
        except BaseException:
            self._find_holder()
            self.close()
            raise

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

    def foreground(self) -> Foreground | None:
        """As its own user sees it in the box; else from here, if we may.

        Nothing is told of a terminal that is closed: its number may be another's. In the box it
        cannot be told without python3, or where a kernel lets nobody look at others than its own
        children, or of programs of two users at once.
        """
        if self._sock is None:
            return None
        try:
            found = self._inside.look(self._pid, self._control)
        except NotInTime:  # whoever asks has no more time for this
            return None
        return found or self._look_from_here()

    def close(self) -> None:
        """The engine keeps the terminal open when its client leaves; the signal has to be sent."""
        if self._sock is None and self._wires is None:
            return
        for end in (self._sock, self._wires):
            if end is not None:
                end.close()
        self._sock = self._wires = None
        with contextlib.suppress(RuntimeFault):  # the box is gone, and the programs with it
            pid = self._pid if self._pid and self._state()["Running"] else 0
            holder = self._holder_pid if self._holds() else 0
            if pid or holder:
                self._inside.hang_up(pid, holder)

    def _started(self, exec_id: str, *, tty: bool) -> "Socket":
        return start_exec(self._engine.address, self._engine.version, exec_id, tty=tty)

    def _learn_pid(self, sock: "Socket") -> int:
        line = read_until(sock, b"\n", FIRST_LINE_BYTES).strip()
        if not line.isdigit():
            raise RuntimeFault(f"cannot open a terminal: {line.decode(errors='replace')}")
        return int(line)

    def _find_holder(self) -> None:
        """Whatever became of the program: one that has been started must not stay behind."""
        if self._wires is not None and not self._holder_pid:
            with contextlib.suppress(RuntimeFault):
                self._holder_pid = pid_of(self._wires, FIND_SECONDS)

    def _hand_over(self, sock: "Socket") -> None:
        """Tell the launcher whose pipes it shall open, skip the echo of that, and see it done."""
        sock.sendall(b"%d\n" % self._holder_pid)
        line = read_until(sock, b"\n", FIRST_LINE_BYTES)
        said = b""
        while line.endswith(b"\n"):
            line = read_until(sock, b"\n", FIRST_LINE_BYTES)
            if line.startswith(OPENED):
                self._control = line[len(OPENED) :].strip().decode()
                return
            said += line
        words = said.decode(errors="replace").strip()
        raise RuntimeFault(f"cannot open a terminal with wires: {words}")

    def _look_from_here(self) -> Foreground | None:
        """Where the engine's processes are this machine's."""
        try:
            state = self._state()
        except RuntimeFault:
            return None
        pid = int(state.get("Pid") or 0) if state["Running"] else 0
        if not pid or not is_here(self._container.id, pid):
            return None
        return foreground_of(look(pid, self._control) or ())

    def _holds(self) -> bool:
        return bool(self._holder and self._holder_pid and self._state(self._holder)["Running"])

    def _state(self, exec_id: str = "") -> dict[str, Any]:
        """A program goes with its container: then the engine has forgotten both."""
        try:
            with faults("ask whether the program runs"):
                return dict(self._engine.api.exec_inspect(exec_id or self._exec_id))
        except RuntimeFault:
            if self._container.running():
                raise
            return {"Running": False, "ExitCode": None}


def foreground_of(found: Sequence[str]) -> Foreground | None:
    """What was found by a look, which may come from a box."""
    if len(found) != len(fields(Foreground)) or found[0] not in _DOING:
        return None
    return Foreground(doing=_DOING[found[0]], command=found[1], trace=found[2])
