"""What the first process of a box does for the rest of its life: start programs, reap them."""

import contextlib
import os
import select
import signal
import socket
from collections.abc import Iterator
from typing import Any

from sandbox.runtime import family
from sandbox.runtime.embedded import spawn, still, unpack, wire


def serve(channel: socket.socket) -> None:
    """Returns when the host lets go of the box, which is the end of everything in it."""
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    running: dict[int, socket.socket] = {}
    watched: list[socket.socket | int] = [channel, wake_read]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if wake_read in ready:
            _drain(wake_read)
            _tell_ended(running)
        if channel in ready:
            request, fds = wire.receive(channel)
            if request is None:
                return
            _answer(request, fds, running)


def _answer(request: dict[str, Any], fds: list[int], running: dict[int, socket.socket]) -> None:
    if not fds:
        return  # we have all the descriptors we may have; whoever asked sees their end closed
    reply = socket.socket(fileno=fds.pop(0))
    try:
        match request["op"]:
            case "spawn":
                running[spawn.with_streams(request, fds)] = reply
            case "terminal":
                pid, master = spawn.on_terminal(request, fds)
                running[pid] = reply
                _tell(reply, {"terminal": True}, [master])
                os.close(master)
            case "put":
                running[unpack.put(fds[0], request["folder"])] = reply
            case "clock":
                _tell(reply, {"exit": 0, "now_ns": still.now_ns()})
                reply.close()
            case "signal":
                names = ("shell", "number", "scope", "more")
                sent = family.signalled(*(request[name] for name in names))
                _tell(reply, {"exit": 0, "pids": sent})
                reply.close()
            case "kill":
                _kill_all(running)
                _tell(reply, {"exit": 0})
                reply.close()
            case other:
                raise OSError(f"unknown request {other}")
    except Exception as e:  # noqa: BLE001 - whatever was asked for, the box goes on
        _tell(reply, {"error": _why(e)})
        reply.close()
    finally:
        for fd in fds:
            os.close(fd)


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.strerror}: {error.filename}"
    return str(error) or type(error).__name__


def _kill_all(running: dict[int, socket.socket]) -> None:
    """Everything in the box but ourselves; whoever waits for one of them is told."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    _tell_ended(running, wait=True)


def _tell_ended(running: dict[int, socket.socket], *, wait: bool = False) -> None:
    for pid, status in _ended(0 if wait else os.WNOHANG):
        if reply := running.pop(pid, None):
            _tell(reply, {"exit": os.waitstatus_to_exitcode(status)})
            reply.close()


def _ended(options: int) -> Iterator[tuple[int, int]]:
    while True:
        try:
            pid, status = os.waitpid(-1, options)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


def _drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(fd, 512):
            pass


def _tell(reply: socket.socket, message: dict[str, Any], fds: list[int] | None = None) -> None:
    """Whoever asked may be gone: that is no trouble of ours."""
    with contextlib.suppress(OSError):
        wire.send(reply, message, fds)
