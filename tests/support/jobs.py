"""A terminal with a bash on it whose jobs are looked at; it is ended with all that it started."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from sandbox.runtime import foreground, procs
from tests.support.waiting import eventually

SHELL = 'exec 250<&0 252<>"$0" >&252 2>&252; exec bash --norc --noprofile --noediting -i <&250'


def py(code: str) -> str:
    """A shell's words for a Python program."""
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


class Terminal:
    """A bash with job control, which gets its commands by a pipe and leads a terminal's session."""

    def __init__(self, folder: Path) -> None:
        self.master, slave = os.openpty()
        os.set_blocking(self.master, False)
        reading, self.commands = os.pipe()
        keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.shell = subprocess.Popen(
            ["bash", "-c", SHELL, os.ttyname(slave)],
            stdin=reading,
            cwd=folder,
            env=keep | {"HOME": str(folder), "TERM": "xterm", "LESSHISTFILE": "-"},
            start_new_session=True,
        )
        os.close(reading)
        self.slave = slave  # kept: a terminal that nobody has open yet would be taken for hung up
        self.control = str(Path(f"/proc/self/fd/{self.commands}").readlink())
        self.printed = b""

    def drain(self) -> bytes:
        with contextlib.suppress(OSError):
            while part := os.read(self.master, 65536):
                self.printed = (self.printed + part)[-100_000:]
        return self.printed

    def run(self, line: str) -> None:
        done = f"eval {shlex.quote(line)} <&252 250<&- 252<&-\n"
        os.write(self.commands, done.encode())

    def look(self) -> tuple[str, str, str] | None:
        self.drain()
        return foreground.look(self.shell.pid, self.control)

    def doing(self) -> str:
        return (self.look() or ("",))[0]

    def command(self) -> str:
        return (self.look() or ("", ""))[1]

    def awaits_input(self) -> bool:
        """As a caller has to ask: two looks that say the same, and nothing printed in between."""
        before, first = self.drain(), self.look()
        return (
            first is not None
            and first[0] == "input"
            and self.look() == first
            and self.drain() == before
        )

    def close(self) -> None:
        for _ in range(5):  # who makes children while they are ended
            for pid in self._pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.shell.wait()
        for handle in (self.master, self.slave, self.commands):
            os.close(handle)
        assert eventually(lambda: not self._pids())

    def _pids(self) -> list[int]:
        """Of its session and of those within. A zombie is its parent's affair, or process 1's."""
        found = {pid for pid, _ in procs.walk(self.shell.pid, procs.Work())}
        for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(pid) == self.shell.pid:
                    found.add(pid)
        stats = {pid: procs.stat_of(f"/proc/{pid}") for pid in found}
        return [pid for pid, stat in stats.items() if stat is not None and stat.state not in "ZX"]
