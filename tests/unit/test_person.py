"""A person's terminal and one of a box, with nothing lost in between: real terminals, real bash."""

import fcntl
import hashlib
import os
import pty
import signal
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox.formats.asciicast import Cast, read_cast
from sandbox.rollout.person import Between
from sandbox.rollout.seat import Seat
from sandbox.runtime.ready import readable
from tests.support.localpty import LocalPty
from tests.support.waiting import eventually

BASH = ["bash", "--norc", "--noprofile", "-i"]


class Window:
    """A terminal emulator, and who sits at it: types by a script, in a thread of its own."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.size(24, 80)
        self.seen = bytearray()
        self.error: BaseException | None = None
        self._closing = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._typist: threading.Thread | None = None
        self._reader.start()

    def size(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def types(self, script: Callable[["Window"], None]) -> None:
        def run() -> None:
            try:
                script(self)
            except BaseException as e:  # noqa: BLE001 - told in the test's own thread
                self.error = e
                self.key(b"\x04")

        self._typist = threading.Thread(target=run, daemon=True)
        self._typist.start()

    def key(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.master, data) :]

    def until(self, text: bytes, seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, bytes(self.seen[-2000:])
            time.sleep(0.01)
        del self.seen[: self.seen.index(text) + len(text)]

    def done(self) -> None:
        if self._typist:
            self._typist.join(20)
        if self.error:
            raise self.error

    def close(self) -> None:
        self._closing.set()
        self._reader.join(5)
        for fd in (self.slave, self.master):
            with suppress(OSError):
                os.close(fd)

    def shut(self) -> None:
        """As when somebody clicks its cross."""
        self._closing.set()
        self._reader.join(5)
        os.close(self.master)

    def _read(self) -> None:
        with suppress(OSError):
            while not self._closing.is_set():
                if readable([self.master], 0.05):
                    self.seen += os.read(self.master, 1 << 16)


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("TERM", "xterm")
    made = Window()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def hang_up_is_as_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


def sit(window: Window, folder: Path, argv: list[str] | None = None) -> Between:
    terminal = LocalPty(argv or BASH, folder)
    try:
        with (
            Seat(window.slave, window.slave) as seat,
            Cast(folder / "terminal.cast", rows=24, cols=80) as cast,
        ):
            between = Between(terminal, seat, cast)
            between.pass_through()
    finally:
        terminal.close()
    window.done()
    return between


def recorded(folder: Path) -> str:
    return "".join(e.data for e in read_cast(folder / "terminal.cast").events if e.code == "o")


def test_keys_go_in_and_output_comes_out_and_all_is_recorded(window: Window, tmp_path: Path):
    def script(person: Window) -> None:
        person.until(b"$ ") if os.getuid() else person.until(b"# ")
        person.key(b"echo he''llo\r")
        person.until(b"hello\r\n")
        person.key(b"exit 3\r")

    window.types(script)
    between = sit(window, tmp_path)
    assert between.exit_code == 3
    text = recorded(tmp_path)
    assert "hello\r\n" in text
    assert between.total == len(text.encode())
    assert between.digest.hexdigest() == hashlib.sha256(text.encode()).hexdigest()


def test_a_huge_paste_arrives_whole(window: Window, tmp_path: Path):
    text = b"".join(b"%06d %s\n" % (i, b"x" * 90) for i in range(3000))

    def script(person: Window) -> None:
        person.until(b"\x1b[?2004h")
        person.key(b"stty -echo; echo rea''dy; cat > file; echo cop''ied\r")
        person.until(b"ready\r\n")
        person.key(text + b"\x04")
        person.until(b"copied")
        person.key(b"exit\r")

    window.types(script)
    sit(window, tmp_path)
    assert (tmp_path / "file").read_bytes() == text


def test_what_the_shell_printed_last_is_not_lost(window: Window, tmp_path: Path):
    between = sit(window, tmp_path, ["sh", "-c", "seq 1 200000"])
    whole = b"".join(b"%d\r\n" % i for i in range(1, 200001))
    assert between.total == len(whole)
    assert between.digest.hexdigest() == hashlib.sha256(whole).hexdigest()
    window.until(b"\r\n200000\r\n")


def test_the_end_is_noticed_although_something_goes_on_printing(window: Window, tmp_path: Path):
    between = sit(window, tmp_path, ["sh", "-c", "trap '' HUP; yes & sleep 0.3; exit 5"])
    assert between.exit_code == 5


def test_the_window_s_size_is_followed_and_recorded(window: Window, tmp_path: Path):
    def script(person: Window) -> None:
        person.until(b"\x1b[?2004h")
        person.size(50, 100)
        os.kill(os.getpid(), signal.SIGWINCH)
        end = time.monotonic() + 10
        while "100x50" not in (tmp_path / "terminal.cast").read_text():
            assert time.monotonic() < end
            time.sleep(0.01)
        person.key(b"stty size\r")
        person.until(b"50 100\r\n")
        person.key(b"exit\r")

    window.types(script)
    sit(window, tmp_path)
    assert [e.data for e in read_cast(tmp_path / "terminal.cast").events if e.code == "r"] == [
        "100x50"
    ]


def test_a_window_that_does_not_know_its_size_has_one(window: Window):
    window.size(0, 0)
    with Seat(window.slave, window.slave) as seat:
        assert seat.window() == (40, 160)
        window.size(30, 0)
        assert seat.resized() == (30, 160)
        assert seat.resized() is None


def test_the_terminal_is_given_back_as_it_was(window: Window, tmp_path: Path):
    before = termios.tcgetattr(window.slave)
    with suppress(ZeroDivisionError), Seat(window.slave, window.slave) as seat:
        assert termios.tcgetattr(window.slave) != before
        seat.screens.see(b"\x1b[?1049h")
        raise ZeroDivisionError
    assert termios.tcgetattr(window.slave) == before
    window.until(b"\x1b[?1049l")
    window.until(b"\x1b[0m")
    window.until(b"\x1b[?25h")
    window.until(b"\x1b[?2004l")
    # Writing to it waits again, as whoever shares it expects.
    assert os.get_blocking(window.slave)


def test_a_window_that_is_closed_ends_it_in_peace(window: Window, tmp_path: Path):
    def script(person: Window) -> None:
        person.until(b"\x1b[?2004h")
        person.key(b"sleep 1000\r")
        person.until(b"sleep 1000")
        person.shut()

    window.types(script)
    assert sit(window, tmp_path).exit_code is None
    # What is written to it now goes nowhere, without an error.
    assert os.write(window.slave, b"x") == 1


def test_being_hung_up_on_ends_it_in_peace(window: Window, tmp_path: Path):
    def script(person: Window) -> None:
        person.until(b"\x1b[?2004h")
        os.kill(os.getpid(), signal.SIGHUP)

    window.types(script)
    between = sit(window, tmp_path)
    assert between.exit_code is None
    os.kill(os.getpid(), signal.SIGHUP)  # once more, when it is being judged


def test_a_window_that_takes_nothing_holds_up_nobody(tmp_path: Path):
    """Some want to be rid of a paste before they look at what came; that must not be for ever."""
    keyboard, screen = pty.openpty(), pty.openpty()
    program = "stty raw -echo; echo ready; yes | head -c 4000000 & cat > file"
    terminal = LocalPty(["sh", "-c", program], tmp_path)
    file, data = tmp_path / "file", os.urandom(300_000)

    def type_and_never_look() -> None:
        left = data
        while left:
            left = left[os.write(keyboard[0], left) :]
        eventually(lambda: file.exists() and file.stat().st_size >= len(data))
        os.close(keyboard[0])

    typist = threading.Thread(target=type_and_never_look, daemon=True)
    try:
        with (
            Seat(keyboard[1], screen[1]) as seat,
            Cast(tmp_path / "terminal.cast", rows=24, cols=80) as cast,
        ):
            typist.start()
            Between(terminal, seat, cast).pass_through()
        typist.join(20)
    finally:
        terminal.close()
        for fd in (keyboard[1], *screen):
            os.close(fd)
    assert file.read_bytes() == data


def test_keys_from_a_pipe_end_the_shell_when_they_end(tmp_path: Path, window: Window):
    reading, writing = os.pipe()
    os.write(writing, b"cat > file\nhello\nlast line without an end")
    os.close(writing)
    terminal = LocalPty(BASH, tmp_path)
    try:
        with (
            Seat(reading, window.slave) as seat,
            Cast(tmp_path / "terminal.cast", rows=24, cols=80) as cast,
        ):
            between = Between(terminal, seat, cast)
            between.pass_through()
    finally:
        terminal.close()
        os.close(reading)
    assert between.exit_code == 0
    assert (tmp_path / "file").read_text().startswith("hello\nlast line without an end\n")


def test_nothing_stays_open(window: Window, tmp_path: Path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    sit(window, tmp_path, ["true"])
    assert len(list(Path("/proc/self/fd").iterdir())) == before
