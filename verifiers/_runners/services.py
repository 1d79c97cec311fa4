"""Starts services, in the box: `python3 -I -B -S services.py services.json`. They go on when this ends.

Each is a user without rights, in the working directory, and what it prints is kept, bounded. One that
is not ready in time ends this: the last line on standard output says what became of them.
"""

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any, NoReturn

_LOG_BYTES = 64 << 10
_CHUNK = 1 << 16
_WORDS = 500
_LOOK_SECONDS = 0.05
_FILES = 1 << 16


class Service:
    """One of them, from its start."""

    def __init__(self, spec: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
        self._spec = spec
        self._log = f"{plan['logs']}/{spec['name']}.log"
        self._began = time.monotonic()
        self._exit: int | None = None
        out, out_end = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            _become(spec, plan, out_end)
        os.close(out_end)
        if not os.fork():
            _keep(out, self._log)
        os.close(out)

    def wait(self) -> str:
        """Why it is not ready; empty when it is."""
        while True:
            if self._ended():
                return self._said(f"ended with exit code {self._exit}")
            if self._ready():
                return ""
            if time.monotonic() - self._began > self._spec["seconds"]:
                return self._said(f"was not ready within {self._spec['seconds']:g} s")
            time.sleep(_LOOK_SECONDS)

    def _ended(self) -> bool:
        """With 0 it may have left another process in its place."""
        if self._exit is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._exit = os.waitstatus_to_exitcode(status) if pid else None
        return bool(self._exit)

    def _ready(self) -> bool:
        ready = self._spec["ready"]
        if ready["port"] is not None:
            return _answers(socket.AF_INET, ("127.0.0.1", ready["port"]))
        if ready["path"] is not None:
            path = ready["path"]
            return _answers(socket.AF_UNIX, path) if _is_socket(path) else os.path.exists(path)
        return time.monotonic() - self._began >= float(ready["seconds"])

    def _said(self, what: str) -> str:
        try:
            with open(self._log, "rb") as f:
                words = f.read()[-_WORDS:].decode("utf-8", "backslashreplace").strip()
        except OSError:
            words = ""
        ready = ", ".join(f"{k} {v}" for k, v in self._spec["ready"].items() if v is not None)
        return f"service `{self._spec['name']}` ({ready}) {what}; it said: {words or 'nothing'}"


def _become(spec: Mapping[str, Any], plan: Mapping[str, Any], out: int) -> NoReturn:
    """In the child: the service."""
    try:
        uid, gid = map(int, plan["user"].split(":"))
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.closerange(3, _FILES)
        # Python ignores them, and what is ignored stays so in what is started.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if uid:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
        os.umask(plan["umask"])
        os.chdir(plan["workdir"])
        env = {**os.environ, **plan["environment"], "HOME": plan["home"], "TMPDIR": plan["home"]}
        os.execve("/bin/sh", ["/bin/sh", "-c", spec["run"]], env)
    except BaseException as e:
        os.write(2, f"it cannot be started: {e!r}\n".encode())
    finally:
        os._exit(126)


def _keep(out: int, log: str) -> NoReturn:
    """In a child: what a service prints, as long as anything of it is there; the first of it is kept."""
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)
        left = _LOG_BYTES
        with open(log, "wb", buffering=0) as f:
            while data := os.read(out, _CHUNK):
                f.write(data[:left])
                left -= min(left, len(data))
    finally:
        os._exit(0)


def _answers(family: int, address: Any) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(1)
        try:
            s.connect(address)
        except OSError:
            return False
    return True


def _is_socket(path: str) -> bool:
    try:
        return os.stat(path).st_mode & 0o170000 == 0o140000
    except OSError:
        return False


def prepare(plan: Mapping[str, Any]) -> None:
    """A home for all of them, a way to the working directory, and what they may change there."""
    uid, gid = map(int, plan["user"].split(":"))
    for folder in (plan["home"], plan["logs"]):
        os.makedirs(folder, exist_ok=True)
    os.chown(plan["home"], uid, gid)
    parts = plan["workdir"].strip("/").split("/")
    for i in range(1, len(parts)):
        above = "/" + "/".join(parts[:i])
        os.chmod(above, os.stat(above).st_mode & 0o7777 | 0o011)
    for spec in plan["services"]:
        for path in spec["writable"]:
            _give(f"{plan['workdir']}/{path}", uid, gid)


def _give(path: str, uid: int, gid: int) -> None:
    """Not where a link leads, which the submission may have put there."""
    if os.path.realpath(path) != path or not os.path.exists(path):
        return
    os.chown(path, uid, gid)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            os.chown(f"{folder}/{name}", uid, gid, follow_symlinks=False)


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as f:
        plan = json.load(f)
    prepare(plan)
    for spec in plan["services"]:
        print(json.dumps({"starting": spec["name"]}), flush=True)
        try:
            why = Service(spec, plan).wait()
        except OSError as error:
            why = f"service `{spec['name']}` cannot be started: {error}"
        if why:
            print(json.dumps({"down": why}), flush=True)
            return
    print(json.dumps({"up": True}), flush=True)


if __name__ == "__main__":
    main()
