"""Work in a process of its own: its memory is only of this work, and a hang of it ends."""

import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.bench.machine import rss

ADDRESSES = 8 << 30
"""Of memory that may be asked for, not used: a hundred threads reserve much and take little."""
FILES = 8192
_CLEAN_UP_SECONDS = 30.0


def fresh(work: Callable[..., Any], *args: Any, seconds: float) -> Any:
    """What `work(*args)` returns, in a new interpreter; OSError if it fails or takes longer."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, work, args))
    process.start()
    theirs.close()
    patience = 0.0
    try:
        if not ours.poll(seconds):
            raise TimeoutError(f"not done after {seconds:.0f} s")
        patience = _CLEAN_UP_SECONDS
        error, value = ours.recv()
    except EOFError:
        process.join(patience)
        raise OSError(f"it died: exit code {process.exitcode}") from None
    finally:
        _end(process, patience)
        ours.close()
    if error:
        raise OSError(error)
    return value


class Memory:
    """How much more memory this process takes, at its peak, than when this was made."""

    def __init__(self) -> None:
        self._before = rss(os.getpid())
        with suppress(OSError):  # without it, an earlier peak counts too: never too little
            Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")

    def grown(self) -> int:
        """Now, not at its peak."""
        return rss(os.getpid()) - self._before

    def peak(self) -> int:
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return (int(line.split()[1]) << 10) - self._before
        return self.grown()


def _work(answers: Connection, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
    # ^C goes to all of us: whoever asked for the work ends it. A handler, for what is ignored is so
    # in every program that is started from here.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, hard), hard))
    try:
        answers.send(("", work(*args)))
    except KeyboardInterrupt:
        answers.send(("stopped", None))
    except BaseException as e:  # noqa: BLE001 - told to whoever asked
        answers.send((f"{type(e).__name__}: {e}", None))


def _end(process: BaseProcess, seconds: float) -> None:
    """It has finished, or is told to; whoever cannot clean up in time is killed."""
    process.join(seconds)
    if process.is_alive():
        process.terminate()
        process.join(_CLEAN_UP_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
