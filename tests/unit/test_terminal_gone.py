"""A shell that ends right after a command: what it had said comes by several ways, in any order."""

import pytest

from sandbox.model.step import Run, Status
from sandbox.runtime.base import OUTPUT, STATUS, ExecResult
from sandbox.runtime.fake import NO_IMAGE, Call, FakeBox, FakeRuntime, said
from sandbox.runtime.fakepty import FakePty, FakeWires
from sandbox.runtime.fakeshell import Ask
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.terminal import Terminal, lines

NOT_DONE = "the shell had ended before: this was not done\n"
LAST_WORDS = {
    "as they were said": (b"D", lines.END),
    "the mark first, as on Docker": (lines.END, b"D"),
    "no mark, for it ended before": (b"D",),
}


class Dying(FakePty):
    """A shell that ends with its first command's report, or before."""

    words: tuple[bytes, ...] = ()
    where = OUTPUT

    def _tell(self, stream: int, data: bytes) -> None:
        if stream != STATUS or not data.startswith(b"D"):
            super()._tell(stream, data)
            return
        for word in self.words:
            if word == lines.END:
                super()._tell(self.where, lines.mark(lines.END, data[1:17]))
            else:
                super()._tell(stream, data)
        raise SystemExit(7)


def echo(box: FakeBox, call: Call) -> ExecResult | None:
    del box
    name, _, words = call.command.partition(" ")
    return said(words + "\n") if name == "echo" else None


def a_terminal(monkeypatch: pytest.MonkeyPatch, words: tuple[bytes, ...], *, tty: bool) -> Terminal:
    said = [words]

    def shell(ask: Ask, cwd: str) -> FakePty:
        if not said:
            return FakePty(ask, cwd)
        first = Dying(ask, cwd)
        first.words, first.where = said.pop(), lines.TERMINAL if tty else OUTPUT
        return first

    monkeypatch.setattr("sandbox.runtime.fake.FakePty", shell)
    box = FakeRuntime(echo).create(BoxSpec(image=NO_IMAGE, workdir="/work"))
    return Terminal(box, cwd="/work", command_seconds=30, output_bytes=10_000)


@pytest.mark.parametrize("tty", [True, False])
@pytest.mark.parametrize("words", LAST_WORDS.values(), ids=LAST_WORDS)
def test_a_command_that_it_reported_was_done_and_the_next_one_was_not(monkeypatch, words, tty):
    with a_terminal(monkeypatch, words, tty=tty) as terminal:
        seen = [terminal.do(Run(f"echo {word}", tty=tty)) for word in ("last", "lost", "fine")]
    assert [(one.output, one.exit_code, one.status) for one in seen] == [
        ("last\n", 0, Status.EXITED),
        (NOT_DONE, 7, Status.RESTARTED),
        ("fine\n", 0, Status.EXITED),
    ]


@pytest.mark.parametrize("tty", [True, False])
def test_without_a_report_it_died_of_the_command_whose_output_is_shown(monkeypatch, tty):
    with a_terminal(monkeypatch, (), tty=tty) as terminal:
        seen = [terminal.do(Run(f"echo {word}", tty=tty)) for word in ("last", "fine")]
    assert [(one.output, one.exit_code, one.status) for one in seen] == [
        ("last\n", 7, Status.RESTARTED),
        ("fine\n", 0, Status.EXITED),
    ]


class Lost(FakePty):
    """A shell that ends as it begins a command; one way to it stays open, and brings nothing."""

    def _tell(self, stream: int, data: bytes) -> None:
        if data.startswith(lines.mark(lines.BEGIN, b"")[:-1]):
            self.kept = self._far.dup()
            raise SystemExit(9)
        super()._tell(stream, data)

    def close(self) -> None:
        super().close()
        self.kept.close()


@pytest.mark.parametrize("tty", [True, False])
def test_where_its_last_words_may_be_lost_nothing_is_claimed(monkeypatch, tty):
    shells = [FakePty, Lost]

    def shell(ask: Ask, cwd: str) -> FakePty:
        return shells.pop()(ask, cwd)

    monkeypatch.setattr("sandbox.runtime.fake.FakePty", shell)
    box = FakeRuntime(echo).create(BoxSpec(image=NO_IMAGE, workdir="/work"))
    with Terminal(box, cwd="/work", command_seconds=30, output_bytes=10_000) as terminal:
        seen = [terminal.do(Run(f"echo {word}", tty=tty)) for word in ("lost", "fine")]
    assert [(one.output, one.exit_code, one.status) for one in seen] == [
        ("the shell has ended: whether this was begun is not known\n", 9, Status.RESTARTED),
        ("fine\n", 0, Status.EXITED),
    ]


class Mute(FakePty):
    """A shell that ends as it begins a command, and no way to it stays open."""

    def _tell(self, stream: int, data: bytes) -> None:
        if data.startswith(lines.mark(lines.BEGIN, b"")[:-1]):
            raise SystemExit(9)
        super()._tell(stream, data)


@pytest.mark.parametrize("tty", [True, False])
@pytest.mark.parametrize("lossless", [True, False])
def test_not_done_is_said_of_a_sent_command_only_where_no_word_is_lost(monkeypatch, lossless, tty):
    monkeypatch.setattr("sandbox.runtime.fake.FakePty", Mute)
    monkeypatch.setattr(FakeWires, "lossless", lossless)
    box = FakeRuntime(echo).create(BoxSpec(image=NO_IMAGE, workdir="/work"))
    with Terminal(box, cwd="/work", command_seconds=30, output_bytes=10_000) as terminal:
        seen = terminal.do(Run("echo lost", tty=tty))
    unknown = "the shell has ended: whether this was begun is not known\n"
    assert (seen.output, seen.exit_code) == (NOT_DONE if lossless else unknown, 9)
