"""A box: one container, and what can be done with it."""

import posixpath
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

import docker.errors

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import STATUS_BYTES, ExecResult, Seed
from sandbox.runtime.docker.engine import Engine, faults
from sandbox.runtime.docker.execute import attend
from sandbox.runtime.docker.tarstream import plain, root_owned
from sandbox.runtime.docker.terminal import DETACH_KEYS, LAUNCH, DockerPty
from sandbox.runtime.docker.wire import start_exec

ROOT = "0:0"
GONE_SECONDS = 60.0
HANG_UP_SECONDS = 10.0
NOT_FOUND, CONFLICT = 404, 409
KILLED = 137


class DockerBox:
    def __init__(self, engine: Engine, container: str, forget: Callable[[str], None]) -> None:
        self._engine = engine
        self._id = container
        self._stopped = False
        self._forget = forget
        """Told when the box has been destroyed."""

    @property
    def id(self) -> str:
        return self._id

    def start(self, seeds: Sequence[Seed]) -> None:
        """Fill the fresh container, then let it run."""
        for seed in seeds:
            with faults(f"put {seed.tar.name} into the box"), seed.tar.open("rb") as f:
                self._engine.api.put_archive(self._id, "/", f)
        with faults("start the box"):
            self._engine.api.start(self._id)

    def open_pty(
        self, argv: Sequence[str], *, rows: int = 40, cols: int = 160, cwd: str | None = None
    ) -> DockerPty:
        launch = ["sh", "-c", LAUNCH, "sh", str(rows), str(cols), *argv]
        exec_id = self._prepare(launch, tty=True, give=True, env=None, cwd=cwd)
        pty = DockerPty(self._engine, exec_id, self._hang_up)
        pty.start()
        return pty

    def exec(
        self,
        argv: Sequence[str],
        *,
        seconds: float,
        input: bytes = b"",  # noqa: A002
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        output_bytes: int = STATUS_BYTES,
    ) -> ExecResult:
        exec_id = self._prepare(argv, tty=False, give=bool(input), env=env, cwd=cwd)
        with (
            faults(f"run {argv[0]}"),
            start_exec(self._engine.address, self._engine.version, exec_id, tty=False) as sock,
        ):
            output = attend(
                sock,
                give=input,
                over=lambda streaming: self._over(exec_id, streaming=streaming),
                seconds=seconds,
                output_bytes=output_bytes,
            )
            if not output.in_time:
                self.stop()
        exit_code = self._exit_code(exec_id, output.stdout) if output.in_time else None
        return ExecResult(
            exit_code=exit_code,
            stdout=output.stdout,
            stderr=output.stderr,
            truncated=output.truncated,
        )

    def put(self, archive: bytes, folder: str) -> None:
        try:
            with faults(f"put files into {folder}"):
                self._engine.api.put_archive(self._id, "/", root_owned(archive, folder))
        except tarfile.TarError as e:
            raise RuntimeFault(f"cannot put files into {folder}: {e}", retry=False) from e

    def get(self, path: str) -> Iterator[bytes]:
        blocks = self._archive(path)
        folder = posixpath.dirname(path.rstrip("/"))

        def stream() -> Iterator[bytes]:
            try:
                with faults(f"read {path}"):
                    yield from plain(blocks, lambda name: self._archive(f"{folder}/{name}"))
            except tarfile.TarError as e:  # for example a file that shrank while it was read
                raise RuntimeFault(f"cannot read {path}: {e}") from e

        return stream()

    def stop(self) -> None:
        self._stopped = True
        try:
            with faults("stop the box"):
                self._engine.api.kill(self._id, "SIGKILL")
        except RuntimeFault:
            if self._running():
                raise

    def lost(self) -> bool:
        return not self._exists() if self._stopped else not self._running()

    def destroy(self) -> None:
        deadline = time.monotonic() + GONE_SECONDS
        pause = 0.05
        while not self._removed():
            if time.monotonic() > deadline:
                raise RuntimeFault(f"the engine does not remove container {self._id}")
            time.sleep(pause)
            pause = min(pause * 2, 1.0)
        self._forget(self._id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.destroy()

    def _prepare(
        self,
        argv: Sequence[str],
        *,
        tty: bool,
        give: bool,
        env: Mapping[str, str] | None,
        cwd: str | None,
    ) -> str:
        with faults(f"run {argv[0]}"):
            answer = self._engine.api.exec_create(
                self._id,
                list(argv),
                stdin=give,
                tty=tty,
                user=ROOT,
                environment=dict(env or {}),
                workdir=cwd,
                detach_keys=DETACH_KEYS,
            )
        return str(answer["Id"])

    def _inspect(self, exec_id: str) -> dict[str, object]:
        with faults("ask about the program"):
            return dict(self._engine.api.exec_inspect(exec_id))

    def _over(self, exec_id: str, *, streaming: bool) -> bool:
        """Not running may mean not yet: the engine opens the stream before it starts a program.

        Once the stream is closed it means never: the box went down in between.
        """
        state = self._inspect(exec_id)
        return not state["Running"] and (state["ExitCode"] is not None or not streaming)

    def _exit_code(self, exec_id: str, said: bytes) -> int:
        """The program's own, or a RuntimeFault when it never ran or the box went down with it."""
        state = self._inspect(exec_id)
        code = state["ExitCode"]
        if not state["Pid"]:
            words = said.decode(errors="replace").strip()
            raise RuntimeFault(words or "the program was not started", retry=code is None)
        if not isinstance(code, int) or (code == KILLED and not self._running()):
            raise RuntimeFault("the box was stopped while the program ran")
        return code

    def _archive(self, path: str) -> Iterator[bytes]:
        try:
            with faults(f"read {path}"):
                blocks, _ = self._engine.api.get_archive(self._id, path)
        except RuntimeFault as e:
            if _no_such_path(e.__cause__) and self._exists():
                raise FileNotFoundError(path) from e
            raise
        return iter(blocks)

    def _hang_up(self, pid: int) -> None:
        """As a terminal that goes away does. A stopped program gets it when it continues."""
        script = 'kill -HUP "$1" && kill -CONT "$1"'
        self.exec(["sh", "-c", script, "sh", str(pid)], seconds=HANG_UP_SECONDS)

    def _exists(self) -> bool:
        try:
            self._engine.api.inspect_container(self._id)
        except docker.errors.NotFound:
            return False
        return True

    def _running(self) -> bool:
        try:
            with faults("ask about the box"):
                return bool(self._engine.api.inspect_container(self._id)["State"]["Running"])
        except RuntimeFault as e:
            if isinstance(e.__cause__, docker.errors.NotFound):
                return False
            raise

    def _removed(self) -> bool:
        """Ask for the removal once; True when the engine no longer knows the container."""
        with faults("destroy the box"):
            try:
                self._engine.api.remove_container(self._id, force=True, v=True)
            except docker.errors.NotFound:
                return True
            except docker.errors.APIError as e:
                if e.status_code != CONFLICT:  # being removed by somebody else: wait for it
                    raise
            return not self._exists()


def _no_such_path(error: BaseException | None) -> bool:
    """The engine has a status for a missing path, but not for a path through a file."""
    if isinstance(error, docker.errors.NotFound):
        return True
    words = str(error.explanation) if isinstance(error, docker.errors.APIError) else ""
    return words.endswith("not a directory")
