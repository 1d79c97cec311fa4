"""Runs a runner as somebody else, in the box: `python3 -I -B -S supervise.py plan.json`.

It alone holds standard output, and is of another user than the code under test. A line that begins
with `.` is what the runner told, one with `!` is its own. The last one says how the runner ended;
standard error gets what was printed, bounded. docs/reference/runners.md describes both.
"""

import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

PYTHON = ("/usr/bin/python3", "-P", "-s")
_RECORD_BYTES, _RECORDS, _LINE_BYTES = 48 << 20, 200_000, 4 << 20
_LOG_BYTES = 128 << 10
"""Of its beginning, and as much of its end."""
_CHUNK = _DRAINED_BYTES = 1 << 20
"""As much as a pipe holds: what was written before the runner ended, and not for ever."""
_LOOK_SECONDS, _STOPPED_SECONDS = 0.5, 2.0
_RESTARTS = 20
_KILL_ROUNDS = 2000
_CODE, _STRAYS = (".pyc", ".pyo"), ("conftest.py",)
_OPEN = 0o1777
_FILES = 1 << 16


class Log:
    """What was printed: its beginning and its end."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: list[bytes] = []
        self._kept = self._all = 0

    def add(self, data: bytes) -> None:
        self._all += len(data)
        room = _LOG_BYTES - len(self._head)
        self._head += data[:room]
        self._tail.append(data[room:])
        self._kept += len(data[room:])
        while self._kept - len(self._tail[0]) >= _LOG_BYTES:
            self._kept -= len(self._tail.pop(0))

    def text(self) -> bytes:
        tail = b"".join(self._tail)[-_LOG_BYTES:]
        out = self._all - len(self._head) - len(tail)
        return bytes(self._head) + (b"\n[%d bytes are left out]\n" % out if out else b"") + tail


class Records:
    """What the runner tells, handed on line by line, as far as it is bounded."""

    def __init__(self, *, look: bool) -> None:
        """look: find out which check is running."""
        self.flooded = False
        self.running: str | None = None
        self.since = time.monotonic()
        """When it began."""
        self.done: list[str] = []
        self._look = look
        self._bytes = self._count = 0
        self._rest = b""

    def add(self, data: bytes) -> None:
        if self.flooded:
            return
        self._bytes += len(data)
        self._count += data.count(b"\n")
        whole, newline, self._rest = (self._rest + data).rpartition(b"\n")
        over = self._bytes > _RECORD_BYTES or self._count > _RECORDS
        if over or len(self._rest) > _LINE_BYTES:
            self.flooded = True
            return
        if newline:
            _write(1, b"." + whole.replace(b"\n", b"\n.") + b"\n")
            for line in whole.split(b"\n") if self._look else ():
                self._follow(line)

    def over(self) -> None:
        """The runner is gone: half a line is nothing."""
        self._rest, self.running = b"", None

    def _follow(self, line: bytes) -> None:
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            return
        match told:
            case {"begin": str(name)}:
                self.running, self.since = name, time.monotonic()
            case {"check": str(name)}:
                self.done.append(name)
                self.running = None
            case _:
                pass


class Run:
    """One runner process, from its start until nothing of it is left."""

    def __init__(self, plan: Mapping[str, Any], path: str, records: Records, log: Log) -> None:
        self._records, self._log = records, log
        self._check_seconds = plan["check_seconds"]
        self._uid = int(plan["user"].split(":")[0])
        self._before = frozenset(_everybody()) if self._uid == 0 else frozenset()
        self._told, told = os.pipe()
        self._said, said = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            _become(plan, path, told, said)
        self._end = os.pidfd_open(self._pid)
        for fd in (told, said):
            os.close(fd)
        for fd in (self._told, self._said):
            _widen(fd)
        for fd in (self._told, self._said):
            os.set_blocking(fd, False)
        self._stopped: float | None = None

    def follow(self, until: float) -> str:
        """How it ended: `exited`, or why it was ended."""
        poll = select.poll()
        takers = {self._told: self._records.add, self._said: self._log.add}
        for fd in (*takers, self._end):
            poll.register(fd, select.POLLIN)
        while True:
            left = min(_LOOK_SECONDS, max(0.0, until - time.monotonic()))
            ready = {fd for fd, _ in poll.poll(left * 1000)}
            for fd in ready & takers.keys():
                if not self._take(fd):
                    poll.unregister(fd)
            if self._records.flooded:
                return "flooded"
            if self._end in ready:
                self._drain()
                return "exited"
            if why := self._overdue(until):
                return why

    def close(self) -> tuple[int, int]:
        """Nothing of it goes on. Its wait status, and how many others had to be killed."""
        others = len([p for p in self._alive() if p != self._pid])
        self._kill()
        _, status = os.waitpid(self._pid, 0)
        self._drain()
        self._records.over()
        for fd in (self._told, self._said, self._end):
            os.close(fd)
        return status, others

    def _overdue(self, until: float) -> str:
        now = time.monotonic()
        if now >= until:
            return "timed out"
        running, most = self._records.running, self._check_seconds
        if running is not None and most is not None and now - self._records.since > most:
            return "overran"
        if not self._is_stopped():
            self._stopped = None
        elif self._stopped is None:
            self._stopped = now
        elif now - self._stopped > _STOPPED_SECONDS:
            return "stopped"
        return ""

    def _is_stopped(self) -> bool:
        flags = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self._pid, flags) is not None
        except ChildProcessError:
            return False  # it has just ended

    def _take(self, fd: int) -> bool:
        """Some of what is there; False at its end."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return True
        (self._records if fd == self._told else self._log).add(data)
        return bool(data)

    def _drain(self) -> None:
        """What was written until now, and not for ever: others may still write."""
        for fd in (self._told, self._said):
            self._take(fd)

    def _alive(self) -> list[int]:
        if self._uid:
            return [p for p, uids in _everybody().items() if self._uid in uids]
        return [p for p in _everybody() if p not in self._before and p != os.getpid()]

    def _kill(self) -> None:
        for _ in range(_KILL_ROUNDS):
            if self._uid:
                _kill_user(self._uid)
            alive = self._alive()
            if not alive:
                return
            for pid in () if self._uid else alive:
                _kill_one(pid)
            time.sleep(0.002)
        raise OSError(f"these cannot be killed: {self._alive()}")


def _kill_user(uid: int) -> None:
    """All at once, so that none can fork away; none of them may signal us meanwhile.

    A process may signal those whose real or saved user is its own effective or real one. Ours are
    nobody's (real) and root's (saved), theirs is our effective one.
    """
    nobody = 65533 if uid != 65533 else 65532
    os.setresuid(nobody, uid, 0)
    try:
        os.kill(-1, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    finally:
        os.setresuid(0, 0, 0)


def _kill_one(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _everybody() -> dict[int, tuple[int, ...]]:
    """Every process that is not over → the users it has."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/status", "rb") as f:
                lines = f.read().split(b"\n")
        except (FileNotFoundError, ProcessLookupError):
            continue
        told = dict(line.split(b":\t", 1) for line in lines if b":\t" in line)
        if told.get(b"State", b"X")[:1] not in (b"Z", b"X"):
            found[int(name)] = tuple(map(int, told[b"Uid"].split()))
    return found


def _become(plan: Mapping[str, Any], path: str, told: int, said: int) -> None:
    """In the child: the runner. Does not come back."""
    try:
        uid, gid = map(int, plan["user"].split(":"))
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.set_inheritable(told, True)  # noqa: FBT003 - it has no name
        # Python ignores them, and what is ignored stays so in what is started.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if uid:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
        os.umask(plan["umask"])
        os.chdir("/")
        runner = os.path.join(os.path.dirname(os.path.abspath(__file__)), plan["runner"])
        python = plan.get("python", PYTHON)
        os.execv(python[0], [*python, runner, path, str(told)])
    except BaseException as e:
        os.write(2, f"the runner cannot be started: {e!r}\n".encode())
    finally:
        os._exit(126)


def prepare(plan: Mapping[str, Any]) -> None:
    """Before anything of the submission runs: new files may be made beside what is there.

    Nothing that is there can be changed, and no folder of the hidden tests. What would be taken for
    a part of the tests, or for what a source was compiled to, has to be pinned, or goes.
    """
    sealed = frozenset(plan["sealed"])
    keep = sealed | frozenset(plan["keep"])
    workdir, uid = plan["workdir"], int(plan["user"].split(":")[0])
    _let_through(workdir)
    for folder, files in _folders(workdir, sealed):
        for name in files:
            path = f"{folder}/{name}"
            if (name in _STRAYS or name.endswith(_CODE)) and path not in keep:
                os.unlink(path)
        if uid:
            os.chmod(folder, _OPEN)
    for path in plan["writable"]:
        _give(path, *map(int, plan["user"].split(":")))


def _folders(top: str, sealed: frozenset[str]) -> Iterator[tuple[str, list[str]]]:
    """Each folder that is not sealed, and what in it is no folder. Links are not followed."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        files = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    files.append(entry.name)
                elif entry.path not in sealed and entry.name != ".git":
                    waiting.append(entry.path)
        yield folder, files


def _give(path: str, uid: int, gid: int) -> None:
    """Not where a link leads, which the submission may have put there."""
    if os.path.realpath(path) != path or not os.path.exists(path):
        return
    os.chown(path, uid, gid)
    for folder, files in _folders(path, frozenset()) if os.path.isdir(path) else ():
        for name in (".", *files):
            os.chown(f"{folder}/{name}", uid, gid, follow_symlinks=False)


def _let_through(workdir: str) -> None:
    """To it, but not into what lies on the way."""
    parts = workdir.strip("/").split("/")
    for i in range(1, len(parts)):
        above = "/" + "/".join(parts[:i])
        mode = os.stat(above).st_mode & 0o7777
        if not mode & 0o001:
            os.chmod(above, mode | 0o011)


def _widen(pipe: int) -> None:
    """What is written a lot is read in fewer pieces."""
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _CHUNK)
    except OSError:
        return  # this user has many pipes


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _say(record: Mapping[str, Any]) -> None:
    _write(1, b"!" + json.dumps(record).encode() + b"\n")


def _without(plan: Mapping[str, Any], done: list[str]) -> str:
    """The plan of another run, for what the first did not come to; in memory, as the disk may be full."""
    fd = os.memfd_create("plan", 0)
    _write(fd, json.dumps({**plan, "done": done}).encode())
    return f"/proc/self/fd/{fd}"


def supervise(plan: Mapping[str, Any], path: str) -> None:
    began = time.monotonic()
    log, until = Log(), began + plan["seconds"]
    records = Records(look=plan["check_seconds"] is not None)
    overran: list[str] = []
    others = 0
    while True:
        run = Run(plan, path, records, log)
        how, running = run.follow(until), records.running
        status, left = run.close()
        others += left
        if how != "overran" or running is None:
            break
        _say({"overran": running, "seconds": plan["check_seconds"]})
        # Once more is enough for a runner that does not leave out what it is told to.
        if running in overran or len(overran) >= _RESTARTS:
            break
        overran.append(running)
        path = _without(plan, [*records.done, *overran])
    code = os.waitstatus_to_exitcode(status)
    _write(2, log.text())
    ended = {"ended": how, "exit": code if code >= 0 else 128 - code, "others": others}
    _say({**ended, "runs": len(overran) + 1, "seconds": round(time.monotonic() - began, 3)})


def main() -> None:
    with open("/proc/self/status", "rb") as f:
        if b"\nNoNewPrivs:\t1\n" not in f.read():
            raise OSError("programs of this box can gain privileges")
    with open(sys.argv[1], encoding="utf-8") as f:
        plan = json.load(f)
    os.closerange(3, _FILES)
    prepare(plan)
    supervise(plan, sys.argv[1])


if __name__ == "__main__":
    main()
