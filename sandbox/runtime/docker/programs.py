"""Programs in a container: by our server when it will do, by the engine where trust is asked."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Foreground, Stats
from sandbox.runtime.docker import facts, server, signalling
from sandbox.runtime.docker.channel import Call, Channel, Command
from sandbox.runtime.docker.container import MARKED, Container
from sandbox.runtime.docker.engine import faults
from sandbox.runtime.docker.execute import attend
from sandbox.runtime.docker.terminal import DETACH_KEYS, KILLED, NotInTime, foreground_of
from sandbox.runtime.docker.wire import start_exec

STARTS, START_PAUSE = 6, 0.1
_NO_ROOM = (
    *("read init-p", "resource temporarily unavailable", "Resource temporarily unavailable"),
    "cannot join",
)
LOOK_BYTES = 1 << 16
ANSWER_SECONDS, MOST = 30.0, 1 << 20
_NEVER_RAN = {125, 126, 127}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    exit_code: int | None
    """None when its time was up."""
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    before: Stats | None = None
    """What the box used when the program began, and `after`: when it ended; if it was asked."""
    after: Stats | None = None


class WentDown(Exception):
    """The box ended while the program ran; what it had printed by then."""

    def __init__(self, stdout: bytes, stderr: bytes) -> None:
        super().__init__()
        self.stdout, self.stderr = stdout, stderr


def run(channel: Channel, command: Command, seconds: float) -> Ended:
    """By the server. Raises WentDown, or RuntimeFault when it cannot be started."""
    try:
        call = channel.run(command)
    except RuntimeFault as e:
        if channel.broken:
            raise WentDown(b"", b"") from e
        raise
    if not channel.wait(call, time.monotonic() + seconds):
        if channel.broken:
            raise WentDown(bytes(call.stdout), bytes(call.stderr))
        return Ended(exit_code=None, stdout=bytes(call.stdout), stderr=bytes(call.stderr))
    if call.kind != server.EXIT:
        reason = call.answer.decode(errors="replace")
        raise RuntimeFault(f"cannot run {command.argv[0]} in {command.cwd}: {reason}")
    return _ended(call)


def ask(channel: Channel, kind: int, seconds: float, content: bytes = b"") -> bytes:
    """A question to the server itself."""
    call = channel.ask(kind, content)
    if not channel.wait(call, time.monotonic() + seconds):
        raise RuntimeFault("the box does not answer")
    return call.answer


def signal(
    container: Container, shell: int, number: int, scope: str, more: Sequence[int]
) -> list[int]:
    """By the server, or where there is none by a program."""
    channel = container.channel
    if channel is None:
        argv = signalling.command(shell, number, scope, more)
        command = Command(argv=argv, env={}, cwd="/", user=(0, 0), input=b"", output_bytes=MOST)
        pids = run_from_outside(container, command, ANSWER_SECONDS).stdout
    else:
        pids = ask(
            channel,
            server.SIGNAL,
            ANSWER_SECONDS,
            b"\0".join(
                (b"%d" % shell, b"%d" % number, scope.encode(), b" ".join(b"%d" % p for p in more))
            ),
        )
    return [int(pid) for pid in pids.split() if pid.isdigit()]


def look(channel: Channel, pid: int, control: str, seconds: float) -> Foreground | None:
    """What a child of the server sees of a terminal's foreground. None: nothing.

    Raises NotInTime. Whatever is wrong, it is no fault of the box: there is no more to be known.
    """
    try:
        call = channel.ask(server.LOOK, f"{pid}\0{control}".encode(), keep=LOOK_BYTES)
    except RuntimeFault as e:
        raise NotInTime from e
    if not channel.wait(call, time.monotonic() + seconds):
        raise NotInTime
    if call.kind != server.EXIT or len(call.stdout) >= LOOK_BYTES:
        return None
    return foreground_of(bytes(call.stdout).decode(errors="replace").split("\0"))


def run_from_outside(container: Container, command: Command, seconds: float) -> Ended:
    """By the engine: nothing that runs in the box has a part in it.

    In a box that is full of processes the engine's own may die before it becomes the program.
    """
    for _ in range(STARTS - 1):
        try:
            return _run_from_outside(container, command, seconds)
        except RuntimeFault as e:
            if not any(words in str(e) for words in _NO_ROOM):
                raise
            time.sleep(START_PAUSE)
    return _run_from_outside(container, command, seconds)


def _run_from_outside(container: Container, command: Command, seconds: float) -> Ended:
    mark = secrets.token_hex(8)  # which no program can know: it is on a command line that is gone
    exec_id = prepare(
        container,
        command.argv,
        tty=False,
        give=bool(command.input),
        env=command.env,
        cwd=command.cwd,
        user=f"{command.user[0]}:{command.user[1]}",
        mark=mark,
    )
    engine = container.engine
    with (
        faults(f"run {command.argv[0]}"),
        start_exec(engine.address, engine.version, exec_id, tty=False) as sock,
    ):
        output = attend(
            sock,
            give=command.input,
            over=lambda streaming: _over(container, exec_id, streaming=streaming),
            seconds=seconds,
            output_bytes=command.output_bytes,
        )
    if not output.in_time:
        return Ended(exit_code=None, stdout=output.stdout, stderr=output.stderr)
    if output.stderr.startswith(f"{MARKED}{mark}".encode()):
        said = output.stderr.decode(errors="replace").partition(mark)[2].strip(" :\n")
        raise RuntimeFault(f"cannot run {command.argv[0]} in {command.cwd}: {said}")
    return Ended(
        exit_code=_exit_code(container, exec_id, output.stdout, output.stderr),
        stdout=output.stdout,
        stderr=output.stderr,
        truncated=output.truncated,
    )


def prepare(
    container: Container,
    argv: Sequence[str],
    *,
    tty: bool,
    give: bool = True,
    env: Mapping[str, str],
    cwd: str | None,
    user: str,
    mark: str = "",
) -> str:
    """Tell the engine about a program; returns its name for it. `mark`: as Container.inside."""
    with faults(f"run {argv[0]}"):
        answer = container.engine.api.exec_create(
            container.id,
            container.inside(argv, mark),
            stdin=give,
            tty=tty,
            user=user,
            environment=dict(env),
            workdir=cwd,
            detach_keys=DETACH_KEYS,
        )
    return str(answer["Id"])


def _ended(call: Call) -> Ended:
    code, truncated, *rest = call.answer.split(b"\0")
    half = len(rest) // 2
    return Ended(
        exit_code=int(code),
        stdout=bytes(call.stdout),
        stderr=bytes(call.stderr),
        truncated=truncated == b"1",
        before=facts.parse(b"\0".join(rest[:half])),
        after=facts.parse(b"\0".join(rest[half:])),
    )


def _inspect(container: Container, exec_id: str) -> dict[str, object]:
    with faults("ask about the program"):
        return dict(container.engine.api.exec_inspect(exec_id))


def _over(container: Container, exec_id: str, *, streaming: bool) -> bool:
    """Not running may mean not yet: the engine opens the stream before it starts a program.

    Once the stream is closed it means never: the box went down in between.
    """
    state = _inspect(container, exec_id)
    return not state["Running"] and (state["ExitCode"] is not None or not streaming)


def _exit_code(container: Container, exec_id: str, stdout: bytes, stderr: bytes) -> int:
    """The program's own, or a RuntimeFault when it never ran."""
    state = _inspect(container, exec_id)
    code = state["ExitCode"]
    words = stdout.decode(errors="replace").strip()
    if not state["Pid"] and not _ran_under_podman(container, code, words):
        raise RuntimeFault(words or "the program was not started", retry=code is None)
    if not isinstance(code, int) or (code == KILLED and not container.running()):
        raise WentDown(stdout, stderr)
    return code


def _ran_under_podman(container: Container, code: object, words: str) -> bool:
    """Podman forgets the process id with the process; that it never ran is in what it "printed"."""
    if not isinstance(code, int) or not container.engine.is_podman:
        return False
    return code not in _NEVER_RAN or "OCI runtime" not in words
