# ruff: noqa: PTH
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
_DEV_TTY = os.makedev(5, 0)
_DEV_CONSOLE = os.makedev(5, 1)
_NO_NETWORK = (b"UNIX", b"NETLINK")

_BUSY, _HIDDEN, _SLEEPS, _TYPED = range(4)


class _Stat:
    """What is needed of /proc/PID/stat."""

    __slots__ = ("comm", "group", "parent", "state", "terminal", "threads", "ticks", "tpgid")

    def __init__(self, text: bytes) -> None:
        name, _, rest = text.rpartition(b")")  # the name may have brackets and blanks itself
        fields = rest.split()
        self.comm = name.partition(b"(")[2].decode("utf-8", "replace")
        self.state = fields[0].decode()
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.terminal = int(fields[4]) & 0xFFFFFFFF
        self.tpgid = int(fields[5])
        self.ticks = int(fields[11]) + int(fields[12])
        self.threads = int(fields[17])


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
            idle = _at_control(shell, stat, control, calls)
            if idle:
                return ("control", stat.comm, idle)
        return _group(shell, stat, calls)
    except (OSError, ValueError, IndexError):
        return None


def _at_control(shell: int, stat: _Stat, control: str, calls: dict[int, str]) -> str:
    """The trace, if the shell sleeps in a read of its control; else nothing."""
    path = f"/proc/{shell}"
    if stat.state != "S" or stat.threads != 1:
        return ""
    trace = f"{shell}:{stat.ticks}:{_switches(path)}"
    call = _call(path)
    if not call or calls.get(call[0]) != "read":
        return ""
    link = _link(f"{path}/fd/{_signed(call[1])}")
    wanted = link == control if control else link.startswith(("pipe:", "socket:"))
    return f"{trace}:{call}" if wanted else ""


def _group(shell: int, leader: _Stat, calls: dict[int, str]) -> tuple[str, str, str]:
    """Raises PermissionError when nobody is seen to wait, but not all could be seen."""
    members, whole = _members(shell, leader.tpgid)
    command = members[0][1].comm if members else leader.comm
    best, busy, hidden = "", not whole, False
    trace = [f"{leader.tpgid}"]
    left = _MOST_THREADS
    for pid, first in members:
        if pid == leader.tpgid and not best:
            command = first.comm
        for path, stat in _threads(pid, first):
            left -= 1
            if left < 0:
                busy = True
                break
            state, did = _thread(path, stat, leader.terminal, calls)
            trace.append(did)
            busy = busy or state == _BUSY
            hidden = hidden or state == _HIDDEN
            if state == _TYPED and not best:
                best = command = first.comm or "?"
    if hidden and not best and not busy:
        raise PermissionError
    text = " ".join(trace)
    if len(text) > _LONGEST_TRACE:
        text = f"{len(trace)} threads {hash(text)}"
    return ("input" if best and not busy else "other", command, text)


def _members(shell: int, group: int) -> tuple[list[tuple[int, _Stat]], bool]:
    """The living processes of a group, and whether that is all of them."""
    if not os.path.exists("/proc/thread-self/children"):
        return _scan(group)
    found: list[tuple[int, _Stat]] = []
    todo, seen = [shell], 0
    leads = False
    while todo:
        seen += 1
        if seen > _MOST_PROCESSES:
            return found, False
        pid = todo.pop()
        stat = _stat(f"/proc/{pid}")
        if stat is None:
            continue
        leads = leads or pid == group
        if stat.group == group and stat.state not in "ZX":
            found.append((pid, stat))
        todo += _children(pid, stat.threads)
    # Of what has lost its parent, process 1 is the parent.
    return (found, True) if found and leads else _scan(group)


def _scan(group: int) -> tuple[list[tuple[int, _Stat]], bool]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = _stat(f"/proc/{name}")
            if stat is not None and stat.group == group and stat.state not in "ZX":
                found.append((int(name), stat))
    return found, True


def _children(pid: int, threads: int) -> list[int]:
    """Of all its threads: a child belongs to the one that made it."""
    try:
        tids = [str(pid)] if threads == 1 else os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [
        int(child) for tid in tids for child in _read(f"/proc/{pid}/task/{tid}/children").split()
    ]


def _threads(pid: int, stat: _Stat) -> list[tuple[str, _Stat]]:
    if stat.threads == 1:
        return [(f"/proc/{pid}", stat)]
    found = []
    try:
        tids = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return []
    for tid in tids[: _MOST_THREADS + 1]:
        path = f"/proc/{pid}/task/{tid}"
        own = _stat(path)
        if own is not None and own.state not in "ZX":
            found.append((path, own))
    return found


def _thread(path: str, stat: _Stat, terminal: int, calls: dict[int, str]) -> tuple[int, str]:
    """What a thread does, and its trace."""
    trace = f"{path.rpartition('/')[2]}:{stat.ticks}:{_switches(path)}"
    if stat.state != "S":
        return _BUSY, f"{trace}:{stat.state}"
    try:
        call = _call(path)
        trace += f":{call}"
        if call is None:
            return _BUSY, trace
        return (_TYPED if _typed(path, call, terminal, calls) else _SLEEPS), trace
    except (FileNotFoundError, ProcessLookupError):
        return _BUSY, f"{trace}:gone"
    except OSError:
        return _HIDDEN, f"{trace}:hidden"


def _typed(path: str, call: list[int], terminal: int, calls: dict[int, str]) -> bool:
    """Does what this thread sleeps in end when somebody types?"""
    kind = calls.get(call[0]) if call else None
    if kind == "restart":
        kind = "poll" if b"poll" in _read(f"{path}/wchan") else None
    if kind == "read":
        return _is_terminal(path, _signed(call[1]), terminal)
    if kind == "sendfile":
        return _is_terminal(path, _signed(call[2]), terminal)
    if kind == "poll":
        waits = _polled(path, call[1], call[2])
    elif kind == "select":
        waits = _selected(path, _signed(call[1]), call[2:5])
    elif kind == "epoll":
        waits = _epolled(path, _signed(call[1]))
    else:
        return False
    return _any_terminal(path, waits, terminal, _DEEPEST)


def _any_terminal(path: str, waits: list[tuple[int, bool]], terminal: int, depth: int) -> bool:
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
            typed = _any_terminal(path, inner, terminal, depth - 1) or typed
        elif reads and not typed:
            typed = _is_terminal(path, number, terminal)
    return typed


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
    size = (min(max(count, 0), 1 << 20) + 63) // 64 * 8
    found: list[tuple[int, bool]] = []
    for which, address in enumerate(sets):
        bits = int.from_bytes(_memory(path, address, size), "little") if address else 0
        bits &= (1 << max(count, 0)) - 1
        while bits and len(found) <= _MOST_DESCRIPTORS:
            lowest = bits & -bits
            found.append((lowest.bit_length() - 1, which == 0))
            bits ^= lowest
    return found


def _epolled(path: str, number: int) -> list[tuple[int, bool]]:
    found = []
    for line in _read(f"{path}/fdinfo/{number}").splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] == b"tfd:":
            found.append((int(words[1]), bool(int(words[3], 16) & _POLLIN)))
    return found


def _is_terminal(path: str, number: int, terminal: int) -> bool:
    link = _link(f"{path}/fd/{number}")
    # Of a terminal that was opened outside and passed in, only the last part may be left. Other
    # files are not asked for more than their name: that may take as long as their owner likes.
    if not link.startswith("/dev/") and not link[1:].isdigit():
        return False
    info = os.stat(f"{path}/fd/{number}")
    is_device = info.st_mode & 0o170000 == 0o020000
    return is_device and info.st_rdev in (_device(terminal), _DEV_TTY, _DEV_CONSOLE)


def _device(number: int) -> int:
    """The kernel's short form of a device's number, in the C library's."""
    return os.makedev(number >> 8 & 0xFFF, number & 0xFF | number >> 12 & 0xFFF00)


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
