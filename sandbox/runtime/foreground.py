# ruff: noqa: PTH110, PTH115, PTH116, PTH208
# This also runs in a box, with a bare and old interpreter: os calls, not pathlib.
"""Whether the programs that a terminal's keys go to wait for somebody to type.

The kernel knows: in which call each thread sleeps, and on which descriptors. This reads /proc and
nothing else; it imports only `os`, and its text also runs where no package is installed (Python
3.8 or later). Nothing is stopped while it reads, so one look can be wrong: believe `input` only
if a second look has the same trace. The trace of a thread is read before what it waits for, so
with equal traces what was read in between is what held.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_PROCESSES = 2000
"""Of a session with more, it is not told what it waits for: looking must stay cheap."""
_MOST_THREADS = 500
_MOST_DESCRIPTORS = 1024
_DEEPEST = 4
"""An epoll descriptor may wait for another, and so on; the kernel allows five."""
_LONGEST_TRACE = 1000

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


class _Stat:
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


class _Seen:
    """What threads are asked about, and what was met: other terminals that a program feeds."""

    __slots__ = ("calls", "relays", "terminal")

    def __init__(self, calls: dict[int, str], terminal: int) -> None:
        self.calls = calls
        self.terminal = terminal
        self.relays: list[tuple[int, int]] = []


def look(shell: int, control: str = "") -> tuple[str, str, str] | None:
    """What the foreground of the terminal does whose session `shell` leads.

    `doing`, `command` and `trace` of a Foreground. `control`: the link in /proc/PID/fd, such as
    pipe:[1234], of what the shell reads its commands from; empty: any pipe or socket will do.
    None: that process is gone, has no terminal, or may not be looked at.
    """
    calls = _CALLS.get(os.uname().machine)
    if calls is None:
        return None
    try:
        stat = _stat(f"/proc/{shell}")
        if stat is None or stat.tpgid <= 0 or stat.state in "ZX":
            return None
        if stat.group == stat.tpgid:
            trace = _at_control(shell, stat, control, calls)
            if trace:
                return ("control", stat.comm, trace)
        return _group(shell, stat, calls, _DEEPEST)
    except (OSError, ValueError, IndexError):
        return None


def _at_control(shell: int, stat: _Stat, control: str, calls: dict[int, str]) -> str:
    """The trace, if the shell sleeps in a read of its control, or has lost it; else nothing."""
    path = f"/proc/{shell}"
    if stat.state != "S" or stat.threads != 1:
        return ""
    trace = f"{shell}:{stat.ticks}:{_switches(path)}"
    call = _call(path)
    if not call or calls.get(call[0]) != "read":
        return ""
    link = _link(f"{path}/fd/{_signed(call[1])}")
    wanted = link == control if control else link.startswith(("pipe:", "socket:"))
    if not wanted and control.startswith("pipe:"):  # it may have lost that for ever
        wanted = all(_link(f"{path}/fd/{fd}") != control for fd in os.listdir(f"{path}/fd"))
    return f"{trace}:{call}" if wanted else ""


def _group(top: int, stat: _Stat, calls: dict[int, str], depth: int) -> tuple[str, str, str]:
    """Raises PermissionError when nobody is seen to wait, but not all could be seen."""
    members, whole = _members(top, stat.tpgid)
    seen = _Seen(calls, stat.terminal)
    states = set() if whole else {_BUSY}
    command, waits = stat.comm, ""
    trace = [str(stat.tpgid)]
    for pid, member in members:
        if pid == stat.tpgid or len(trace) == 1:
            command = member.comm
        for path, thread in _threads(pid, member):
            if len(trace) > _MOST_THREADS:
                states.add(_BUSY)
                break
            state, did = _thread(path, thread, seen)
            trace.append(did)
            states.add(state)
            waits = waits or (member.comm if state == _TYPED else "")
    typed = _TYPED in states and _BUSY not in states
    if _HIDDEN in states and not states & {_BUSY, _TYPED}:
        raise PermissionError
    for relay, index in seen.relays if typed else ():
        inner = _beyond(relay, index, calls, depth)
        typed = typed and inner[0] == "input"
        waits = inner[1]
        trace.append(inner[2])
    text = " ".join(trace)
    if len(text) > _LONGEST_TRACE:
        text = f"{len(trace)} threads {hash(text)}"
    return ("input" if typed else "other", (typed and waits) or command, text)


def _beyond(relay: int, index: int, calls: dict[int, str], depth: int) -> tuple[str, str, str]:
    """The same of a terminal that a program (script, su) made, and hands our keys to."""
    terminal = 136 << 8 | index & 0xFF | (index & 0xFFF00) << 12
    for pid, stat in _walk(relay) if depth else ():
        if stat.terminal == terminal and stat.tpgid > 0:
            return _group(pid, stat, calls, depth - 1)
    return ("other", "", "")  # nobody is there yet, or any more


def _members(top: int, group: int) -> tuple[list[tuple[int, _Stat]], bool]:
    """The living processes of a group, and whether that is all of them."""
    found: list[tuple[int, _Stat]] = []
    count, leads = 0, False
    for pid, stat in _walk(top) if os.path.exists("/proc/thread-self/children") else ():
        count += 1
        leads = leads or pid == group
        if stat.group == group and stat.state not in "ZX":
            found.append((pid, stat))
    if count == _MOST_PROCESSES:
        return found, False
    # Of what has lost its parent, process 1 is the parent.
    return (found if found and leads else _scan(group)), True


def _walk(top: int) -> Iterator[tuple[int, _Stat]]:
    """A process and its descendants, parents first."""
    todo, count = [top], 0
    for pid in todo:  # which grows meanwhile
        stat = _stat(f"/proc/{pid}") if count < _MOST_PROCESSES else None
        if stat is not None:
            count += 1
            yield pid, stat
            todo += _children(pid, stat.threads)


def _scan(group: int) -> list[tuple[int, _Stat]]:
    found: list[tuple[int, _Stat]] = []
    for name in os.listdir("/proc"):
        stat = _stat(f"/proc/{name}") if name.isdigit() else None
        if stat is not None and stat.group == group and stat.state not in "ZX":
            found.append((int(name), stat))
    return found


def _children(pid: int, threads: int) -> list[int]:
    """Of all its threads: a child belongs to the one that made it."""
    tids = [str(pid)] if threads == 1 else _tids(pid)
    texts = [_read(f"/proc/{pid}/task/{tid}/children") for tid in tids]
    return [int(child) for text in texts for child in text.split()]


def _tids(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")[: _MOST_THREADS + 1]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _threads(pid: int, stat: _Stat) -> Iterator[tuple[str, _Stat]]:
    if stat.threads == 1:
        yield f"/proc/{pid}", stat
        return
    for tid in _tids(pid):
        own = _stat(f"/proc/{pid}/task/{tid}")
        if own is not None and own.state not in "ZX":
            yield f"/proc/{pid}/task/{tid}", own


def _thread(path: str, stat: _Stat, seen: _Seen) -> tuple[int, str]:
    """What a thread does, and its trace."""
    did = _switches(path)
    trace = f"{path.rpartition('/')[2]}:{stat.ticks}:{did}"
    if stat.state != "S":
        return _BUSY, f"{trace}:{stat.state}"
    try:
        call = _call(path)
        if call is None:
            return _BUSY, trace
        return (_TYPED if _typed(path, call, seen) else _SLEEPS), f"{trace}:{call}"
    except OSError:
        now = _stat(path)  # of one that is just ending, or becoming another program, less is shown
        return (_HIDDEN if now and now.state == "S" and _switches(path) == did else _BUSY), trace


def _typed(path: str, call: list[int], seen: _Seen) -> bool:
    """Does what this thread sleeps in end when somebody types?"""
    kind = seen.calls.get(call[0]) if call else None
    if kind == "restart":
        kind = "poll" if b"poll" in _read(f"{path}/wchan") else None
    waits: list[tuple[int, bool]] = []
    if kind in ("read", "sendfile"):
        waits = [(_signed(call[1 if kind == "read" else 2]), True)]
    elif kind == "poll":
        waits = _polled(path, call[1], call[2])
    elif kind == "select":
        waits = _selected(path, _signed(call[1]), call[2:5])
    elif kind == "epoll":
        waits = _epolled(path, _signed(call[1]))
    return _any_terminal(path, waits, seen, _DEEPEST)


def _any_terminal(path: str, waits: list[tuple[int, bool]], seen: _Seen, depth: int) -> bool:
    """Is the terminal among what is waited for, and the network not?"""
    if len(waits) > _MOST_DESCRIPTORS:
        return False
    typed = False
    for number, reads in waits:
        link = _link(f"{path}/fd/{number}")
        if link.startswith("socket:"):
            if _is_network(path, number):
                return False
        elif link.endswith("[eventpoll]"):
            inner = _epolled(path, number) if depth else []
            typed = _any_terminal(path, inner, seen, depth - 1) or typed
        elif reads and link.endswith("/ptmx"):
            seen.relays += _relay(path, number)
        elif reads:
            typed = typed or _is_terminal(path, number, link, seen.terminal)
    return typed


def _relay(path: str, number: int) -> list[tuple[int, int]]:
    """The process, and the index of the terminal whose other end this descriptor is."""
    lines = [line.split() for line in _read(f"{path}/fdinfo/{number}").splitlines()]
    return [
        (int(path.split("/")[2]), int(words[1])) for words in lines if words[0] == b"tty-index:"
    ]


def _polled(path: str, address: int, count: int) -> list[tuple[int, bool]]:
    count = min(count & 0xFFFFFFFF, _MOST_DESCRIPTORS + 1)
    memory = _memory(path, address, 8 * count)
    found = []
    for at in range(0, len(memory) - 7, 8):
        number = int.from_bytes(memory[at : at + 4], "little", signed=True)
        events = int.from_bytes(memory[at + 4 : at + 6], "little")
        if number >= 0:
            found.append((number, bool(events & _POLLIN)))
    return found


def _selected(path: str, count: int, sets: list[int]) -> list[tuple[int, bool]]:
    # The kernel looks no further than the process's table, whatever the count; nor is what lies
    # behind a set a part of it.
    lines = _read(f"{path}/status").splitlines()
    table = max([int(line.split()[1]) for line in lines if line.startswith(b"FDSize:")], default=0)
    count = min(count, table)
    found: list[tuple[int, bool]] = []
    for which, address in enumerate(sets):
        memory = _memory(path, address, (count + 63) // 64 * 8) if address else b""
        for at, byte in enumerate(memory):
            bits = [at * 8 + bit for bit in range(8) if byte >> bit & 1] if byte else ()
            found += [(number, which == 0) for number in bits if number < count]
    return found


def _epolled(path: str, number: int) -> list[tuple[int, bool]]:
    found = []
    for line in _read(f"{path}/fdinfo/{number}").splitlines():
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


def _call(path: str) -> list[int] | None:
    """The number and the arguments of the call that a thread sleeps in; None: it does not sleep."""
    words = _read(f"{path}/syscall").split()
    if not words or words[0] == b"running":
        return None
    return [int(word, 0) for word in words[:7]] if len(words) >= 7 else []


def _switches(path: str) -> str:
    """How long a thread ran, how long it waited for that, and how often."""
    text = _read(f"{path}/schedstat")
    if text and not text.startswith(b"0 0 0"):
        return text.decode().strip()
    lines = _read(f"{path}/status").splitlines()
    return " ".join(line.split()[-1].decode() for line in lines if b"ctxt_switches" in line)


def _stat(path: str) -> _Stat | None:
    text = _read(f"{path}/stat")
    return _Stat(text) if text else None


def _signed(value: int) -> int:
    """A descriptor is an int: the upper half of its register means nothing."""
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _memory(path: str, address: int, size: int) -> bytes:
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


def _read(path: str) -> bytes:
    """All of it, or nothing if the process is gone."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return b""
    try:
        parts: list[bytes] = []
        while True:
            part = os.read(handle, 65536)
            if not part:
                return b"".join(parts)
            parts.append(part)
    except ProcessLookupError:
        return b""
    finally:
        os.close(handle)
