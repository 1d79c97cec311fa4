"""The wires of a terminal over Docker: at the other end of the socket there is no engine but us."""

import socket
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import RuntimeFault
from sandbox.runtime.docker.wires import BLOCK, DockerWires, Sorter, pid_of

OUTPUT, STATUS = 1, 2


def frame(stream: int, content: bytes) -> bytes:
    return bytes((stream, 0, 0, 0)) + len(content).to_bytes(4, "big") + content


@pytest.fixture
def ends() -> Iterator[tuple[DockerWires, socket.socket]]:
    near, far = socket.socketpair()
    wires = DockerWires(near)
    with far:
        yield wires, far
    wires.close()


@given(
    st.lists(st.tuples(st.sampled_from([OUTPUT, STATUS]), st.binary(max_size=40)), max_size=12),
    st.lists(st.integers(1, 25), min_size=1, max_size=20),
)
def test_frames_are_put_together_however_they_are_cut(
    sent: list[tuple[int, bytes]], cuts: list[int]
):
    stream = b"".join(frame(*one) for one in sent)
    sorter, at, n = Sorter(), 0, 0
    output = status = b""
    while at < len(stream):
        step = cuts[n % len(cuts)]
        parts = sorter.feed(stream[at : at + step])
        output, status = output + parts[0], status + parts[1]
        at, n = at + step, n + 1
    assert output == b"".join(content for which, content in sent if which == OUTPUT)
    assert status == b"".join(content for which, content in sent if which == STATUS)


def test_nothing_is_waited_for(ends: tuple[DockerWires, socket.socket]):
    wires, far = ends
    assert wires.receive() == (b"", b"")
    far.sendall(frame(OUTPUT, b"half")[:-2])
    assert wires.receive() == (b"ha", b"")
    far.sendall(b"lf" + frame(STATUS, b"said"))
    assert wires.receive() == (b"lf", b"said")


def test_what_is_received_at_once_is_bounded(ends: tuple[DockerWires, socket.socket]):
    wires, far = ends
    far.setblocking(False)  # noqa: FBT003
    big = frame(OUTPUT, bytes(8 * BLOCK))
    sent = far.send(big)
    seen = 0
    while seen < sent - 8:
        output, _ = wires.receive()
        assert 0 < len(output) <= BLOCK
        seen += len(output)


def test_the_end_is_told_after_the_last_byte(ends: tuple[DockerWires, socket.socket]):
    wires, far = ends
    far.sendall(frame(STATUS, b"last"))
    far.close()
    assert wires.receive() == (b"", b"last")
    for _ in range(2):
        with pytest.raises(EOFError):
            wires.receive()
    assert not wires.send(b"x" * BLOCK, 1.0)


def test_sending_waits_for_no_longer_than_told(ends: tuple[DockerWires, socket.socket]):
    wires, far = ends
    began = time.monotonic()
    assert not wires.send(bytes(64 << 20), 0.3)
    assert 0.3 <= time.monotonic() - began < 10
    far.close()


def test_closed_wires_have_come_to_their_end(ends: tuple[DockerWires, socket.socket]):
    wires, far = ends
    wires.close()
    wires.close()
    assert far.recv(1) == b""
    assert wires.filenos() == ()
    assert not wires.send(b"x", 1.0)
    with pytest.raises(EOFError):
        wires.receive()


def test_a_holder_that_does_not_start_says_why(ends: tuple[DockerWires, socket.socket]):
    wires, far = ends
    far.sendall(frame(STATUS, b"OCI runtime exec failed: no sh\n"))
    far.close()
    with pytest.raises(RuntimeFault, match="no sh"):
        pid_of(wires, 5)


def test_a_holder_tells_its_process_id(ends: tuple[DockerWires, socket.socket]):
    wires, far = ends
    far.sendall(frame(OUTPUT, b"12") + frame(OUTPUT, b"34\n"))
    assert pid_of(wires, 5) == 1234


def test_a_holder_that_says_nothing_is_not_waited_for(ends: tuple[DockerWires, socket.socket]):
    with pytest.raises(RuntimeFault, match="cannot open a terminal"):
        pid_of(ends[0], 0.1)
