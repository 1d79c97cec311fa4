"""What a check gets to work with, and the few words in which checks are written."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sandbox.rollout import plugins
from sandbox.runtime.base import Box, ExecResult, Runtime
from sandbox.runtime.spec import BoxSpec, Image, Seed
from sandbox.runtime.store import Store

SECONDS = 60.0
"""What a program gets that should end at once: machines are busy."""


class Unseen(Exception):
    """The check cannot be made from here: a reason to skip it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    runtime: Runtime
    kind: str
    """The runtime's name on the command line, with which another can be opened."""
    store: Store
    spec: BoxSpec
    """Of a usual box: a few limits, TASK="one two" in its environment, it starts in /root."""
    seed: Seed
    """/seeded/{file,script,folder/file,link} and /etc/seeded, to be put into a spec."""
    scratch: Path
    """An empty folder for this check alone."""

    @property
    def image(self) -> Image:
        return self.spec.image

    def box(self, **changes: Any) -> Box:
        """A new box of the usual kind but for the changes to its spec."""
        return self.runtime.create(replace(self.spec, **changes))

    def limited(self, **limits: Any) -> Box:
        return self.box(limits=replace(self.spec.limits, **limits))

    @contextmanager
    def another(self, store: Store | None = None) -> Iterator[Runtime]:
        """A second runtime of the same kind, as another run would have."""
        made = plugins.runtime(self.kind, store or self.store)
        try:
            yield made
        finally:
            made.close()


def expect(found: object, wanted: object, what: str) -> None:
    """They are equal."""
    if found != wanted:
        raise AssertionError(f"{what}: {wanted!r} was expected, {found!r} was found")


def expect_list(found: Sequence[Any], wanted: Sequence[Any], what: str) -> None:
    """The same in the same order; what differs is told, not all of both."""
    missing = [one for one in wanted if one not in found]
    more = [one for one in found if one not in wanted]
    hold(not missing and not more, f"{what}: missing are {missing!r}; too many are {more!r}")
    hold(list(found) == list(wanted), f"{what}: all are there, in this order: {found!r}")


def hold(true: object, what: str) -> None:
    """`what` says what should have been so, and what was found."""
    if not true:
        raise AssertionError(what)


@contextmanager
def refused(what: str, kind: type[Exception]) -> Iterator[None]:
    """What is done within raises just this kind of error."""
    try:
        yield
    except kind:
        return
    except Exception as e:
        raise AssertionError(f"{what}: {kind.__name__} was expected, not {e!r}") from e
    raise AssertionError(f"{what}: {kind.__name__} was expected, nothing was raised")


def eventually(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def run(box: Box, *argv: str, **options: Any) -> ExecResult:
    return box.exec(argv, seconds=options.pop("seconds", SECONDS), **options)


def said(box: Box, *argv: str, **options: Any) -> str:
    """What a program prints, after it has shown that it worked."""
    result = run(box, *argv, **options)
    hold(result.exit_code == 0, f"{argv[0]} works in the box: {result}")
    return result.stdout.decode("utf-8", "surrogateescape")


def sh(box: Box, script: str, *arguments: str, **options: Any) -> str:
    return said(box, "sh", "-c", script, "sh", *arguments, **options)


def python(box: Box, script: str, *arguments: str, **options: Any) -> str:
    return said(box, "python3", "-c", script, *arguments, **options).strip()


def exists(box: Box, path: str) -> bool:
    return run(box, "sh", "-c", '[ -e "$1" ] || [ -L "$1" ]', "sh", path).exit_code == 0


def background(box: Box, *argv: str) -> None:
    """Start a program in the box that goes on when we no longer look."""
    sh(box, '"$@" > /dev/null 2>&1 < /dev/null &', *argv)


def sleeper(box: Box) -> str:
    """Start a `sleep` in the box, and see it from here; its name for `alive`."""
    marker = f"4242.{time.time_ns()}"
    background(box, "setsid", "sleep", marker)
    see(marker)
    return marker


def see(marker: str) -> None:
    if not eventually(lambda: alive(marker)):
        raise Unseen("the processes of a box cannot be seen from here")


def alive(marker: str) -> bool:
    return bool(host_processes(marker))


def dead(marker: str, seconds: float = 10.0) -> bool:
    """Has the sleeper ended, or does it within these seconds?"""
    return eventually(lambda: not alive(marker), seconds)


def host_processes(marker: str) -> list[int]:
    """Ids of this machine's `sleep <marker>`s."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().split(b"\0")[-3:-1] == [b"sleep", marker.encode()]:
                found.append(int(path.parent.name))
        except OSError:  # it ended while we looked
            continue
    return found
