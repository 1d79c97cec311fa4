"""What Docker's wires and its look at the foreground are made of, and what they outlive."""

import contextlib
import os
import select
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sandbox.audit.conformance.terminals import read_all, read_until, terminal
from sandbox.audit.conformance.wires import Received, wires_of
from sandbox.errors import RuntimeFault
from sandbox.runtime.base import CONTROL, OUTPUT, STATUS, Box, Pty
from sandbox.runtime.docker import DockerRuntime
from sandbox.runtime.docker.box import LOOK_SECONDS
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.store import Store
from tests.support.tars import Entry, make_tar
from tests.support.tinyimage import with_layer
from tests.support.waiting import eventually

pytestmark = [pytest.mark.box, pytest.mark.docker]

ASK = f'read -r said <&{CONTROL}; echo "$said" >&{OUTPUT}; read -r said <&{CONTROL}'
HOLDERS = 'for p in /proc/[0-9]*; do read -r n < "$p/comm"; [ "$n" = wires ] && echo "${p#/proc/}"; done; true'


@pytest.fixture(scope="module")
def runtime(docker_runtime: DockerRuntime) -> DockerRuntime:
    return docker_runtime


@pytest.fixture
def box(runtime: DockerRuntime, spec: BoxSpec) -> Iterator[Box]:
    with runtime.create(spec) as made:
        yield made


def sh(box: Box, script: str) -> str:
    result = box.exec(["sh", "-c", script], seconds=30)
    assert result.exit_code == 0, result
    return result.stdout.decode()


def holders(box: Box) -> list[str]:
    """Process ids of what holds wires in the box."""
    return sh(box, HOLDERS).split()


def test_a_holder_stands_still_and_holds_nothing_once_its_pipes_are_taken(box: Box):
    with terminal(box, "bash", "-c", ASK, wires=True):
        (holder,) = holders(box)
        said = sh(box, f"grep ^State /proc/{holder}/status; ls -A /proc/{holder}/fd")
        assert said.split() == ["State:", "T", "(stopped)"]
    assert holders(box) == []


def test_a_holder_that_is_woken_or_told_to_end_goes_on(box: Box):
    with terminal(box, "bash", "-c", ASK, wires=True) as pty:
        for signal in ("CONT", "TERM", "HUP", "INT", "USR1", "CONT"):
            sh(box, f"kill -{signal} {holders(box)[0]}")
        wires_of(pty).send(b"still\n", 30)
        Received(wires_of(pty)).until(lambda s: s.output == b"still\n", "it answers")


def test_when_the_holder_is_killed_the_wires_are_at_their_end_and_the_terminal_is_not(box: Box):
    with terminal(box, "bash", "-c", "read -r said; echo again $said", wires=True) as pty:
        sh(box, f"kill -KILL {holders(box)[0]}")
        Received(wires_of(pty)).until(lambda s: s.ended, "there is an end")
        os.write(pty.fileno(), b"and\n")
        read_until(pty, b"again and")
    with terminal(box, "bash", "-c", ASK, wires=True) as pty:
        wires_of(pty).send(b"anew\n", 30)
        Received(wires_of(pty)).until(lambda s: s.output == b"anew\n", "it answers")


def test_a_holder_ends_with_the_program_though_the_terminal_is_still_open(box: Box):
    with terminal(box, "bash", "-c", ASK, wires=True) as pty:
        pid = sh(box, f"stat -c %n /proc/[0-9]*/fd/{CONTROL}").split("/")[2]
        sh(box, f"kill -KILL {pid}")
        assert eventually(lambda: holders(box) == [])
        assert pty.wait(10) == 137


@pytest.mark.parametrize("closed", [f"{STATUS}>&-", f"{OUTPUT}>&-", f"{STATUS}>&- {OUTPUT}>&-"])
def test_a_wire_that_the_program_closes_leaves_the_others(box: Box, closed: str):
    script = f"exec {closed}; echo ready; read -r said <&{CONTROL}; echo heard $said"
    with terminal(box, "bash", "-c", script, wires=True) as pty:
        read_until(pty, b"ready")
        time.sleep(0.3)
        assert wires_of(pty).send(b"this\n", 30)
        read_until(pty, b"heard this")


def test_much_is_received_fast_and_in_bounded_steps(box: Box):
    script = f"head -c 200M /dev/zero >&{OUTPUT}; printf end >&{STATUS}"
    with terminal(box, "bash", "-c", script, wires=True) as pty:
        wires, size, status = wires_of(pty), 0, b""
        while True:
            select.select(wires.filenos(), [], [], 30)
            try:
                output, more = wires.receive()
            except EOFError:
                break
            assert len(output) <= 1 << 18
            size, status = size + len(output), status + more
    assert (size, status) == (200 << 20, b"end")


def test_a_terminal_can_be_read_and_written_without_waiting(box: Box):
    with terminal(box, "sh", "-c", "stty raw -echo; printf ready; sleep 60", wires=True) as pty:
        read_until(pty, b"ready")
        os.set_blocking(pty.fileno(), False)
        with pytest.raises(BlockingIOError):
            os.read(pty.fileno(), 100)
        block, taken = bytes(1 << 16), 0
        with contextlib.suppress(BlockingIOError):
            while taken < 64 << 20:
                taken += os.write(pty.fileno(), block)
        assert 0 < taken < 64 << 20


def test_without_bash_there_are_no_wires_and_it_is_said_why(
    runtime: DockerRuntime, spec: BoxSpec, store: Store
):
    without = with_layer(store, spec.image, make_tar([Entry(name="usr/bin/.wh.bash")]))
    with runtime.create(replace(spec, image=without)) as box:
        with pytest.raises(RuntimeFault, match="bash"):
            box.open_pty(["cat"], wires=True)
        assert eventually(lambda: holders(box) == [])
        with terminal(box, "echo", "plain") as pty:
            assert read_all(pty) == b"plain\r\n"


def test_without_python_there_are_wires_and_the_foreground_is_seen_from_here_at_most(
    runtime: DockerRuntime, spec: BoxSpec, store: Store
):
    without = with_layer(store, spec.image, make_tar([Entry(name="usr/bin/.wh.python3")]))
    with runtime.create(replace(spec, image=without)) as box:
        with terminal(box, "bash", "-c", ASK, wires=True) as pty:
            assert told_rightly(pty, "bash", "control")
            wires_of(pty).send(b"this\n", 30)
            Received(wires_of(pty)).until(lambda s: s.output == b"this\n", "it answers")
        assert eventually(lambda: holders(box) == [])


def told_rightly(pty: Pty, command: str, doing: str) -> bool:
    """In the end, and by root here who can look; to others nothing may be told, but never a guess."""

    def told() -> tuple[str, str] | None:
        found = pty.foreground()
        return None if found is None else (found.command, found.doing)

    wanted = {(command, doing)} if os.geteuid() == 0 else {(command, doing), None}
    return eventually(lambda: told() in wanted)


def test_programs_of_two_users_in_front_are_seen(box: Box):
    become = "import os; os.setgid(1234); os.setuid(1234); os.execvp('cat', ['cat'])"
    with terminal(box, "bash", "-c", f'python3 -c "{become}"; true') as pty:
        os.write(pty.fileno(), b"line\n")
        read_until(pty, b"line\r\nline\r\n")
        assert told_rightly(pty, "cat", "input")


def test_of_a_box_that_does_not_answer_at_once_nothing_is_told(box: Box):
    """Nor looked up from here: whoever asks has a clock that runs."""
    with terminal(box, "cat") as pty:
        assert told_rightly(pty, "cat", "input")
        box.freeze()
        before = time.monotonic()
        assert pty.foreground() is None
        assert time.monotonic() - before < LOOK_SECONDS + 1
        box.thaw()
        assert told_rightly(pty, "cat", "input")


def test_what_hides_from_its_own_user_is_not_guessed_at(box: Box):
    hide = "import ctypes; ctypes.CDLL(None).prctl(4, 0); print('hidden', flush=True); input()"
    with terminal(box, "python3", "-c", hide) as pty:
        read_until(pty, b"hidden")
        assert told_rightly(pty, "python3", "input")


def test_whom_it_looks_at_cannot_hold_up_the_box(box: Box):
    """The one that looks can be stopped by root in the box: then it says nothing, and no more."""
    stop = """
import os, signal
while True:
    for name in os.listdir('/proc'):
        try:
            if name.isdigit() and int(name) > 1 and int(name) != os.getpid():
                with open(f'/proc/{name}/stat') as f:
                    if int(f.read().rpartition(')')[2].split()[1]) == 1:
                        os.kill(int(name), signal.SIGSTOP)
        except OSError:
            pass
"""
    with terminal(box, "cat") as pty, contextlib.closing(box.open_pty(["python3", "-c", stop])):
        for _ in range(3):
            pty.foreground()
        assert box.stats().processes > 0
        box.kill_all()
        assert sh(box, "echo fine") == "fine\n"
