"""One box of the embedded runtime: the contract, on top of its present body."""

import itertools
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from sandbox.errors import RuntimeFault
from sandbox.runtime import limits
from sandbox.runtime.base import STATUS_BYTES, Change, ExecResult, Scope, Stats
from sandbox.runtime.embedded import wire
from sandbox.runtime.embedded.body import Body
from sandbox.runtime.embedded.pty import EmbeddedPty, EmbeddedWires
from sandbox.runtime.embedded.streams import TIMED_OUT, Stream, follow, status
from sandbox.runtime.ready import readable
from sandbox.runtime.spec import BoxSpec, Snapshot

_BLOCK = 1 << 16
ANSWER_SECONDS, PUT_SECONDS = 30.0, 600.0
"""What runs in a box can keep its first process from answering: by stopping what that starts, for
one. Nobody waits for it without an end."""
NOTHING = Stats(
    memory_bytes=0, processes=0, cpu_seconds=0, disk_bytes=0, terminals=0, oom_kills=0,
    forks_refused=0,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What a box needs of the runtime it belongs to."""

    ask_zygote: Callable[[dict[str, Any], list[int]], socket.socket]
    make: Callable[[BoxSpec], Body]
    create: Callable[[BoxSpec], "EmbeddedBox"]
    dispose: Callable[[Body], None]
    """Destroy it, some time soon."""
    watch: Callable[["EmbeddedBox"], None]
    """Hold it to its disk limit from now on."""
    scratch: Callable[[], AbstractContextManager[Path]]
    forget: Callable[["EmbeddedBox"], None]


class EmbeddedBox:
    def __init__(self, spec: BoxSpec, body: Body, house: House) -> None:
        self.id = body.name
        self.spec = spec
        self._body = body
        self._house = house
        self._lock = threading.Lock()
        self._told = NOTHING
        self._over = ""
        """Why its watch stopped it, and that this was not told yet."""
        self._measured = body
        """What its watch looked at last."""
        self._kept = ExitStack()
        """What is needed as long as it is."""

    def open_pty(
        self,
        argv: Sequence[str],
        *,
        rows: int = 40,
        cols: int = 160,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        wires: bool = False,
    ) -> EmbeddedPty:
        request = self._program("terminal", argv, env, cwd, user) | {"pty": [rows, cols]}
        with _faults("open a terminal in the box"), ExitStack() as undo:
            pipes = EmbeddedWires(self._body.host_ids(request["user"])) if wires else None
            if pipes:
                undo.callback(pipes.close)
            reply = self._body.ask(request, pipes.theirs if pipes else [])
            undo.callback(reply.close)
            message, fds = _answer(reply, ANSWER_SECONDS)
            for fd in fds:
                undo.callback(os.close, fd)
            if message is None or "error" in message:
                raise RuntimeFault(f"cannot start {argv[0]} in the box: {_said(message)}")
            if not fds:
                raise RuntimeFault("cannot open a terminal in the box: too many open files")
            if pipes:
                pipes.started()
            undo.pop_all()
        return EmbeddedPty(fds[0], reply, pipes)

    def exec(
        self,
        argv: Sequence[str],
        *,
        seconds: float,
        input: bytes = b"",  # noqa: A002 - subprocess calls it so
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        trusted: bool = False,
        output_bytes: int = STATUS_BYTES,
    ) -> ExecResult:
        request = self._program("spawn", argv, env, cwd, user)
        with _faults("run a program in the box"), ExitStack() as undo, ExitStack() as given:
            source = given.enter_context(tempfile.TemporaryFile())
            source.write(input)
            source.seek(0)
            out, err = (_stream(output_bytes, undo, given) for _ in range(2))
            fds = [source.fileno(), out.write_end, err.write_end]
            reply = self._ask_outside(request, fds) if trusted else self._body.ask(request, fds)
            undo.pop_all()
        with reply:
            message = follow(reply, (out, err), seconds)
        return ExecResult(
            exit_code=self._ending(argv[0], message),
            stdout=bytes(out.kept),
            stderr=bytes(err.kept),
            truncated=out.truncated or err.truncated,
            limit=self.reached(),
        )

    def put(self, archive: bytes, folder: str) -> None:
        with tempfile.TemporaryFile() as source:
            source.write(archive)
            source.seek(0)
            done = self._done({"op": "put", "folder": folder}, [source.fileno()], PUT_SECONDS)
        if done != {"exit": 0}:
            raise RuntimeFault(f"cannot unpack files in {folder} of the box: {_said(done)}")

    def get(self, path: str) -> Iterator[bytes]:
        read_end, write_end = os.pipe()
        try:
            if self._body.gone:
                raise RuntimeFault("the box is gone")
            fds = [self._body.mounts, write_end]
            clock = self._body.clock
            axis = clock.axis.told() if clock else None
            reply = self._house.ask_zygote({"op": "get", "path": path, "axis": axis}, fds)
        except BaseException as e:
            os.close(read_end)
            if isinstance(e, OSError | ValueError):
                raise RuntimeFault(f"cannot read {path[:1000]} of the box: {e}") from e
            raise
        finally:
            os.close(write_end)
        blocks = _blocks(path, read_end, reply)
        # Begin now: a path that is not there is told here, not at the first use.
        return itertools.chain([next(blocks)], blocks)

    def changes(self) -> list[Change]:
        return self._body.changes()

    def snapshot(self, tar: Path) -> Snapshot:
        return self._body.snapshot(self.spec, tar)

    def fork(self) -> "EmbeddedBox":
        with ExitStack() as kept:
            folder = kept.enter_context(self._house.scratch())
            snapshot = self.snapshot(folder / "changes.tar")
            box = self._house.create(replace(self.spec, snapshot=snapshot))
            box._kept = kept.pop_all()  # noqa: SLF001 - for a reset of it, until it is destroyed
        return box

    def reset(self) -> None:
        with self._lock:
            if self._body.gone:
                raise RuntimeFault("the box is gone")
            old, self._body = self._body, self._house.make(self.spec)
            self._over = ""
            self._told = NOTHING
            self._house.watch(self)  # which may have ended, with the box that is gone
        try:
            old.stop()
        finally:
            self._house.dispose(old)

    def freeze(self) -> None:
        with _faults("freeze the box"):
            self._body.freeze()

    def thaw(self) -> None:
        with _faults("thaw the box"):
            self._body.thaw()

    def kill_all(self) -> None:
        done = self._done({"op": "kill"}, [], ANSWER_SECONDS)
        if done != {"exit": 0}:
            raise RuntimeFault(f"cannot kill what runs in the box: {_said(done)}")

    def signal(
        self, shell: int, number: int, *, scope: Scope = "foreground", more: Sequence[int] = ()
    ) -> list[int]:
        request = {
            "op": "signal",
            "shell": shell,
            "number": int(number),
            "scope": scope,
            "more": list(more),
        }
        done = self._done(request, [], ANSWER_SECONDS)
        if done is None or "pids" not in done:
            raise RuntimeFault(f"cannot signal what runs in the box: {_said(done)}")
        return [int(pid) for pid in done["pids"]]

    def stats(self) -> Stats:
        used = self._body.usage()
        return Stats(
            memory_bytes=used.memory_bytes,
            processes=used.processes,
            cpu_seconds=used.cpu_seconds,
            disk_bytes=self._body.disk_bytes(),
            terminals=self._body.terminals(),
            oom_kills=used.oom_kills,
            forks_refused=used.forks_refused,
        )

    def disk_bytes(self) -> int:
        """For the watch over its disk limit."""
        self._measured = self._body
        return self._measured.disk_bytes()

    def over_disk(self, used: int) -> None:
        """Told by that watch: it has used too much."""
        del used
        with self._lock:
            if self._body.gone:
                return
            if self._body is not self._measured:
                self._house.watch(self)  # that was before a reset
                return
            self._over = limits.disk(self.spec.limits)
            self._body.stop()

    def reached(self) -> str:
        with self._lock:
            now = self._counts()
            words = limits.join([limits.reached(self._told, now, self.spec.limits), self._over])
            self._told, self._over = now, ""
            return words

    def stop(self) -> None:
        self._body.stop()

    def lost(self) -> bool:
        return self._body.lost()

    def destroy(self) -> None:
        with self._lock:  # a reset that is under way would give it another body
            self._house.forget(self)
            self._body.destroy()
        self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def _program(
        self,
        op: str,
        argv: Sequence[str],
        env: Mapping[str, str] | None,
        cwd: str | None,
        user: str | None,
    ) -> dict[str, Any]:
        if not argv:
            raise RuntimeFault("no program was named", retry=False)
        return {
            "op": op,
            "argv": list(argv),
            "env": self.spec.environment | dict(env or {}),
            "cwd": cwd or self.spec.workdir,
            "user": user or self.spec.user,
            "umask": self.spec.umask,
        }

    def _ask_outside(self, request: dict[str, Any], fds: list[int]) -> socket.socket:
        clock = self._body.clock
        more = {
            "op": "exec",
            "clock": clock is not None,
            "own_time": bool(clock and clock.own_time),
            "processors": self._body.processors,
            "rootless": os.geteuid() != 0,
            "owner": self._body.owner,
            "groups": self._body.group_paths,
            "open_files": self.spec.limits.open_files,
            "file_mib": self.spec.limits.file_mib,
        }
        if self._body.gone or self._body.stopped:
            raise RuntimeFault("the box is gone")
        with _faults("run a program in the box"):
            return self._house.ask_zygote(request | more, [self._body.pidfd, *fds])

    def _ending(self, name: str, message: dict[str, Any] | None) -> int | None:
        if message is TIMED_OUT:
            self._body.stop()
            return None
        if message is None and (self._over or self._body.ran_out()):
            # Stopped for its disk; or the kernel chose the first process, for it was the largest.
            return 128 + signal.SIGKILL
        if message is None or "error" in message:
            raise RuntimeFault(f"cannot run {name} in the box: {_said(message)}")
        return status(message["exit"])

    def _counts(self) -> Stats:
        """Of `stats`, what can run into a limit: asked after every program."""
        kills, refused = self._body.events()
        return replace(
            NOTHING, oom_kills=kills, forks_refused=refused, terminals=self._body.terminals()
        )

    def _done(
        self, request: dict[str, Any], fds: list[int], seconds: float
    ) -> dict[str, Any] | None:
        with self._body.ask(request, fds) as reply:
            return _answer(reply, seconds)[0]


class _faults:  # noqa: N801 - it reads as a statement
    """An OSError in the block is a RuntimeFault that says what was being done."""

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, tb: object) -> None:
        if isinstance(error, OSError | ValueError):  # the latter: a request that is too long
            raise RuntimeFault(f"cannot {self._doing}: {error}") from error


def _stream(most: int, undo: ExitStack, given: ExitStack) -> Stream:
    """Its end for the program is `given` away."""
    made = Stream(most)
    undo.callback(made.close)
    given.callback(os.close, made.write_end)
    return made


def _blocks(path: str, read_end: int, reply: socket.socket) -> Iterator[bytes]:
    with os.fdopen(read_end, "rb") as f, reply:
        while block := f.read(_BLOCK):
            yield block
        message, _ = wire.receive(reply)
    if message is None or "error" in message:
        raise RuntimeFault(f"cannot read {path} of the box: {_said(message)}")
    if "missing" in message:
        raise FileNotFoundError(path)


def _answer(reply: socket.socket, seconds: float) -> tuple[dict[str, Any] | None, list[int]]:
    if not readable([reply], seconds):
        return {"error": f"no answer in {seconds:.0f} seconds"}, []
    return wire.receive(reply)


def _said(message: dict[str, Any] | None) -> str:
    if message is None:
        return "the box is gone"
    return str(message.get("error", f"exit code {message.get('exit')}"))
