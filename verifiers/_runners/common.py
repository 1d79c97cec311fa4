"""What every runner shares: its plan, how it tells, and what it sees of its box."""

import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

MESSAGE_CHARACTERS = 1000
_BEYOND = ("192.0.2.1", 80)
"""An address of TEST-NET-1 (RFC 5737): nobody's, so trying it reaches nobody."""
_DATE = ("/bin/date", "+%s")
_RAW = """\
import ctypes, platform
number = {"x86_64": 228, "aarch64": 113}[platform.machine()]
now = (ctypes.c_int64 * 2)()
assert ctypes.CDLL(None).syscall(number, 0, now) == 0
print(now[0] + now[1] / 1e9)
"""
_ADDR_NO_RANDOMIZE = 0x0040000


class Teller:
    """Writes records, one JSON object a line, to a descriptor that programs do not inherit."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        os.set_inheritable(fd, False)  # noqa: FBT003 - it has no name

    def __call__(self, record: dict[str, Any]) -> None:
        data = memoryview(json.dumps(record).encode() + b"\n")
        while data:
            data = data[os.write(self._fd, data) :]


def begin() -> tuple[dict[str, Any], Teller]:
    """The plan, and how to tell: the arguments are its path and a descriptor.

    Tells what the box looks like, before anything of the code under test is loaded, and goes to
    where the checks run.
    """
    with open(sys.argv[1], encoding="utf-8") as f:
        plan: dict[str, Any] = json.load(f)
    tell = Teller(int(sys.argv[2]))
    os.umask(plan["umask"])
    tell({"probe": probe(draw=plan["draw"], raw=plan["raw"])})
    os.environ.update(plan["environment"])
    os.chdir(plan["workdir"])
    return plan, tell


def finish(plan: dict[str, Any], tell: Teller, status: int, began: float) -> None:
    """Tells that the end was reached, and ends: nothing of the code under test has a last word."""
    tell({"probe": probe(draw=plan["draw"], raw=False)})
    tell({"end": status, "seconds": round(time.monotonic() - began, 3)})
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def message(text: str) -> str:
    """Bounded, and without halves of characters."""
    return text.encode("utf-8", "backslashreplace").decode()[:MESSAGE_CHARACTERS]


def probe(*, draw: bool, raw: bool) -> dict[str, Any]:
    """What this box says of its clock, network and settings.

    draw: chance is held, so tell of it; raw: ask the kernel itself for the time, too.
    """
    with open("/proc/net/dev", encoding="ascii") as f:
        interfaces = sorted(line.split(":")[0].strip() for line in f if ":" in line)
    umask = os.umask(0)
    os.umask(umask)
    settings = {
        "TZ": os.environ.get("TZ", ""),
        "LANG": os.environ.get("LANG", ""),
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", ""),
        "hash_randomization": str(sys.flags.hash_randomization),
        "encoding": sys.getfilesystemencoding(),
        "hostname": socket.gethostname(),
        "user": f"{os.getuid()}:{os.getgid()}",
        "umask": f"{umask:03o}",
        "aslr": "off" if _fixed_layout() else "on",
    }
    if draw:
        settings["drawn"] = os.getrandom(8).hex()
    numbers: dict[str, float] = {
        "cpus": os.cpu_count() or 0,
        "usable_cpus": len(os.sched_getaffinity(0)),
    }
    if raw:
        numbers["raw_clock"] = _said_by(sys.executable, "-I", "-S", "-c", _RAW)
    return {
        "clock": {
            "python": time.time(),
            "date": _said_by(*_DATE),
            "date_bare": _said_by(*_DATE, env={}),
        },
        "interfaces": interfaces,
        "reached": [f"{_BEYOND[0]}:{_BEYOND[1]}"] if _reachable() else [],
        "settings": settings,
        "variables": sorted(os.environ),
        "numbers": numbers,
    }


def _said_by(*program: str, env: dict[str, str] | None = None) -> float:
    """The number that another program prints; -1 for none."""
    asked = subprocess.run(program, capture_output=True, text=True, check=False, env=env)
    try:
        return float(asked.stdout)
    except ValueError:
        return -1.0


def _fixed_layout() -> bool:
    """Is this program laid out in memory as every other run of it is?"""
    try:
        with open("/proc/self/personality", encoding="ascii") as f:
            return bool(int(f.read(), 16) & _ADDR_NO_RANDOMIZE)
    except OSError:
        return False


def _reachable() -> bool:
    """Is there a route out of the box? UDP: nothing would be sent even if there were one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(_BEYOND)
        except OSError:
            return False
    return True
