# ruff: noqa: PTH110, PTH115, PTH208
# This also runs in a box, with a bare and old interpreter: os calls, not pathlib.
"""What /proc tells of processes. A part of `foreground`, and bound as that is: it imports only `os`."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_STEPS = 3000
"""Of one look: some 30 milliseconds. 500 processes, or as many threads."""


class TooMuch(Exception):
    """There is more than can be looked at in a short while."""


class Work:
    """What one look has done. Who is looked at decides how much there is, so it has an end.

    It is counted, not timed, so that two looks at the same see the same.
    """

    __slots__ = ("_left", "scanned")

    def __init__(self) -> None:
        self._left = _MOST_STEPS
        self.scanned: list[tuple[int, Stat]] | None = None
        """All of the machine's: they are not for who is looked at to choose, but are read once."""

    def spend(self, steps: int) -> None:
        """A step is about one file of /proc."""
        self._left -= steps
        if self._left < 0:
            raise TooMuch


class Stat:
    """What is needed of /proc/PID/stat."""

    __slots__ = ("comm", "group", "state", "terminal", "threads", "ticks", "tpgid")

    def __init__(self, text: bytes) -> None:
        name, _, rest = text.rpartition(b")")  # the name may have brackets and blanks itself
        fields = rest.split()
        self.comm = name.partition(b"(")[2].decode("utf-8", "replace")
        self.state = fields[0].decode()
        self.group = int(fields[2])
        self.terminal = int(fields[4]) & 0xFFFFFFFF
        self.tpgid = int(fields[5])
        self.ticks = int(fields[11]) + int(fields[12])
        self.threads = int(fields[17])


def stat_of(path: str) -> Stat | None:
    text = read(f"{path}/stat")
    return Stat(text) if text else None


def members_of(top: int, group: int, work: Work) -> list[tuple[int, Stat]]:
    """The living processes of a group."""
    found: list[tuple[int, Stat]] = []
    leads = False
    for pid, seen in walk(top, work) if os.path.exists("/proc/thread-self/children") else ():
        leads = leads or pid == group
        if seen.group == group and seen.state not in "ZX":
            found.append((pid, seen))
    # Of what has lost its parent, process 1 is the parent.
    return found if found and leads else scan(group, work)


def walk(top: int, work: Work) -> Iterator[tuple[int, Stat]]:
    """A process and its descendants, parents first."""
    todo = [top]
    for pid in todo:  # which grows meanwhile
        work.spend(2)
        seen = stat_of(f"/proc/{pid}")
        if seen is not None:
            yield pid, seen
            todo += _children(pid, seen.threads, work)


def scan(group: int, work: Work) -> list[tuple[int, Stat]]:
    if work.scanned is None:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        seen = [(pid, stat_of(f"/proc/{pid}")) for pid in pids]
        work.scanned = [(pid, one) for pid, one in seen if one is not None]
    return [(pid, one) for pid, one in work.scanned if one.group == group and one.state not in "ZX"]


def threads_of(pid: int, seen: Stat, work: Work) -> Iterator[tuple[str, Stat]]:
    if seen.threads == 1:
        yield f"/proc/{pid}", seen
        return
    for tid in _tids(pid):
        work.spend(1)
        own = stat_of(f"/proc/{pid}/task/{tid}")
        if own is not None and own.state not in "ZX":
            yield f"/proc/{pid}/task/{tid}", own


def _children(pid: int, count: int, work: Work) -> list[int]:
    """Of all its threads: a child belongs to the one that made it."""
    tids = [str(pid)] if count == 1 else _tids(pid)
    work.spend(len(tids) - 1)
    texts = [read(f"/proc/{pid}/task/{tid}/children") for tid in tids]
    return [int(child) for text in texts for child in text.split()]


def _tids(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return []


def call_of(path: str) -> list[int] | None:
    """The number and the arguments of the call that a thread sleeps in; None: it does not sleep."""
    words = read(f"{path}/syscall").split()
    if not words or words[0] == b"running":
        return None
    return [int(word, 0) for word in words[:7]] if len(words) >= 7 else []


def signed(value: int) -> int:
    """A descriptor is an int: the upper half of its register means nothing."""
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


def switches(path: str) -> str:
    """How long a thread ran, how long it waited for that, and how often."""
    text = read(f"{path}/schedstat")
    if text and not text.startswith(b"0 0 0"):
        return text.decode().strip()
    lines = read(f"{path}/status").splitlines()
    return " ".join(line.split()[-1].decode() for line in lines if b"ctxt_switches" in line)


def most_open(path: str) -> int:
    """How many descriptors it may have: the number of a new one is below that."""
    for line in read(f"{path}/limits").splitlines():
        if line.startswith(b"Max open files"):
            return int(line.split()[3])
    raise ValueError(path)


def link_of(path: str) -> str:
    try:
        return os.readlink(path)
    except (FileNotFoundError, ProcessLookupError):
        return ""


def memory_of(path: str, address: int, size: int) -> bytes:
    """Of another process; nothing where there is none."""
    if size <= 0 or address >= 1 << 62:
        return b""
    handle = os.open(f"{path}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(handle, size, address)
    except OSError:
        return b""
    finally:
        os.close(handle)


def read(path: str, most: int = 1 << 20) -> bytes:
    """All of it, but little more than `most`; or nothing if the process is gone."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return b""
    try:
        parts: list[bytes] = []
        size = 0
        while size < most:
            part = os.read(handle, 65536)
            if not part:
                break
            parts.append(part)
            size += len(part)
        return b"".join(parts)
    except ProcessLookupError:
        return b""
    finally:
        os.close(handle)
