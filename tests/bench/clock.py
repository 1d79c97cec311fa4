"""Times of one subject, by measure; and what could not be measured, with the reason."""

import os
import select
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import docker.errors
import requests

from sandbox.errors import Fault

CREATE = "create"
FIRST = "create → first command done"
EXEC = "a further command"
PUT, GET = "put 100 kB", "get 100 kB"
PTY = "terminal → prompt of sh"
CHANGES = "changes, 200 changed files"
FORK = "fork, 200 changed files → first command done"
RESET = "reset"
RESET_FIRST = "reset → first command done"
DESTROY = "destroy"
LIFE = "create, one command, destroy"
MEASURES = (CREATE, FIRST, EXEC, PUT, GET, PTY, CHANGES, FORK, RESET, RESET_FIRST, DESTROY, LIFE)

PROMPT_SECONDS = 30.0
TROUBLE = (
    Fault, OSError, AttributeError, TypeError, AssertionError,
    docker.errors.DockerException, requests.RequestException,
)  # fmt: skip
"""What a runtime that lacks something, or an engine in trouble, may raise."""


class Clock:
    def __init__(self) -> None:
        self.ms: dict[str, list[float]] = defaultdict(list)
        self.failed: dict[str, str] = {}

    def note(self, measure: str, began: float) -> float:
        """It has just ended. Returns what it took, in milliseconds."""
        return self.add(measure, (time.perf_counter() - began) * 1e3)

    def add(self, measure: str, ms: float) -> float:
        self.ms[measure].append(ms)
        return ms

    @contextmanager
    def timed(self, measure: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.note(measure, began)

    @contextmanager
    def optional(self, measure: str) -> Iterator[None]:
        """As `timed`; but who cannot do it still does the rest of the round."""
        try:
            with self.timed(measure):
                yield
        except TROUBLE as e:
            self.failed.setdefault(measure, f"{type(e).__name__}: {e}")

    @contextmanager
    def attempt(self, measure: str) -> Iterator[None]:
        """The same for what is not timed as a whole."""
        try:
            yield
        except TROUBLE as e:
            self.failed.setdefault(measure, f"{type(e).__name__}: {e}")


class Subject(Protocol):
    """Something that makes boxes, in its own way."""

    @property
    def name(self) -> str: ...

    def round(self, clock: Clock) -> None:
        """Make a box, do with it all that can be measured, destroy it."""
        ...

    def close(self) -> None: ...


def until_prompt(fd: int) -> None:
    """Read a terminal until a root shell asks for a command."""
    said, until = b"", time.perf_counter() + PROMPT_SECONDS
    while b"# " not in said:
        left = until - time.perf_counter()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            raise TimeoutError(f"no prompt in {PROMPT_SECONDS:.0f} s, but {said!r}")
        block = os.read(fd, 4096)
        if not block:
            raise EOFError(f"the terminal ended: {said!r}")
        said += block
