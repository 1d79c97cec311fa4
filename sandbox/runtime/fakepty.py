"""A fake terminal: sockets, and a thread that plays the shell at their other ends."""

import socket
import threading
from contextlib import suppress

from sandbox.runtime.base import OUTPUT, STATUS
from sandbox.runtime.fakeshell import Ask, Shell
from sandbox.runtime.ready import readable

_HUNG_UP = 129


class FakePty:
    """Sockets: the host's ends, and a thread that plays the shell at the others."""

    def __init__(self, ask: Ask, cwd: str) -> None:
        self._near, self._far = socket.socketpair()
        self.wires = FakeWires()
        self._shell = Shell(ask, cwd, self._tell)
        self._code = _HUNG_UP
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="fake shell", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        return self._near.fileno()

    def foreground(self) -> None:
        """It cannot tell: there are no processes."""

    def resize(self, rows: int, cols: int) -> None: ...

    def wait(self, seconds: float) -> int | None:
        """Raises what the reply raised, if that is how it ended."""
        self._thread.join(seconds)
        if self._error:
            raise self._error
        return None if self._thread.is_alive() else self._code

    def signalled(self, number: int) -> None:
        self._shell.signalled(number)

    def hang_up(self) -> None:
        """From the box's side: the program is killed, the host's ends read their end."""
        for end in (self._far, self.wires.far_control):
            with suppress(OSError):  # it has ended by itself
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.hang_up()
        self._near.close()
        self.wires.close()

    def _tell(self, stream: int, data: bytes) -> None:
        if stream == STATUS:
            self.wires.far_status.sendall(data)
        elif stream == OUTPUT:
            self.wires.far_output.sendall(data)
        else:
            self._far.sendall(data)

    def _serve(self) -> None:
        with self._far, self.wires.far_control, self.wires.far_output, self.wires.far_status:
            try:
                self._take_turns()
            except SystemExit as e:
                self._code = e.code if isinstance(e.code, int) else 1
            except OSError:
                return  # nobody is at the other end any more
            except BaseException as e:  # noqa: BLE001 - the reply's; `wait` raises it
                self._error = e

    def _take_turns(self) -> None:
        while True:
            for end in readable([self._far, self.wires.far_control], 3600):
                block = end.recv(1 << 16)
                if not block:
                    return
                if end is self._far:
                    self._shell.typed(block)
                else:
                    self._shell.sent(block)


class FakeWires:
    lossless = True

    def __init__(self) -> None:
        self._control, self.far_control = socket.socketpair()
        self._output, self.far_output = socket.socketpair()
        self._status, self.far_status = socket.socketpair()
        for near in (self._output, self._status):
            near.settimeout(0)

    def filenos(self) -> tuple[int, ...]:
        return self._status.fileno(), self._output.fileno()

    def send(self, data: bytes, seconds: float) -> bool:
        self._control.settimeout(seconds)
        try:
            self._control.sendall(data)
        except OSError:
            return False
        return True

    def receive(self) -> tuple[bytes, bytes]:
        said, printed = _received(self._status), _received(self._output)
        if said is None and not printed:
            raise EOFError
        return printed or b"", said or b""

    def close(self) -> None:
        for near in (self._control, self._output, self._status):
            near.close()


def _received(end: socket.socket) -> bytes | None:
    """None at its end."""
    try:
        return end.recv(1 << 16) or None
    except BlockingIOError:
        return b""
