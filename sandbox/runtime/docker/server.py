"""The first process of a container: starts programs as it is told, and reaps what they leave.

Or the second, below a supervisor that has it in its care: then the orphans are that one's.

This file's text is sent to the box with those of the modules that it imports, and run there, by
the box's own python3 (3.8 or later) with nothing but builtin modules: what they take is memory of
the box. It holds nothing worth reading. Frames go both ways over its input and output: length
(4 bytes), kind (1), number of the program (4), content.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # the module itself brings enum, and 0.8 MiB with it
import os
import select

from sandbox.runtime.docker.children import (
    first_that_opens,
    hide,
    look_as,
    spawn,
    spawn_as,
    who_may_look,
)  # fmt: skip
from sandbox.runtime.family import signalled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

RUN, INPUT, KILL, FACTS, LOOK, TIE, SIGNAL = 1, 2, 3, 4, 5, 6, 7
READY, OUT, ERR, MORE, EXIT, FAIL, KILLED = 11, 12, 13, 14, 15, 16, 17
HEAD = 9
BLOCK = 1 << 16
MOST_FRAME = 16 << 20
QUEUE = 1 << 18
"""More than this to be sent, and programs have to wait before they can print on."""
PIPE = 1 << 20
"""What a pipe can hold at most."""
EASIER_TO_KILL = 500
"""Of a thousand: when memory is short, the kernel takes any program before this one."""
MEASURES = (
    ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"),
    ("/sys/fs/cgroup/pids/pids.current", "/sys/fs/cgroup/pids.current"),
    ("/sys/fs/cgroup/pids/pids.events", "/sys/fs/cgroup/pids.events"),
    ("/sys/fs/cgroup/cpuacct/cpuacct.usage", "/sys/fs/cgroup/cpu.stat"),
)


class Program:
    def __init__(self, number: int, keep: int) -> None:
        self.number = number
        self.pid = 0
        self.input = -1
        self.waiting = b""
        """Input that it has not taken yet."""
        self.all_given = False
        self.left = {OUT: keep, ERR: keep}
        self.pipes: dict[int, int] = {}
        """Descriptor → which stream."""
        self.truncated = 0
        self.before = b""
        """What the box used when it began."""


class Server:
    def __init__(self) -> None:
        self.poll = select.poll()
        self.programs: dict[int, Program] = {}
        self.by_pid: dict[int, Program] = {}
        self.by_fd: dict[int, Program] = {}
        self.tied: dict[int, int] = {}
        """A process → who has to end with it: descriptors."""
        self.received = bytearray()
        self.queue = bytearray()
        self.null = os.open("/dev/null", os.O_RDWR)
        self.measures = [first_that_opens(paths) for paths in MEASURES]
        self.wake, wake_write = os.pipe()
        for fd in (self.wake, wake_write, 1):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # which neither of the two gets
        self.oom = OomScore()
        hide()
        self.poll.register(0, select.POLLIN)
        self.poll.register(self.wake, select.POLLIN)

    def serve(self) -> None:
        self.send(READY, 0, b"")
        while True:
            full = len(self.queue) > QUEUE
            for fd, _ in self.poll.poll():
                try:
                    self.attend(fd)
                except Exception:  # noqa: BLE001, S112  # whatever programs do to their pipes
                    continue
            if full != (len(self.queue) > QUEUE):
                self.hold(len(self.queue) > QUEUE)

    def attend(self, fd: int) -> None:
        """Something can be done here: or could, before what was done for another descriptor."""
        if fd == 0:
            self.receive()
        elif fd == self.wake:
            self.reap()
        elif fd == 1:
            self.flush()
        elif fd in self.by_fd:
            self.move(fd, self.by_fd[fd])
        elif fd in self.tied:
            self.end_with(fd)

    def hold(self, full: bool) -> None:  # noqa: FBT001
        for fd, program in self.by_fd.items():
            if fd in program.pipes:
                self.poll.register(fd, 0 if full else select.POLLIN)

    def receive(self) -> None:
        block = os.read(0, BLOCK)
        if not block:
            os._exit(0)  # whoever made the box is gone: this is the end of everything in it
        self.received += block
        while len(self.received) >= HEAD:
            length = int.from_bytes(self.received[:4], "big")
            if length > MOST_FRAME:
                os._exit(1)
            if len(self.received) < HEAD + length:
                return
            number = int.from_bytes(self.received[5:HEAD], "big")
            content = bytes(self.received[HEAD : HEAD + length])
            kind = self.received[4]
            del self.received[: HEAD + length]
            self.answer(kind, number, content)

    def answer(self, kind: int, number: int, content: bytes) -> None:
        try:
            if kind == RUN:
                self.run(number, content)
            elif kind == INPUT and number in self.programs:
                self.take(self.programs[number], content)
            elif kind == KILL:
                if os.getppid() == int(content):  # else it would kill everything of its user's
                    os.kill(-1, 9)
                self.send(KILLED, number, b"")
            elif kind == FACTS:
                self.send(FACTS, number, self.facts())
            elif kind in (LOOK, TIE, SIGNAL):
                self.answer_about(kind, number, *content.split(b"\0"))
        except ProcessLookupError:  # there was nobody to kill
            self.send(KILLED, number, b"")
        except Exception as e:  # noqa: BLE001  # the box must not end with a request it cannot serve
            reason = getattr(e, "strerror", None) or str(e) or type(e).__name__
            name = getattr(e, "filename", None)
            if isinstance(name, bytes):
                name = name.decode("utf-8", "replace")
            self.send(FAIL, number, (reason + (": " + str(name) if name else "")).encode())

    def run(self, number: int, content: bytes) -> None:
        """Content: how much output to keep, uid, gid, folder, is there input, argc, argv, env."""
        keep, uid, gid, cwd, has_input, count, *rest = content.split(b"\0")
        argv, env = rest[: int(count)], rest[int(count) :]
        program = Program(number, int(keep))
        program.before = self.facts()

        def begin(theirs: list[int]) -> int:
            if (int(uid), int(gid)) == (0, 0):
                return spawn(argv, env, cwd, theirs)
            return spawn_as((int(uid), int(gid)), argv, env, cwd, theirs)

        self.start(program, begin, int(has_input))

    def answer_about(
        self,
        kind: int,
        number: int,
        pid: bytes,
        other: bytes,
        scope: bytes = b"",
        more: bytes = b"",
    ) -> None:
        """Of a process: what its terminal's foreground does, who has to end with it, or a signal."""
        if kind == SIGNAL:
            sent = signalled(int(pid), int(other), scope.decode(), [int(p) for p in more.split()])
            self.send(SIGNAL, number, b" ".join(b"%d" % p for p in sent))
            return
        if kind == TIE:
            self.tie(int(pid), int(other))
            self.send(TIE, number, b"")
            return
        owner, control = who_may_look(int(pid)), other.decode()
        # A child prints what it sees: whom it looks at may make it wait.
        self.start(
            Program(number, BLOCK), lambda pipes: look_as(owner, int(pid), control, pipes), 0
        )

    def tie(self, pid: int, other: int) -> None:
        """Python 3.8 cannot: then `other` is for the host to end."""
        first = os.pidfd_open(pid)
        try:
            self.tied[first] = os.pidfd_open(other)
        except BaseException:
            os.close(first)
            raise
        self.poll.register(first, select.POLLIN)

    def end_with(self, fd: int) -> None:
        other = self.tied.pop(fd)
        self.rest(fd)
        os.close(fd)
        try:
            signal.pidfd_send_signal(other, 9)
        finally:
            os.close(other)

    def start(self, program: Program, begin: Callable[[list[int]], int], has_input: int) -> None:
        theirs: list[int] = []
        try:
            ours = self.pipes_for(program, theirs, has_input)
            with self.oom:
                program.pid = begin(theirs)
        except BaseException:
            self.forget(program)
            raise
        finally:
            for fd in theirs:
                if fd != self.null:
                    os.close(fd)
        self.programs[program.number] = self.by_pid[program.pid] = program
        for fd in ours:
            self.poll.register(fd, select.POLLIN)

    def pipes_for(self, program: Program, theirs: list[int], has_input: int) -> list[int]:
        if has_input:
            fd, program.input = os.pipe()
            os.set_blocking(program.input, False)
            self.by_fd[program.input] = program
            theirs.append(fd)
        else:
            theirs.append(self.null)
        for stream in (OUT, ERR):
            ours, fd = os.pipe()
            theirs.append(fd)
            os.set_blocking(ours, False)
            program.pipes[ours] = stream
            self.by_fd[ours] = program
        return list(program.pipes)

    def take(self, program: Program, content: bytes) -> None:
        """Some of a program's input; nothing: that was all of it."""
        if program.input < 0:
            return
        program.waiting += content
        program.all_given = not content
        self.poll.register(program.input, select.POLLOUT)

    def move(self, fd: int, program: Program) -> None:
        if fd == program.input:
            self.give(program)
        elif self.read(program, fd) == 0:
            self.close(program, fd)

    def give(self, program: Program) -> None:
        try:
            program.waiting = program.waiting[os.write(program.input, program.waiting) :]
        except BlockingIOError:
            return
        except OSError:  # it does not read on; that is its own affair
            self.close(program, program.input)
            return
        if program.waiting:
            return
        if program.all_given:
            self.close(program, program.input)
        else:
            self.rest(program.input)
            self.send(MORE, program.number, b"")

    def read(self, program: Program, fd: int) -> int | None:
        """Pass on what there is, as far as it is kept. None: nothing now; 0: nothing any more."""
        try:
            block = os.read(fd, BLOCK)
        except BlockingIOError:
            return None
        except OSError:
            return 0
        stream = program.pipes[fd]
        kept = block[: program.left[stream]]
        program.left[stream] -= len(kept)
        if len(kept) < len(block):
            program.truncated = 1
        if kept:
            self.send(stream, program.number, kept)
        return len(block)

    def reap(self) -> None:
        os.read(self.wake, BLOCK)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.by_pid:
                self.finish(self.by_pid.pop(pid), status)

    def finish(self, program: Program, status: int) -> None:
        """It has ended: what is in its pipes still counts, whoever else holds them does not."""
        for fd in list(program.pipes):
            seen = 0
            while seen < PIPE:
                size = self.read(program, fd)
                if not size:
                    break
                seen += size
        self.forget(program)
        code = 128 + (status & 127) if status & 127 else status >> 8
        said = b"%d\0%d\0" % (code, program.truncated)
        self.send(EXIT, program.number, said + program.before + b"\0" + self.facts())

    def forget(self, program: Program) -> None:
        self.programs.pop(program.number, None)
        for fd in [program.input, *program.pipes]:
            self.close(program, fd)

    def close(self, program: Program, fd: int) -> None:
        if self.by_fd.pop(fd, None) is None:
            return
        self.rest(fd)
        os.close(fd)
        program.pipes.pop(fd, None)
        if fd == program.input:
            program.input, program.waiting = -1, b""

    def rest(self, fd: int) -> None:
        """Wait for it no longer."""
        try:
            self.poll.unregister(fd)
        except KeyError:
            return

    def send(self, kind: int, number: int, content: bytes) -> None:
        self.queue += len(content).to_bytes(4, "big") + bytes((kind,))
        self.queue += number.to_bytes(4, "big") + content
        self.flush()

    def flush(self) -> None:
        try:
            while self.queue:
                del self.queue[: os.write(1, bytes(self.queue[:BLOCK]))]
        except BlockingIOError:
            self.poll.register(1, select.POLLOUT)
            return
        except OSError:
            os._exit(0)
        self.rest(1)

    def facts(self) -> bytes:
        """What the box uses: as the kernel writes it, and the number of open terminals."""
        read = [os.pread(fd, 4096, 0) if fd >= 0 else b"" for fd in self.measures]
        try:
            terminals = sum(name.isdigit() for name in os.listdir("/dev/pts"))
        except OSError:
            terminals = 0
        return b"\0".join([*read, b"%d" % terminals])


class OomScore:
    """While a program is started, what it inherits: this process's own is lowered again."""

    def __init__(self) -> None:
        self.fd = first_that_opens(("/proc/self/oom_score_adj",), os.O_RDWR)
        self.own = int(os.pread(self.fd, 16, 0)) if self.fd >= 0 else 0

    def set(self, score: int) -> None:
        if self.fd >= 0:
            try:
                os.pwrite(self.fd, b"%d" % min(score, 1000), 0)
            except OSError:
                self.fd = -1

    def __enter__(self) -> None:
        self.set(self.own + EASIER_TO_KILL)

    def __exit__(self, *_: object) -> None:
        self.set(self.own)


if __name__ == "__main__":
    Server().serve()
