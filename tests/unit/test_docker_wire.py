"""The engine's frames, however they are cut; and its answers to a request to start a program."""

import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import RuntimeFault
from sandbox.runtime.docker.address import Address
from sandbox.runtime.docker.wire import Demultiplexer, read_until, start_exec

frames = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=10)


def encode(stream: int, content: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(content).to_bytes(4, "big") + content


@given(frames=frames, cut=st.integers(1, 20), keep=st.integers(0, 100))
def test_streams_are_told_apart_however_the_frames_are_cut(
    frames: list[tuple[int, bytes]], cut: int, keep: int
):
    wire = b"".join(encode(stream, content) for stream, content in frames)
    kept = Demultiplexer(keep)
    for start in range(0, len(wire), cut):
        kept.feed(wire[start : start + cut])
    out = b"".join(content for stream, content in frames if stream == 1)
    err = b"".join(content for stream, content in frames if stream == 2)
    assert bytes(kept.stdout) == out[:keep]
    assert bytes(kept.stderr) == err[:keep]
    assert kept.truncated == (max(len(out), len(err)) > keep)


def test_not_one_byte_more_is_read_than_wanted():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"head\r\n\r\nbody")
        assert read_until(ours, b"\r\n\r\n", 100) == b"head\r\n\r\n"
        assert ours.recv(100) == b"body"


def answered(folder: Path, answer: bytes) -> socket.socket:
    """What start_exec makes of this answer."""
    path = folder / "engine.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            near, _ = server.accept()
            with near:
                near.recv(1 << 16)
                near.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            return start_exec(Address.parse(f"unix://{path}"), "1.41", "id", tty=False)
        finally:
            thread.join()


@pytest.mark.parametrize("status", [b"101 UPGRADED", b"200 OK"])
def test_output_that_comes_with_the_headers_is_not_lost(tmp_path: Path, status: bytes):
    with answered(tmp_path, b"HTTP/1.1 " + status + b"\r\nUpgrade: tcp\r\n\r\nearly") as sock:
        assert sock.recv(100) == b"early"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            b'HTTP/1.1 409 Conflict\r\nContent-Length: 29\r\n\r\n{"message":"it is not there"}',
            "it is not there",
        ),
        (b'HTTP/1.1 404 Not Found\r\nContent-Length: 18\r\n\r\n{"message":"gone"}', "gone"),
        (b"HTTP/1.1 500 Oh no\r\n\r\n", "500 Oh no"),
        (b"nonsense", "nonsense"),
        (b"", "closed the connection"),
    ],
)
def test_a_refusal_is_a_fault_in_the_engine_s_words(tmp_path: Path, answer: bytes, words: str):
    with pytest.raises(RuntimeFault, match=words):
        answered(tmp_path, answer)
