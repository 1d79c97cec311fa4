# ruff: noqa: PTH116, PTH208
# This also runs in a box, with a bare and old interpreter: os calls, not pathlib.
"""Whether the programs that a terminal's keys go to wait for somebody to type.

The kernel knows: in which call each thread sleeps, and on which descriptors. This reads /proc and
nothing else; it imports only `os` and `procs`, and its text also runs where no package is installed
(Python 3.8 or later). Where there is too much to look at, it is `other`. Nothing is stopped while it reads, so one look can be wrong: believe `input` only
if a second look has the same trace. The trace of a thread is read before what it waits for, so
with equal traces what was read in between is what held.
"""

from __future__ import annotations

import os

from sandbox.runtime.procs import (
    Stat,
    TooMuch,
    Work,
    call_of,
    link_of,
    members_of,
    memory_of,
    most_open,
    read,
    signed,
    stat_of,
    switches,
    threads_of,
    walk,
)  # fmt: skip

_MOST_DESCRIPTORS = 1024
_EPOLL_BYTES = 1 << 17
"""Of what is told of an epoll descriptor; enough for more than those."""
_DEEPEST = 4
"""An epoll descriptor may wait for another, and so on; the kernel allows five."""
_LONGEST_TRACE = 1000
_COMMAND_BYTES = 1024
"""An interactive bash without readline reads its commands in blocks of this; `read`, of 4096."""

_READS = {0: "read", 19: "read", 17: "read", 295: "read", 327: "read", 275: "read"}
_READS.update({40: "sendfile", 7: "poll", 271: "poll", 23: "select", 270: "select"})
_READS.update({232: "epoll", 281: "epoll", 441: "epoll", 219: "restart"})
_ARM = {63: "read", 65: "read", 67: "read", 69: "read", 286: "read", 76: "read"}
_ARM.update({71: "sendfile", 73: "poll", 72: "select", 22: "epoll", 441: "epoll", 128: "restart"})
_CALLS = {"x86_64": _READS, "aarch64": _ARM}
"""Those that can wait for a terminal, by the number that the kernel shows.

`read` are read, readv, pread64, preadv, preadv2 and splice, which have the descriptor in front;
`restart` is what a poll with a timeout is called after it was stopped and continued.
"""

_POLLIN = 0x1 | 0x40
_ANY_TERMINAL = (os.makedev(5, 0), os.makedev(5, 1))
"""/dev/tty is the session's own, and so is the console of who has opened it."""
_NO_NETWORK = (b"UNIX", b"NETLINK")

_BUSY, _HIDDEN, _SLEEPS, _TYPED = range(4)


class _Seen:
    """What threads are asked about, and what was met: other terminals that a program feeds."""

    __slots__ = ("calls", "epolls", "relays", "terminal", "work")

    def __init__(self, calls: dict[int, str], terminal: int, work: Work) -> None:
        self.calls = calls
        self.terminal = terminal
        self.work = work
        self.relays: dict[tuple[int, int], None] = {}
        self.epolls: dict[tuple[str, int], bool] = {}
        """Process and descriptor → does it wait for the terminal? Many threads may share one."""


def look(shell: int, control: str = "") -> tuple[str, str, str] | None:
    """What the foreground of the terminal does whose session `shell` leads.

    `doing`, `command` and `trace` of a Foreground. `control`: the link in /proc/PID/fd, such as
    pipe:[1234], of what the shell reads its commands from; empty: any pipe or socket will do.
    None: that process is gone, has no terminal, or may not be looked at.
    """
    calls = _CALLS.get(os.uname().machine)
    if calls is None:
        return None
    work = Work()
    try:
        stat = stat_of(f"/proc/{shell}")
        if stat is None or stat.tpgid <= 0 or stat.state in "ZX":
            return None
        try:
            if stat.group == stat.tpgid:
                trace = _at_control(shell, stat, control, calls, work)
                if trace:
                    return ("control", stat.comm, trace)
            return _group(shell, stat, calls, _DEEPEST, work)
        except TooMuch:
            first = stat_of(f"/proc/{stat.tpgid}") or stat
            return ("other", first.comm, f"{stat.tpgid}: too much to look at")
    except (OSError, ValueError, IndexError):
        return None


def _at_control(shell: int, stat: Stat, control: str, calls: dict[int, str], work: Work) -> str:
    """The trace, if the shell sleeps in a read of its control, or has lost it; else nothing."""
    path = f"/proc/{shell}"
    if stat.state != "S" or stat.threads != 1:
        return ""
    trace = f"{shell}:{stat.ticks}:{switches(path)}"
    call = call_of(path)
    if not call or calls.get(call[0]) != "read":
        return ""
    link = link_of(f"{path}/fd/{signed(call[1])}")
    wanted = link == control if control else link.startswith(("pipe:", "socket:"))
    if not wanted and control.startswith("pipe:"):
        wanted = _has_lost(path, control, call[3], work)
    return f"{trace}:{call}" if wanted else ""


def _has_lost(path: str, control: str, size: int, work: Work) -> bool:
    """Will the shell never read its control again, which it does not read now?

    It may have closed it. Or it has put it aside for a command and cannot put it back, as it may
    not have that many descriptors any more: then it takes its commands from the command's input,
    in blocks of a size that its `read` does not ask for unless it is told to.
    """
    numbers = os.listdir(f"{path}/fd")
    work.spend(len(numbers))
    if all(link_of(f"{path}/fd/{number}") != control for number in numbers):
        return True
    return size == _COMMAND_BYTES and most_open(path) <= max(map(int, numbers))


def _group(
    top: int, stat: Stat, calls: dict[int, str], depth: int, work: Work
) -> tuple[str, str, str]:
    """Raises PermissionError when nobody is seen to wait, but not all could be seen."""
    seen = _Seen(calls, stat.terminal, work)
    states = set()
    command, waits = stat.comm, ""
    trace = [str(stat.tpgid)]
    for pid, member in members_of(top, stat.tpgid, work):
        if pid == stat.tpgid or len(trace) == 1:
            command = member.comm
        for path, thread in threads_of(pid, member, work):
            state, did = _thread(path, thread, seen)
            trace.append(did)
            states.add(state)
            waits = waits or (member.comm if state == _TYPED else "")
    typed = _TYPED in states and _BUSY not in states
    if _HIDDEN in states and not states & {_BUSY, _TYPED}:
        raise PermissionError
    for relay, index in seen.relays if typed else ():
        inner = _beyond(relay, index, seen, depth)
        typed = typed and inner[0] == "input"
        waits = inner[1]
        trace.append(inner[2])
    text = " ".join(trace)
    if len(text) > _LONGEST_TRACE:
        text = f"{len(trace)} threads {hash(text)}"
    return ("input" if typed else "other", (typed and waits) or command, text)


def _beyond(relay: int, index: int, seen: _Seen, depth: int) -> tuple[str, str, str]:
    """The same of a terminal that a program (script, su) made, and hands our keys to."""
    terminal = 136 << 8 | index & 0xFF | (index & 0xFFF00) << 12
    for pid, stat in walk(relay, seen.work) if depth else ():
        if stat.terminal == terminal and stat.tpgid > 0:
            return _group(pid, stat, seen.calls, depth - 1, seen.work)
    return ("other", "", "")  # nobody is there yet, or any more


def _thread(path: str, stat: Stat, seen: _Seen) -> tuple[int, str]:
    """What a thread does, and its trace."""
    seen.work.spend(3)
    did = switches(path)
    trace = f"{path.rpartition('/')[2]}:{stat.ticks}:{did}"
    if stat.state != "S":
        return _BUSY, f"{trace}:{stat.state}"
    try:
        call = call_of(path)
        if call is None:
            return _BUSY, trace
        return (_TYPED if _typed(path, call, seen) else _SLEEPS), f"{trace}:{call}"
    except OSError:
        now = stat_of(path)  # of one that is ending, or becoming another program, less is shown
        return (_HIDDEN if now and now.state == "S" and switches(path) == did else _BUSY), trace


def _typed(path: str, call: list[int], seen: _Seen) -> bool:
    """Does what this thread sleeps in end when somebody types?"""
    kind = seen.calls.get(call[0]) if call else None
    if kind == "restart":
        kind = "poll" if b"poll" in read(f"{path}/wchan") else None
    waits: list[tuple[int, bool]] = []
    if kind in ("read", "sendfile"):
        waits = [(signed(call[1 if kind == "read" else 2]), True)]
    elif kind == "poll":
        waits = _polled(path, call[1], call[2], seen.work)
    elif kind == "select":
        waits = _selected(path, signed(call[1]), call[2:5], seen.work)
    elif kind == "epoll":
        return _epoll(path, signed(call[1]), seen, _DEEPEST)
    return _any_terminal(path, waits, seen, _DEEPEST)


def _any_terminal(path: str, waits: list[tuple[int, bool]], seen: _Seen, depth: int) -> bool:
    """Is the terminal among what is waited for, and the network not?"""
    if len(waits) > _MOST_DESCRIPTORS:
        return False
    typed = False
    for number, reads in waits:
        seen.work.spend(1)
        link = link_of(f"{path}/fd/{number}")
        if link.startswith("socket:"):
            if _is_network(path, number):
                return False
        elif link.endswith("[eventpoll]"):
            typed = (depth > 0 and _epoll(path, number, seen, depth - 1)) or typed
        elif reads and link.endswith("/ptmx"):
            seen.work.spend(1)
            seen.relays.update(dict.fromkeys(_relay(path, number)))
        elif reads:
            typed = typed or _is_terminal(path, number, link, seen.terminal)
    return typed


def _epoll(path: str, number: int, seen: _Seen, depth: int) -> bool:
    """The same of what an epoll descriptor waits for; looked up once."""
    key = (path.split("/")[2], number)
    if key not in seen.epolls:
        seen.epolls[key] = _any_terminal(path, _epolled(path, number, seen.work), seen, depth)
    return seen.epolls[key]


def _relay(path: str, number: int) -> list[tuple[int, int]]:
    """The process, and the index of the terminal whose other end this descriptor is."""
    lines = [line.split() for line in read(f"{path}/fdinfo/{number}").splitlines()]
    return [
        (int(path.split("/")[2]), int(words[1])) for words in lines if words[0] == b"tty-index:"
    ]


def _polled(path: str, address: int, count: int, work: Work) -> list[tuple[int, bool]]:
    count = min(count & 0xFFFFFFFF, _MOST_DESCRIPTORS + 1)
    work.spend(count // 16)
    memory = memory_of(path, address, 8 * count)
    found = []
    for at in range(0, len(memory) - 7, 8):
        number = int.from_bytes(memory[at : at + 4], "little", signed=True)
        events = int.from_bytes(memory[at + 4 : at + 6], "little")
        if number >= 0:
            found.append((number, bool(events & _POLLIN)))
    return found


def _selected(path: str, count: int, sets: list[int], work: Work) -> list[tuple[int, bool]]:
    # The kernel looks no further than the process's table, whatever the count; nor is what lies
    # behind a set a part of it.
    lines = read(f"{path}/status").splitlines()
    table = max([int(line.split()[1]) for line in lines if line.startswith(b"FDSize:")], default=0)
    count = min(count, table)
    found: list[tuple[int, bool]] = []
    for which, address in enumerate(sets):
        memory = memory_of(path, address, (count + 63) // 64 * 8) if address else b""
        work.spend(len(memory) // 256)
        for at, byte in enumerate(memory):
            bits = [at * 8 + bit for bit in range(8) if byte >> bit & 1] if byte else ()
            found += [(number, which == 0) for number in bits if number < count]
            if len(found) > _MOST_DESCRIPTORS:
                break
        work.spend(len(found) // 16)
    return found


def _epolled(path: str, number: int, work: Work) -> list[tuple[int, bool]]:
    lines = read(f"{path}/fdinfo/{number}", _EPOLL_BYTES).splitlines()
    work.spend(1 + len(lines) // 8)
    found = []
    for line in lines:
        words = line.split()
        if len(words) >= 4 and words[0] == b"tfd:":
            found.append((int(words[1]), bool(int(words[3], 16) & _POLLIN)))
    return found


def _is_terminal(path: str, number: int, link: str, terminal: int) -> bool:
    # Of a terminal that was opened outside and passed in, only the last part may be left. Other
    # files are not asked for more than their name: that may take as long as their owner likes.
    if not link.startswith("/dev/") and not link[1:].isdigit():
        return False
    try:
        info = os.stat(f"{path}/fd/{number}")
    except (FileNotFoundError, ProcessLookupError):
        return False
    own = os.makedev(terminal >> 8 & 0xFFF, terminal & 0xFF | terminal >> 12 & 0xFFF00)
    return info.st_mode & 0o170000 == 0o020000 and info.st_rdev in (own, *_ANY_TERMINAL)


def _is_network(path: str, number: int) -> bool:
    try:
        protocol = os.getxattr(f"{path}/fd/{number}", "system.sockprotoname")
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError:
        return True
    return not protocol.startswith(_NO_NETWORK)
